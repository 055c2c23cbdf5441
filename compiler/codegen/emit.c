/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as source: the body by the emitter, the rest by the templates. */
#include "compiler/codegen/emit.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCRATCH_MAX ((size_t)256 << 20)

void emit_fail(struct emit *e, const char *what) {
        if (!e->error)
                af_diag_error(e->diags, "codegen", "%s", what);
        if (!e->error)
                e->error = AF_CODEGEN_E_TEMPLATE;
}

static const char *format(struct emit *e, const char *fmt, va_list ap) {
        char text[512];
        vsnprintf(text, sizeof(text), fmt, ap);
        const char *s = af_arena_strdup(&e->arena, text);
        if (!s)
                e->error = -ENOMEM;
        return s ? s : "";
}

const char *emit_text(struct emit *e, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        const char *s = format(e, fmt, ap);
        va_end(ap);
        return s;
}

void emit_line(struct emit *e, const char *fmt, ...) {
        char text[2048];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        af_buf_printf(&e->body, "%*s%s\n", (int)(4 * e->indent), "", text);
}

void emit_use(struct emit *e, enum emit_lib lib) {
        e->libs[lib] |= 1;
}

static const char *call_of(enum af_combine combine) {
        static const char *const calls[] = {
                [AF_COMBINE_ADD] = "Add", [AF_COMBINE_MAX] = "Max", [AF_COMBINE_MIN] = "Min", [AF_COMBINE_MUL] = "Mul"};
        return calls[combine];
}

const char *emit_op(struct emit *e, enum af_combine combine) {
        e->libs[EMIT_LIB_OP] |= 1u << combine;
        return emit_text(e, "%sOf", call_of(combine));
}

void emit_declare(struct emit *e, const char *type, const char *const *items, uint32_t n) {
        const char *line = NULL;
        for (uint32_t i = 0; i < n; i++) {
                if (!items[i])
                        continue;
                if (line && strlen(line) + strlen(items[i]) > EMIT_LONG) {
                        emit_line(e, "%s;", line);
                        line = NULL;
                }
                line = line ? emit_text(e, "%s, %s", line, items[i]) : emit_text(e, "%s %s", type, items[i]);
        }
        if (line)
                emit_line(e, "%s;", line);
}

/* A phase's "p1_tiles" is plain "tiles" unless an earlier phase has another size by that name. */
static const char *size(struct emit *e, const char *type, int64_t value, uint32_t x, const char *wanted) {
        const char *name = *wanted == 'p' && wanted[1] != 'a' ? strchr(wanted, '_') + 1 : wanted;
        uint32_t n = 0;
        for (uint32_t i = 0; i < e->n_fields;) {
                const struct emit_field *f = &e->fields[i++];
                if (strcmp(f->name, name) != 0)
                        continue;
                if (f->x == x && (x || f->value == value))
                        return emit_text(e, "t.%s", name);
                n++;
                name = n == 1 ? wanted : emit_text(e, "%s_%u", wanted, n); /* several of a phase, as a concat's offsets of one value */
                i = 0;
        }
        if (af_arena_grow(&e->arena, &e->fields, &e->cap_fields, e->n_fields + 1, sizeof(*e->fields))) {
                e->error = -ENOMEM;
                return "";
        }
        e->fields[e->n_fields++] = (struct emit_field){type, name, value, x};
        return emit_text(e, "t.%s", name);
}

const char *emit_size(struct emit *e, const char *type, int64_t value, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        const char *name = format(e, fmt, ap);
        va_end(ap);
        return size(e, type, value, 0, name);
}

const char *emit_size_x(struct emit *e, const char *type, int64_t value, uint32_t x, const char *fmt, ...) {
        va_list ap;
        va_start(ap, fmt);
        const char *name = format(e, fmt, ap);
        va_end(ap);
        return size(e, type, value, x, name);
}

static const char *arg_name(struct emit *e, uint32_t i) {
        uint32_t n_in = 0, n_out = 0;
        for (uint32_t j = 0; j < i; j++) {
                n_in += e->k->args[j].kind == AF_KARG_INPUT;
                n_out += e->k->args[j].kind == AF_KARG_OUTPUT;
        }
        switch (e->k->args[i].kind) {
        case AF_KARG_INPUT:
                return emit_text(e, "in%u", n_in);
        case AF_KARG_OUTPUT:
                return emit_text(e, "out%u", n_out);
        case AF_KARG_WORKSPACE:
                break;
        }
        return "workspace";
}

/* The GM that the kernel works on, by type; NULL: none. */
static void emit_memory(struct emit *e, uint32_t n, const char *const *types, const char *const *items) {
        const char **same = af_arena_calloc(&e->arena, n, sizeof(*same));
        if (!same)
                e->error = -ENOMEM;
        for (uint32_t i = 0; same && i < n; i++) {
                uint32_t first = 0;
                while (types[i] && (!types[first] || strcmp(types[first], types[i]) != 0))
                        first++;
                if (!types[i] || first != i)
                        continue;
                for (uint32_t k = 0; k < n; k++)
                        same[k] = types[k] && strcmp(types[k], types[i]) == 0 ? items[k] : NULL;
                emit_declare(e, emit_text(e, "Gm<%s>", types[i]), same, n);
        }
}

static void emit_setup(struct emit *e) {
        const struct af_kernel *k = e->k;
        uint32_t n = k->n_args + k->n_regions;
        const char **types = af_arena_calloc(&e->arena, n, sizeof(*types)), **items = af_arena_calloc(&e->arena, n, sizeof(*items));
        emit_line(e, "SetSaturationFlag<SaturationMode::FLOAT>(false); // halves overflow to infinity");
        if (!types || !items) {
                e->error = -ENOMEM;
                return;
        }
        for (uint32_t i = 0; i < k->n_args; i++) {
                if (k->args[i].kind == AF_KARG_WORKSPACE)
                        continue;
                types[i] = emit_type(k->args[i].dtype);
                items[i] = emit_text(e, "gm%u(%s)", i, arg_name(e, i));
        }
        for (uint32_t i = 0; i < k->n_regions; i++) {
                const struct af_region *r = &k->regions[i];
                const char *at = emit_size_x(e, "uint64_t", (int64_t)r->offset, r->offset_x, "part_bytes%u", i);
                types[k->n_args + i] = emit_type(r->dtype);
                items[k->n_args + i] = emit_text(e, "gm%u(workspace + %s)", k->n_args + i, at);
        }
        emit_memory(e, n, types, items);
}

/* Each layout of UB has a scope of its own, where there are several. */
static void emit_body(struct emit *e) {
        bool one = true;
        e->indent = 1;
        emit_setup(e);
        for (uint32_t i = 1; i < e->k->n_phases; i++)
                one &= e->k->phases[i].joins;
        for (uint32_t i = 0; i < e->k->n_phases && !e->error; i++) {
                const struct af_phase *p = &e->k->phases[i];
                if (i && !p->joins) {
                        e->indent--;
                        emit_line(e, "}");
                }
                if (i)
                        emit_line(e, p->sync_before ? "SyncAll<true>();" : "PipeBarrier<PIPE_ALL>();"); /* the former is the latter too */
                if (!one && !p->joins) {
                        emit_line(e, "{");
                        e->indent++;
                }
                emit_phase(e, i);
        }
        if (!one) {
                e->indent--;
                emit_line(e, "}");
        }
}

static const struct af_template *find_template(const struct af_templates *t, const char *name) {
        for (uint32_t i = 0; i < t->n; i++)
                if (strcmp(t->names[i], name) == 0)
                        return t->templates[i];
        return NULL;
}

static int render(struct emit *e, const struct af_templates *t, const char *name, const struct af_jval *context, struct af_buf *out) {
        const struct af_template *tmpl = find_template(t, name);
        if (!tmpl) {
                af_diag_error(e->diags, "rules/templates", "no template '%s'", name);
                return AF_CODEGEN_E_TEMPLATE;
        }
        int r = af_jinja_render(tmpl, context, out, e->diags);
        return r > 0 ? AF_CODEGEN_E_TEMPLATE : r;
}

static int render_helpers(struct emit *e, const struct af_templates *t, struct af_buf *out) {
        static const char *const names[] = {
#define AF_X(id, name) name,
                EMIT_LIBS(AF_X)
#undef AF_X
        };
        static const char *const keys[] = {"call"};
        e->libs[EMIT_LIB_TILE] |= 1;
        for (unsigned lib = 0; lib < EMIT_N_LIBS; lib++)
                for (unsigned c = 0; c < 4; c++) {
                        if (!(e->libs[lib] >> c & 1))
                                continue;
                        struct af_jval call = {.kind = AF_JVAL_STR, .s = call_of((enum af_combine)c)};
                        struct af_jval context = {.kind = AF_JVAL_DICT, .items = &call, .keys = keys, .n = 1};
                        int r = render(e, t, names[lib], &context, out);
                        if (r)
                                return r;
                        af_buf_put_str(out, "\n"); /* the last newline of a template is dropped */
                }
        af_buf_put_u8(out, 0);
        return af_buf_error(out);
}

static const char *ops_text(struct emit *e) {
        struct af_buf text = AF_BUF_INIT;
        for (uint32_t i = 0; i < e->k->group->n_nodes; i++)
                af_buf_printf(&text, "%s%s", i ? ", " : "", af_op_info(e->k->g->nodes[e->k->group->nodes[i]].op)->name);
        const char *s = af_arena_memdup(&e->arena, text.size ? text.data : (const uint8_t *)"", text.size);
        af_buf_deinit(&text);
        if (!s)
                e->error = -ENOMEM;
        return s;
}

static struct af_jval str(const char *s) {
        return (struct af_jval){.kind = AF_JVAL_STR, .s = s};
}

/* Constants of one type share lines; what the entry gets has one each, in order. */
static bool same_line(const struct emit_field *a, const struct emit_field *b) {
        return !a->x && !b->x && strcmp(a->type, b->type) == 0;
}

/* The constants like the i-th field, which is the first of them. */
static void put_constants(const struct emit *e, uint32_t i, const char *type, struct af_buf *out) {
        const struct emit_field *f = e->fields;
        size_t line = out->size;
        af_buf_printf(out, "    %s %s = %" PRId64, type, f[i].name, f[i].value);
        for (uint32_t k = i + 1; k < e->n_fields; k++) {
                if (!same_line(&f[i], &f[k]))
                        continue;
                if (out->size - line > EMIT_LONG) {
                        af_buf_put_str(out, ";\n");
                        line = out->size;
                        af_buf_printf(out, "    %s %s = %" PRId64, type, f[k].name, f[k].value);
                } else {
                        af_buf_printf(out, ", %s = %" PRId64, f[k].name, f[k].value);
                }
        }
        af_buf_put_str(out, ";\n");
}

/* The members of struct Tiling as text; false: an error. */
static bool put_members(const struct emit *e, bool dynamic, struct af_buf *out) {
        for (uint32_t i = 0; i < e->n_fields; i++) {
                const struct emit_field *f = &e->fields[i];
                char type[40];
                uint32_t first = 0;
                while (first < i && !same_line(&e->fields[first], f))
                        first++;
                snprintf(type, sizeof(type), "%s%s", dynamic ? "static constexpr " : "", f->type);
                if (f->x)
                        af_buf_printf(out, "    %s %s;\n", f->type, f->name);
                else if (first == i)
                        put_constants(e, i, type, out);
        }
        af_buf_put_u8(out, 0);
        return !af_buf_error(out);
}

static int render_all(struct emit *e, const struct af_templates *t, struct af_buf *out) {
        static const char *const arg_keys[] = {"name"};
        static const char *const keys[] = {"ops", "symbol", "helpers", "body", "members", "args", "sync", "dynamic"};
        AF_CLEANUP(af_buf_deinit) struct af_buf helpers = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf members = AF_BUF_INIT;
        int r = render_helpers(e, t, &helpers);
        if (r)
                return r;
        af_buf_put_u8(&e->body, 0);
        bool dynamic = false;
        for (uint32_t i = 0; i < e->n_fields; i++)
                dynamic |= e->fields[i].x != 0;
        struct af_jval *args = af_arena_calloc(&e->arena, e->k->n_args, sizeof(*args)),
                       *names = af_arena_calloc(&e->arena, e->k->n_args, sizeof(*names));
        if (!args || !names || !put_members(e, dynamic, &members) || af_buf_error(&e->body))
                return -ENOMEM;
        for (uint32_t i = 0; i < e->k->n_args; i++) {
                names[i] = str(arg_name(e, i));
                args[i] = (struct af_jval){.kind = AF_JVAL_DICT, .items = &names[i], .keys = arg_keys, .n = 1};
        }
        struct af_jval items[] = {
                str(ops_text(e)),
                str(AF_SYMBOL_PLACEHOLDER),
                str((const char *)helpers.data),
                str((const char *)e->body.data),
                str((const char *)members.data),
                {.kind = AF_JVAL_LIST, .items = args, .n = e->k->n_args},
                {.kind = AF_JVAL_BOOL, .i = e->k->needs_sync_all},
                {.kind = AF_JVAL_BOOL, .i = dynamic},
        };
        struct af_jval context = {.kind = AF_JVAL_DICT, .items = items, .keys = keys, .n = AF_ARRAY_SIZE(keys)};
        r = e->error ? e->error : render(e, t, e->k->group->tmpl, &context, out);
        af_buf_put_str(out, "\n");
        return r ? r : af_buf_error(out);
}

/* The fields that the entry takes by value, in the order in which the struct has them. */
static int copy_tiling(const struct emit *e, struct af_tiling *ret) {
        struct af_arena *arena = e->k->g->arena;
        *ret = (struct af_tiling){.fields = af_arena_calloc(arena, e->n_fields, sizeof(*ret->fields))};
        if (!ret->fields)
                return -ENOMEM;
        for (uint32_t i = 0; i < e->n_fields; i++) {
                const struct emit_field *f = &e->fields[i];
                if (f->x)
                        ret->fields[ret->n++] = (struct af_tiling_field){.type = strcmp(f->type, "float") == 0      ? 2
                                                                                 : strcmp(f->type, "uint32_t") == 0 ? 0
                                                                                                                    : 1,
                                                                         .x = f->x,
                                                                         .value = f->value};
        }
        return ret->n <= AF_TILING_MAX_FIELDS ? 0 : -ENOMEM;
}

int af_codegen_emit(const struct af_kernel *k, const struct af_templates *templates, struct af_buf *out, struct af_tiling *ret_tiling,
                    struct af_diags *diags) {
        struct emit e = {.k = k, .diags = diags, .last_node = AF_NONE};
        af_arena_init(&e.arena, SCRATCH_MAX);
        emit_body(&e);
        int r = e.error ? e.error : af_buf_error(&e.body);
        if (!r)
                r = render_all(&e, templates, out);
        if (!r)
                r = copy_tiling(&e, ret_tiling);
        af_buf_deinit(&e.body);
        af_arena_deinit(&e.arena);
        return r;
}

#define SYMBOL_OPS 4

void af_codegen_symbol(const struct af_kernel *k, const struct af_digest *key, struct af_buf *out) {
        char hex[17];
        af_hex(key->bytes, 8, hex);
        af_buf_put_str(out, "autofused_");
        for (uint32_t i = 0; i < k->group->n_nodes && i < SYMBOL_OPS; i++)
                af_buf_printf(out, "%s_", af_op_info(k->g->nodes[k->group->nodes[i]].op)->name);
        af_buf_put_str(out, hex);
}

void af_codegen_instantiate(const void *source, size_t n, const char *symbol, struct af_buf *out) {
        const char *s = source, *end = s + n;
        while (s < end) {
                const char *at = memmem(s, (size_t)(end - s), AF_SYMBOL_PLACEHOLDER, strlen(AF_SYMBOL_PLACEHOLDER));
                if (!at)
                        break;
                af_buf_put(out, s, (size_t)(at - s));
                af_buf_put_str(out, symbol);
                s = at + strlen(AF_SYMBOL_PLACEHOLDER);
        }
        af_buf_put(out, s, (size_t)(end - s));
}
