/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to fragment. The text is scanned strictly first (json_scan.h), whatever order its keys stand in; then the values are read in the
 * order in which they depend on each other. Numbers keep their text. What an item needs while it is read lives in scratch, which stays
 * small.
 */
#include "proto/fragment_parse.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/number.h"

_Static_assert(AF_JSON_MAX_DEPTH == AF_LIMIT_NESTING, "one limit of nesting");
_Static_assert(AF_LIMIT_TEXT_BYTES <= AF_JSON_MAX_TEXT, "offsets are 32 bits");

#define SCHEMA    "autofuse.fragment/1"
#define MAX_SHOWN 64u /* bytes of a name in a message */

static const struct af_json_key fragment_keys[] = AF_KEY_LIST(AF_KEYS_FRAGMENT);
static const struct af_json_key target_keys[] = AF_KEY_LIST(AF_KEYS_TARGET);
static const struct af_json_key symbol_keys[] = AF_KEY_LIST(AF_KEYS_SYMBOL);
static const struct af_json_key input_keys[] = AF_KEY_LIST(AF_KEYS_INPUT);
static const struct af_json_key constant_keys[] = AF_KEY_LIST(AF_KEYS_CONSTANT);
static const struct af_json_key output_keys[] = AF_KEY_LIST(AF_KEYS_OUTPUT);

static void put_where(const struct af_where *at, struct af_buf *buf) {
        if (!at)
                return;
        put_where(at->up, buf);
        if (at->field)
                af_buf_printf(buf, "%s%s", buf->size > 0 ? "." : "", at->field);
        if (at->index != AF_NONE)
                af_buf_printf(buf, "[%u]", at->index);
        if (at->label)
                af_buf_printf(buf, " \"%.*s\"", (int)AF_MIN(at->n_label, MAX_SHOWN), at->label);
}

void af_parse_fail(struct af_fragment_parser *p, const struct af_where *at, const char *hint, const char *fmt, ...) {
        AF_CLEANUP(af_buf_deinit) struct af_buf where = AF_BUF_INIT;
        char what[512];
        va_list args;

        p->n_errors++;
        if (!p->diags)
                return;
        if (p->diags->n_items < AF_DIAG_MAX)
                put_where(at, &where);
        va_start(args, fmt);
        vsnprintf(what, sizeof(what), fmt, args);
        va_end(args);
        af_diag_add(p->diags, AF_SEVERITY_ERROR, where.size > 0 && !where.error ? (const char *)where.data : "fragment", hint, "%s", what);
}

bool af_parse_is(const struct af_fragment_parser *p, const struct af_json_value *item, const char *word) {
        size_t n = strlen(word);

        return item && item->kind == AF_JSON_STRING && item->n == n && memcmp(af_json_text(&p->json, item->at), word, n) == 0;
}

bool af_parse_digits(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (text[i] != '-' && (text[i] < '0' || text[i] > '9'))
                        return false;
        return true;
}

bool af_parse_integer(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item, int64_t *ret_v) {
        if (item->kind != AF_JSON_NUMBER && item->kind != AF_JSON_STRING) {
                af_parse_fail(p, at, NULL, "is not an integer");
                return false;
        }
        const char *text = af_json_text(&p->json, item->at);
        /* A string is for digits that a number would lose: 1e3 in one is a mistake. */
        bool ok = item->kind == AF_JSON_NUMBER || af_parse_digits(text, item->n);
        switch (ok ? af_number_int64(text, item->n, ret_v) : AF_NUMBER_E_SYNTAX) {
        case AF_NUMBER_E_SYNTAX:
                af_parse_fail(p, at, NULL, "is not an integer");
                return false;
        case AF_NUMBER_E_RANGE:
                af_parse_fail(p, at, NULL, "does not fit 64 bits");
                return false;
        }
        return true;
}

/* An integer within min .. max where the field is there, else *v stays. */
static void read_integer(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item, int64_t min,
                         int64_t max, int64_t *v) {
        int64_t read;

        if (!item || !af_parse_integer(p, at, item, &read))
                return;
        if (read < min || read > max)
                af_parse_fail(p, at, NULL, "is %lld, must be %lld .. %lld", (long long)read, (long long)min, (long long)max);
        else
                *v = read;
}

const char *af_parse_name(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
        const char *name = NULL;

        if (!item)
                return NULL;
        if (item->kind != AF_JSON_STRING)
                af_parse_fail(p, at, NULL, "is not a string");
        else if (item->n == 0)
                af_parse_fail(p, at, NULL, "is empty");
        else if (item->n > AF_LIMIT_NAME_BYTES)
                af_parse_fail(p, at, NULL, "is longer than %u bytes", AF_LIMIT_NAME_BYTES);
        else if (!(name = af_arena_memdup(&p->scratch, af_json_text(&p->json, item->at), item->n)))
                p->error = -ENOMEM;
        return name;
}

/* One of the words; the index of the first where absent or after a diagnostic. */
static unsigned read_word(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item,
                          const char *const *words, unsigned n_words) {
        if (!item)
                return 0;
        for (unsigned i = 0; i < n_words; i++)
                if (af_parse_is(p, item, words[i]))
                        return i;
        af_parse_fail(p, at, NULL, n_words == 2 ? "must be \"%s\" or \"%s\"" : "must be \"%s\", \"%s\" or \"%s\"", words[0], words[1],
                      words[n_words - 1]);
        return 0;
}

static void refuse_key(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item,
                       const struct af_json_key *keys) {
        AF_CLEANUP(af_buf_deinit) struct af_buf known = AF_BUF_INIT;

        af_buf_put_str(&known, "known:");
        for (; keys->name; keys++)
                af_buf_printf(&known, " %s", keys->name);
        af_parse_fail(p, at, af_buf_error(&known) ? NULL : (const char *)known.data, "unknown key \"%.*s\"",
                      (int)AF_MIN(item->n_key, MAX_SHOWN), af_json_text(&p->json, item->key_at));
}

/* Whether a member of an object has this key. */
static bool has_key(const struct af_fragment_parser *p, const struct af_json_value *member, const char *key) {
        size_t n = strlen(key);

        return member->n_key == n && memcmp(af_json_text(&p->json, member->key_at), key, n) == 0;
}

bool af_parse_object(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item,
                     const struct af_json_key *keys, struct af_json_fields *ret) {
        uint32_t before = p->n_errors;

        *ret = (struct af_json_fields){0};
        if (item->kind != AF_JSON_OBJECT) {
                af_parse_fail(p, at, NULL, "is not an object");
                return false;
        }
        af_json_each(child, item) {
                unsigned i = 0;
                while (keys[i].name && !has_key(p, child, keys[i].name))
                        i++;
                if (keys[i].name)
                        ret->of[i] = child;
                else
                        refuse_key(p, at, child, keys);
        }
        for (unsigned i = 0; keys[i].name; i++)
                if (keys[i].required && !ret->of[i])
                        af_parse_fail(p, AF_FIELD(at, keys[i].name), NULL, "is missing");
        return p->n_errors == before;
}

/* For messages: what an object has under key, where that is a string. */
static void read_label(const struct af_fragment_parser *p, const struct af_json_value *item, const char *key, struct af_where *ret_at) {
        ret_at->label = NULL;
        if (item->kind != AF_JSON_OBJECT)
                return;
        af_json_each(child, item) {
                if (!has_key(p, child, key))
                        continue;
                ret_at->label = child->kind == AF_JSON_STRING ? af_json_text(&p->json, child->at) : NULL;
                ret_at->n_label = child->n;
                return;
        }
}

/* An integer or an expression. False after a diagnostic; negative: whether a constant may be. */
static int read_dim(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item, bool negative,
                    uint32_t *ret_id) {
        const char *text = af_json_text(&p->json, item->at);
        bool is_string = item->kind == AF_JSON_STRING;
        int64_t v;
        int r;

        if (item->kind == AF_JSON_NUMBER) {
                if (!af_parse_integer(p, at, item, &v))
                        return 0;
                r = af_expr_const(&p->f->exprs, v, ret_id);
        } else if (is_string) {
                r = af_expr_parse_sorted(&p->f->exprs, text, item->n, p->symbol_names, p->symbol_order, p->f->n_symbols, ret_id);
        } else {
                af_parse_fail(p, at, NULL, "is neither an integer nor an expression");
                return 0;
        }
        if (r > 0)
                af_parse_fail(p, at, NULL, "\"%.*s\" %s", is_string ? (int)AF_MIN(item->n, 100u) : 0, text, af_expr_error_text(r));
        else if (r == 0 && !negative && af_expr_is_const(&p->f->exprs, *ret_id, &v) && v < 0)
                af_parse_fail(p, at, NULL, "is %lld: negative", (long long)v);
        return AF_MIN(r, 0);
}

int af_parse_dims(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *list, bool attribute,
                  const uint32_t **ret_ids, uint32_t *ret_n) {
        const uint32_t limit = attribute ? AF_LIMIT_ATTR_ITEMS : AF_LIMIT_RANK;
        uint32_t *ids = af_arena_calloc(&p->scratch, AF_MIN(list->n, limit), sizeof(*ids));
        struct af_where element = {.up = at};

        if (!ids)
                return -ENOMEM;
        *ret_ids = ids;
        *ret_n = 0;
        if (list->kind != AF_JSON_LIST) {
                af_parse_fail(p, at, NULL, "is not a list");
                return 0;
        }
        af_json_each(item, list) {
                if (element.index == limit) {
                        af_parse_fail(p, at, NULL, attribute ? "more than %u items" : "more than %u axes", limit);
                        break;
                }
                int r = read_dim(p, &element, item, attribute, &ids[element.index]);
                if (r < 0)
                        return r;
                element.index++;
        }
        *ret_n = element.index;
        return 0;
}

static enum af_dtype read_dtype(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
        const char *text = "this";
        uint32_t n = 4;

        if (item->kind == AF_JSON_STRING) {
                text = af_json_text(&p->json, item->at);
                n = item->n;
                for (int d = AF_DTYPE_INVALID + 1; d < AF_N_DTYPES; d++)
                        if (af_parse_is(p, item, af_dtype_name((enum af_dtype)d)))
                                return (enum af_dtype)d;
        }
        af_parse_fail(p, at, "bool int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64", "%.*s is no dtype",
                      (int)AF_MIN(n, MAX_SHOWN), text);
        return AF_DTYPE_INVALID;
}

int af_parse_tensor(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *name,
                    const struct af_json_value *dtype, const struct af_json_value *shape, const struct af_json_value *strides,
                    struct af_fragment_tensor *ret_t) {
        struct af_fragment_tensor t = {.name = af_parse_name(p, AF_FIELD(at, "name"), name)};
        uint32_t n_strides;

        t.dtype = read_dtype(p, AF_FIELD(at, "dtype"), dtype);
        int r = af_parse_dims(p, AF_FIELD(at, "shape"), shape, false, &t.dims, &t.rank);
        if (r == 0 && strides) {
                r = af_parse_dims(p, AF_FIELD(at, "strides"), strides, false, &t.strides, &n_strides);
                if (r == 0 && n_strides != t.rank)
                        af_parse_fail(p, AF_FIELD(at, "strides"), NULL, "%u strides for %u axes", n_strides, t.rank);
                t.has_strides = true;
        }
        *ret_t = t;
        return r;
}

/* What is left over where the parser's own checks and the builder's differ; never a silent success. */
int af_parse_added(struct af_fragment_parser *p, int r) {
        if (r > 0)
                p->n_errors++;
        return AF_MIN(r, 0);
}

static int read_symbol(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
        struct af_fragment_symbol s = {.max = INT64_MAX, .hint = -1, .multiple_of = 1};
        uint32_t before = p->n_errors;
        struct af_json_fields f;

        if (!af_parse_object(p, at, item, symbol_keys, &f))
                return 0;
        s.name = af_parse_name(p, AF_FIELD(at, "name"), f.of[KEY_SYMBOL_name]);
        read_integer(p, AF_FIELD(at, "min"), f.of[KEY_SYMBOL_min], 0, INT64_MAX, &s.min);
        read_integer(p, AF_FIELD(at, "max"), f.of[KEY_SYMBOL_max], s.min, INT64_MAX, &s.max);
        read_integer(p, AF_FIELD(at, "hint"), f.of[KEY_SYMBOL_hint], 0, INT64_MAX, &s.hint);
        read_integer(p, AF_FIELD(at, "multiple_of"), f.of[KEY_SYMBOL_multiple_of], 1, INT64_MAX, &s.multiple_of);
        return p->n_errors == before ? af_parse_added(p, af_fragment_add_symbol(p->f, &s, p->diags)) : 0;
}

static int read_input(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
        struct af_fragment_input in = {0};
        uint32_t before = p->n_errors;
        int64_t align = 0;
        struct af_json_fields f;

        if (!af_parse_object(p, at, item, input_keys, &f))
                return 0;
        int r = af_parse_tensor(p, at, f.of[KEY_INPUT_name], f.of[KEY_INPUT_dtype], f.of[KEY_INPUT_shape], f.of[KEY_INPUT_strides], &in.t);
        if (r == 0)
                r = f.of[KEY_INPUT_offset] ? read_dim(p, AF_FIELD(at, "offset"), f.of[KEY_INPUT_offset], false, &in.offset)
                                           : af_expr_const(&p->f->exprs, 0, &in.offset);
        if (r != 0)
                return r;
        read_integer(p, AF_FIELD(at, "align"), f.of[KEY_INPUT_align], 1, AF_LIMIT_ALIGN, &align);
        if ((align & (align - 1)) != 0)
                af_parse_fail(p, AF_FIELD(at, "align"), NULL, "is %lld: no power of two", (long long)align);
        in.align = (uint32_t)align;
        in.buffer = af_parse_name(p, AF_FIELD(at, "buffer"), f.of[KEY_INPUT_buffer]);
        const struct af_json_value *host = f.of[KEY_INPUT_host];
        in.host = host && host->kind == AF_JSON_TRUE;
        if (host && !in.host && host->kind != AF_JSON_FALSE)
                af_parse_fail(p, AF_FIELD(at, "host"), NULL, "is neither true nor false");
        if (in.host && in.t.rank != 0)
                af_parse_fail(p, AF_FIELD(at, "host"), NULL, "a host scalar has shape []");
        return p->n_errors == before ? af_parse_added(p, af_fragment_add_input(p->f, &in, p->diags)) : 0;
}

static bool constant_size(struct af_fragment_parser *p, const struct af_where *at, const struct af_fragment_tensor *t, size_t *ret_n) {
        uint64_t n = af_dtype_size(t->dtype);
        int64_t d;

        for (uint32_t i = 0; i < t->rank; i++) {
                if (!af_expr_is_const(&p->f->exprs, t->dims[i], &d)) {
                        af_parse_fail(p, AF_FIELD(at, "shape"), NULL, "a constant's dimensions are integers");
                        return false;
                }
                if (__builtin_mul_overflow(n, (uint64_t)d, &n))
                        n = UINT64_MAX / 2; /* a zero further on still makes it empty */
        }
        if (n > AF_LIMIT_CONSTANT_BYTES - p->f->n_constant_bytes) {
                af_parse_fail(p, at, "pass large ones as inputs", "constants of more than %u bytes together", AF_LIMIT_CONSTANT_BYTES);
                return false;
        }
        *ret_n = n;
        return true;
}

static int read_constant(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
        struct af_fragment_constant c = {0};
        uint32_t before = p->n_errors;
        struct af_json_fields f;

        if (!af_parse_object(p, at, item, constant_keys, &f))
                return 0;
        const struct af_json_value *bits = f.of[KEY_CONSTANT_bits], *value = f.of[KEY_CONSTANT_value];
        if (!bits == !value)
                af_parse_fail(p, at, NULL, "has %s bits and value; it needs one of them", bits ? "both" : "neither");
        int r = af_parse_tensor(p, at, f.of[KEY_CONSTANT_name], f.of[KEY_CONSTANT_dtype], f.of[KEY_CONSTANT_shape], NULL, &c.t);
        if (r != 0 || p->n_errors != before || !constant_size(p, at, &c.t, &c.n_bytes))
                return r;
        uint8_t *bytes = af_arena_alloc(&p->scratch, c.n_bytes);
        if (!bytes)
                return -ENOMEM;
        c.bytes = bytes;
        af_parse_constant_bytes(p, at, &c.t, bits, value, bytes, c.n_bytes);
        return p->n_errors == before ? af_parse_added(p, af_fragment_add_constant(p->f, &c, p->diags)) : 0;
}

static int read_output(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item) {
        struct af_fragment_output o = {0};
        uint32_t before = p->n_errors;
        struct af_json_fields f = {0};
        int r = 0;

        if (item->kind == AF_JSON_STRING) {
                o.value = af_parse_name(p, at, item);
        } else {
                if (!af_parse_object(p, at, item, output_keys, &f))
                        return 0;
                o.value = af_parse_name(p, AF_FIELD(at, "value"), f.of[KEY_OUTPUT_value]);
                o.alias_of = af_parse_name(p, AF_FIELD(at, "alias_of"), f.of[KEY_OUTPUT_alias_of]);
                o.has_strides = f.of[KEY_OUTPUT_strides] != NULL;
                if (o.has_strides)
                        r = af_parse_dims(p, AF_FIELD(at, "strides"), f.of[KEY_OUTPUT_strides], false, &o.strides, &o.n_strides);
        }
        return r == 0 && p->n_errors == before ? af_parse_added(p, af_fragment_add_output(p->f, &o, p->diags)) : r;
}

/* Reads each object of a list; stops with one message where there are more than limit. */
static int read_list(struct af_fragment_parser *p, const char *field, const struct af_json_value *list, const char *label, uint32_t limit,
                     int (*read)(struct af_fragment_parser *p, const struct af_where *at, const struct af_json_value *item)) {
        struct af_where at = {.field = field};

        if (!list)
                return 0;
        if (list->kind != AF_JSON_LIST) {
                af_parse_fail(p, AF_FIELD(NULL, field), NULL, "is not a list");
                return 0;
        }
        af_json_each(item, list) {
                if (at.index == limit) {
                        af_parse_fail(p, AF_FIELD(NULL, field), NULL, "more than %u %s", limit, field);
                        return 0;
                }
                read_label(p, item, label, &at);
                af_arena_reset(&p->scratch);
                int r = read(p, &at, item);
                if (r < 0 || p->error)
                        return r < 0 ? r : p->error;
                at.index++;
        }
        return 0;
}

/* Room for all elements of a list at once. */
static int reserve_nodes(struct af_fragment_parser *p, const struct af_json_value *list) {
        return list ? af_arena_grow(p->f->arena, &p->f->nodes, &p->f->cap_nodes, AF_MIN(list->n, AF_LIMIT_NODES), sizeof(*p->f->nodes)) : 0;
}

static int read_target(struct af_fragment_parser *p, const struct af_json_value *item) {
        static const char *const twins[] = {"", "fast", "checked"};
        const struct af_where *at = AF_FIELD(NULL, "target");
        const char *soc, *toolchain;
        struct af_json_fields f;

        if (!item || !af_parse_object(p, at, item, target_keys, &f))
                return 0;
        soc = af_parse_name(p, AF_FIELD(at, "soc"), f.of[KEY_TARGET_soc]);
        toolchain = af_parse_name(p, AF_FIELD(at, "toolchain"), f.of[KEY_TARGET_toolchain]);
        if (f.of[KEY_TARGET_twin])
                p->f->twin = (enum af_twin)(1 + read_word(p, AF_FIELD(at, "twin"), f.of[KEY_TARGET_twin], twins + 1, 2));
        p->f->soc = soc ? af_arena_strdup(p->f->arena, soc) : NULL;
        p->f->toolchain = toolchain ? af_arena_strdup(p->f->arena, toolchain) : NULL;
        return (soc && !p->f->soc) || (toolchain && !p->f->toolchain) ? -ENOMEM : 0;
}

static int read_head(struct af_fragment_parser *p, const struct af_json_fields *f) {
        static const char *const numerics[] = {"strict", "fast"};
        const struct af_json_value *schema = f->of[KEY_FRAGMENT_schema], *name = f->of[KEY_FRAGMENT_name];

        if (schema && !af_parse_is(p, schema, SCHEMA))
                af_parse_fail(p, AF_FIELD(NULL, "schema"), NULL, "must be \"" SCHEMA "\"");
        p->f->numerics = (enum af_numerics)read_word(p, AF_FIELD(NULL, "numerics"), f->of[KEY_FRAGMENT_numerics], numerics, 2);
        if (name && !af_parse_is(p, name, "")) {
                const char *text = af_parse_name(p, AF_FIELD(NULL, "name"), name);
                if (text && !(p->f->name = af_arena_strdup(p->f->arena, text)))
                        return -ENOMEM;
        }
        return read_target(p, f->of[KEY_FRAGMENT_target]);
}

static int by_name(const void *a, const void *b, void *names) {
        const char *const *n = names;

        return strcmp(n[*(const uint32_t *)a], n[*(const uint32_t *)b]);
}

/* Once all symbols are known: so that expressions find them by bisection. */
static int index_symbols(struct af_fragment_parser *p) {
        uint32_t n = p->f->n_symbols;

        p->symbol_names = af_arena_calloc(p->f->arena, n, sizeof(*p->symbol_names));
        p->symbol_order = af_arena_calloc(p->f->arena, n, sizeof(*p->symbol_order));
        if (!p->symbol_names || !p->symbol_order)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                p->symbol_names[i] = p->f->symbols[i].name;
                p->symbol_order[i] = i;
        }
        qsort_r(p->symbol_order, n, sizeof(*p->symbol_order), by_name, p->symbol_names);
        return 0;
}

static int read_root(struct af_fragment_parser *p, const struct af_json_value *root) {
        struct af_json_fields f;

        /* A wrong or missing key does not hide what else is wrong. */
        af_parse_object(p, NULL, root, fragment_keys, &f);
        if (root->kind != AF_JSON_OBJECT)
                return 0;
        int r = read_head(p, &f);
        if (r == 0)
                r = read_list(p, "symbols", f.of[KEY_FRAGMENT_symbols], "name", AF_LIMIT_SYMBOLS, read_symbol);
        if (r == 0)
                r = index_symbols(p);
        if (r == 0)
                r = read_list(p, "inputs", f.of[KEY_FRAGMENT_inputs], "name", AF_LIMIT_VALUES, read_input);
        if (r == 0)
                r = read_list(p, "constants", f.of[KEY_FRAGMENT_constants], "name", AF_LIMIT_VALUES, read_constant);
        if (r == 0)
                r = reserve_nodes(p, f.of[KEY_FRAGMENT_nodes]);
        if (r == 0)
                r = read_list(p, "nodes", f.of[KEY_FRAGMENT_nodes], "name", AF_LIMIT_NODES, af_parse_node);
        if (r == 0)
                r = read_list(p, "outputs", f.of[KEY_FRAGMENT_outputs], "value", AF_LIMIT_OUTPUTS, read_output);
        return r;
}

/* In the C locale: numbers are read by it. */
static int read_values(struct af_fragment_parser *p) {
        locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

        if (!c_locale)
                return -ENOMEM;
        locale_t saved = uselocale(c_locale);
        af_arena_init(&p->scratch, 0);
        int r = read_root(p, af_json_root(&p->json));
        af_arena_deinit(&p->scratch);
        uselocale(saved);
        freelocale(c_locale);
        return r != 0 ? r : p->error;
}

int af_fragment_parse(struct af_fragment *f, const char *text, size_t n, struct af_diags *diags) {
        struct af_fragment_parser p = {.f = f, .diags = diags};

        if (n > AF_LIMIT_TEXT_BYTES) {
                af_parse_fail(&p, NULL, NULL, "text of more than %u bytes", AF_LIMIT_TEXT_BYTES);
                return AF_FRAGMENT_E_INVALID;
        }
        int r = af_json_scan(text, n, &p.json, diags);
        if (r == 0)
                r = read_values(&p);
        af_json_deinit(&p.json);
        return r < 0 ? r : r > 0 || p.n_errors > 0 ? AF_FRAGMENT_E_INVALID : 0;
}
