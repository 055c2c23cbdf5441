/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fragment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* open -> fixing (one thread prepares) -> fixed; fixing -> open where it is invalid. */
enum { FRAGMENT_OPEN, FRAGMENT_FIXING, FRAGMENT_FIXED };

struct autofuse_fragment {
        struct af_arena arena;
        struct af_fragment f;
        const char **symbols; /* names, for expressions */
        uint32_t cap_symbols;
        atomic_int state;
        pid_t fixing_pid;             /* who prepares: in a forked child nobody will finish it */
        struct af_prepared *prepared; /* valid when FIXED */
};

enum autofuse_status autofuse_fragment_new(const char *name, struct autofuse_fragment **ret_fragment, struct autofuse_error **ret_error) {
        if (!ret_fragment)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_fragment_new: no place for the fragment");
        struct autofuse_fragment *fragment = calloc(1, sizeof(*fragment));
        if (!fragment)
                return af_error_set_memory(ret_error);
        af_arena_init(&fragment->arena, 0);
        int r = af_fragment_init(&fragment->f, &fragment->arena);
        if (r == 0 && !(fragment->f.name = af_arena_strdup(&fragment->arena, name ? name : "")))
                r = -ENOMEM;
        if (r < 0) {
                autofuse_fragment_free(fragment);
                return af_error_set_memory(ret_error);
        }
        *ret_fragment = fragment;
        return AUTOFUSE_OK;
}

void autofuse_fragment_free(struct autofuse_fragment *fragment) {
        if (!fragment)
                return;
        af_prepared_unref(fragment->prepared);
        af_arena_deinit(&fragment->arena);
        free(fragment);
}

/* OK where it may still be changed. */
static enum autofuse_status check_open(const struct autofuse_fragment *fragment, const void *argument, struct autofuse_error **ret_error) {
        if (!fragment || !argument)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "fragment builder: an argument is NULL");
        if (atomic_load(&((struct autofuse_fragment *)fragment)->state) != FRAGMENT_OPEN)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "the fragment was submitted and can no longer be changed");
        return AUTOFUSE_OK;
}

/* Result of a builder call of proto/: consumes the diagnostics. */
static enum autofuse_status finish(int r, struct af_diags *diags, struct autofuse_error **ret_error) {
        enum autofuse_status status = r == 0 ? AUTOFUSE_OK : r < 0 ? af_error_set_memory(ret_error) : af_error_set_diags(ret_error, diags);
        af_diags_deinit(diags);
        return status;
}

static int convert_dim(struct autofuse_fragment *fragment, const struct autofuse_dim *dim, const char *where, uint32_t *ret_id,
                       struct af_diags *diags) {
        struct af_expr_pool *pool = &fragment->f.exprs;
        int r = dim->expr ? af_expr_parse(pool, dim->expr, fragment->symbols, fragment->f.n_symbols, ret_id)
                          : af_expr_const(pool, dim->value, ret_id);
        if (r > 0)
                af_diag_error(diags, where, "\"%s\" is not an expression over the symbols that were added", dim->expr ? dim->expr : "");
        return r;
}

static int convert_dims(struct autofuse_fragment *fragment, const struct autofuse_dim *dims, uint32_t n, const char *where,
                        const uint32_t **ret_ids, struct af_diags *diags) {
        if (n > AF_LIMIT_ATTR_ITEMS) { /* the rank of a shape has a lower limit of its own */
                af_diag_error(diags, where, "%u items are over the limit of %u", n, AF_LIMIT_ATTR_ITEMS);
                return AF_FRAGMENT_E_INVALID;
        }
        uint32_t *ids = af_arena_calloc(&fragment->arena, n, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                int r = convert_dim(fragment, &dims[i], where, &ids[i], diags);
                if (r != 0)
                        return r;
        }
        *ret_ids = ids;
        return 0;
}

static int convert_tensor(struct autofuse_fragment *fragment, const struct autofuse_tensor_spec *spec, struct af_fragment_tensor *ret,
                          struct af_diags *diags) {
        const char *where = spec->name ? spec->name : "";
        if (!spec->name || (spec->rank && !spec->dims) || af_dtype_size((enum af_dtype)spec->dtype) == 0 ||
            (unsigned)spec->dtype >= AF_N_DTYPES) {
                af_diag_error(diags, where, "a tensor needs a name, a dtype and its dims");
                return AF_FRAGMENT_E_INVALID;
        }
        struct af_fragment_tensor t = {
                .name = spec->name, .dtype = (enum af_dtype)spec->dtype, .rank = spec->rank, .has_strides = spec->strides != NULL};
        int r = convert_dims(fragment, spec->dims, spec->rank, where, &t.dims, diags);
        if (r == 0 && spec->strides)
                r = convert_dims(fragment, spec->strides, spec->rank, where, &t.strides, diags);
        if (r == 0)
                *ret = t;
        return r;
}

enum autofuse_status autofuse_fragment_set_target(struct autofuse_fragment *fragment, const char *soc, const char *toolchain,
                                                  enum autofuse_twin twin, struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, fragment, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        const char *soc_copy = soc ? af_arena_strdup(&fragment->arena, soc) : NULL;
        const char *toolchain_copy = toolchain ? af_arena_strdup(&fragment->arena, toolchain) : NULL;
        if ((soc && !soc_copy) || (toolchain && !toolchain_copy))
                return af_error_set_memory(ret_error);
        fragment->f.soc = soc_copy;
        fragment->f.toolchain = toolchain_copy;
        fragment->f.twin = twin == AUTOFUSE_TWIN_CHECKED ? AF_TWIN_CHECKED : twin == AUTOFUSE_TWIN_FAST ? AF_TWIN_FAST : AF_TWIN_DEFAULT;
        return AUTOFUSE_OK;
}

enum autofuse_status autofuse_fragment_set_numerics(struct autofuse_fragment *fragment, enum autofuse_numerics numerics,
                                                    struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, fragment, ret_error);
        if (status == AUTOFUSE_OK)
                fragment->f.numerics = numerics == AUTOFUSE_NUMERICS_FAST ? AF_NUMERICS_FAST : AF_NUMERICS_STRICT;
        return status;
}

enum autofuse_status autofuse_fragment_add_symbol(struct autofuse_fragment *fragment, const char *name, int64_t min, int64_t max,
                                                  int64_t multiple_of, int64_t hint, struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, name, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        struct af_diags diags = {0};
        uint32_t n = fragment->f.n_symbols;
        int r = af_arena_grow(&fragment->arena, &fragment->symbols, &fragment->cap_symbols, n + 1, sizeof(*fragment->symbols));
        struct af_fragment_symbol s = {.name = name, .min = min, .max = max, .multiple_of = multiple_of, .hint = hint};
        if (r == 0)
                r = af_fragment_add_symbol(&fragment->f, &s, &diags);
        if (r == 0)
                fragment->symbols[n] = fragment->f.symbols[n].name;
        return finish(r, &diags, ret_error);
}

enum autofuse_status autofuse_fragment_add_input(struct autofuse_fragment *fragment, const struct autofuse_input_spec *input,
                                                 struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, input, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        struct af_diags diags = {0};
        struct af_fragment_input in = {.align = input->align, .buffer = input->buffer, .host = input->host};
        int r = convert_tensor(fragment, &input->tensor, &in.t, &diags);
        if (r == 0)
                r = convert_dim(fragment, &input->offset, in.t.name, &in.offset, &diags);
        if (r == 0)
                r = af_fragment_add_input(&fragment->f, &in, &diags);
        return finish(r, &diags, ret_error);
}

enum autofuse_status autofuse_fragment_add_constant(struct autofuse_fragment *fragment, const struct autofuse_tensor_spec *tensor,
                                                    const void *bytes, size_t n_bytes, struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, tensor, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        struct af_diags diags = {0};
        struct af_fragment_constant c = {.bytes = bytes ? bytes : (const void *)"", .n_bytes = bytes ? n_bytes : 0};
        int r = convert_tensor(fragment, tensor, &c.t, &diags);
        if (r == 0)
                r = af_fragment_add_constant(&fragment->f, &c, &diags);
        return finish(r, &diags, ret_error);
}

static int convert_attr(struct autofuse_fragment *fragment, const struct autofuse_attr *attr, const char *where, struct af_attr *ret,
                        struct af_diags *diags) {
        enum af_attr_key key = attr->name ? af_attr_from_name(attr->name) : AF_N_ATTRS;
        static const enum af_attr_kind kinds[] = {
                [AUTOFUSE_ATTR_INT] = AF_ATTR_KIND_INT,       [AUTOFUSE_ATTR_INTS] = AF_ATTR_KIND_INTS,
                [AUTOFUSE_ATTR_FLOAT] = AF_ATTR_KIND_FLOAT,   [AUTOFUSE_ATTR_BOOL] = AF_ATTR_KIND_BOOL,
                [AUTOFUSE_ATTR_STRING] = AF_ATTR_KIND_STRING, [AUTOFUSE_ATTR_DIMS] = AF_ATTR_KIND_DIMS,
        };
        if (key == AF_N_ATTRS || (unsigned)attr->kind >= AF_ARRAY_SIZE(kinds)) {
                af_diag_error(diags, where, "unknown attribute \"%s\"", attr->name ? attr->name : "");
                return AF_FRAGMENT_E_INVALID;
        }
        /* An integer is exact where a float is wanted: alpha = 2. */
        bool int_for_float = af_attr_kind(key) == AF_ATTR_KIND_FLOAT && attr->kind == AUTOFUSE_ATTR_INT;
        if (kinds[attr->kind] != af_attr_kind(key) && !int_for_float) {
                af_diag_error(diags, where, "attribute \"%s\" is given with another kind than it has", attr->name);
                return AF_FRAGMENT_E_INVALID;
        }
        *ret = (struct af_attr){.key = key,
                                .i = attr->i,
                                .is_int = int_for_float,
                                .f = int_for_float ? (double)attr->i : attr->f,
                                .s = attr->s,
                                .n = attr->n};
        if (attr->kind == AUTOFUSE_ATTR_DIMS)
                return convert_dims(fragment, attr->dims, attr->n, where, &ret->dims, diags);
        ret->ints = attr->kind == AUTOFUSE_ATTR_INTS ? attr->ints : NULL;
        return 0;
}

/* Sorted by key, as proto/ wants them. */
static int attr_compare(const void *a, const void *b) {
        enum af_attr_key x = ((const struct af_attr *)a)->key, y = ((const struct af_attr *)b)->key;
        return x < y ? -1 : x > y;
}

static int convert_node(struct autofuse_fragment *fragment, const struct autofuse_node_spec *spec, struct af_fragment_node *ret,
                        struct af_diags *diags) {
        const char *where = spec->name ? spec->name : "";
        if (!spec->name || !spec->op || (spec->n_inputs && !spec->inputs) || (spec->n_attrs && !spec->attrs) || !spec->outputs) {
                af_diag_error(diags, where, "a node needs a name, an op, its inputs and outputs");
                return AF_FRAGMENT_E_INVALID;
        }
        struct af_attr *attrs = af_arena_calloc(&fragment->arena, spec->n_attrs, sizeof(*attrs));
        struct af_fragment_tensor *outputs = af_arena_calloc(&fragment->arena, spec->n_outputs, sizeof(*outputs));
        if (!attrs || !outputs)
                return -ENOMEM;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < spec->n_attrs; i++)
                r = convert_attr(fragment, &spec->attrs[i], where, &attrs[i], diags);
        for (uint32_t i = 0; r == 0 && i < spec->n_outputs; i++)
                r = convert_tensor(fragment, &spec->outputs[i], &outputs[i], diags);
        if (r != 0)
                return r;
        qsort(attrs, spec->n_attrs, sizeof(*attrs), attr_compare);
        for (uint32_t i = 1; i < spec->n_attrs; i++)
                if (attrs[i].key == attrs[i - 1].key) {
                        af_diag_error(diags, where, "attribute \"%s\" is given twice", af_attr_name(attrs[i].key));
                        return AF_FRAGMENT_E_INVALID;
                }
        *ret = (struct af_fragment_node){.name = spec->name,
                                         .op = spec->op,
                                         .origin = spec->origin,
                                         .inputs = spec->inputs,
                                         .n_inputs = spec->n_inputs,
                                         .attrs = attrs,
                                         .n_attrs = spec->n_attrs,
                                         .outputs = outputs,
                                         .n_outputs = spec->n_outputs};
        return 0;
}

enum autofuse_status autofuse_fragment_add_node(struct autofuse_fragment *fragment, const struct autofuse_node_spec *node,
                                                struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, node, ret_error);
        if (status != AUTOFUSE_OK)
                return status;
        struct af_diags diags = {0};
        struct af_fragment_node n;
        int r = convert_node(fragment, node, &n, &diags);
        if (r == 0)
                r = af_fragment_add_node(&fragment->f, &n, &diags);
        return finish(r, &diags, ret_error);
}

enum autofuse_status autofuse_fragment_add_output(struct autofuse_fragment *fragment, const struct autofuse_output_spec *output,
                                                  struct autofuse_error **ret_error) {
        enum autofuse_status status = check_open(fragment, output, ret_error);
        if (status == AUTOFUSE_OK && !output->value)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "an output names no value");
        if (status != AUTOFUSE_OK)
                return status;
        struct af_diags diags = {0};
        struct af_fragment_output o = {.value = output->value, .has_strides = output->strides != NULL, .alias_of = output->alias_of};
        int r = 0;
        if (output->strides) {
                o.n_strides = output->n_strides;
                r = convert_dims(fragment, output->strides, output->n_strides, output->value, &o.strides, &diags);
        }
        if (r == 0)
                r = af_fragment_add_output(&fragment->f, &o, &diags);
        return finish(r, &diags, ret_error);
}

/* This thread moved the state to FIXING. */
static enum autofuse_status fix(struct autofuse_fragment *fragment, struct autofuse_error **ret_error) {
        struct af_diags diags = {0};
        fragment->fixing_pid = getpid();
        int r = af_prepared_new(&fragment->f, &diags, &fragment->prepared);
        atomic_store(&fragment->state, r == 0 ? FRAGMENT_FIXED : FRAGMENT_OPEN);
        return finish(r, &diags, ret_error);
}

enum autofuse_status af_fragment_prepare(struct autofuse_fragment *fragment, struct af_prepared **ret_prepared,
                                         struct autofuse_error **ret_error) {
        for (;;) {
                int state = FRAGMENT_OPEN;
                if (atomic_load_explicit(&fragment->state, memory_order_acquire) == FRAGMENT_FIXED)
                        break;
                if (atomic_compare_exchange_strong(&fragment->state, &state, FRAGMENT_FIXING)) {
                        enum autofuse_status status = fix(fragment, ret_error);
                        if (status != AUTOFUSE_OK)
                                return status;
                        break;
                }
                if (state == FRAGMENT_FIXING) {
                        if (fragment->fixing_pid && fragment->fixing_pid != getpid())
                                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE,
                                                    "fork() caught the fragment while another thread checked it");
                        const struct timespec pause = {.tv_nsec = 50000};
                        nanosleep(&pause, NULL);
                }
        }
        *ret_prepared = af_prepared_ref(fragment->prepared);
        return AUTOFUSE_OK;
}

enum autofuse_status autofuse_fragment_validate(struct autofuse_fragment *fragment, struct autofuse_error **ret_error) {
        struct af_prepared *prepared = NULL;
        if (!fragment)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_fragment_validate: no fragment");
        enum autofuse_status status = af_fragment_prepare(fragment, &prepared, ret_error);
        if (status == AUTOFUSE_OK)
                af_prepared_unref(prepared);
        return status;
}

enum autofuse_status autofuse_fragment_digest(struct autofuse_fragment *fragment, char ret_hex[65], struct autofuse_error **ret_error) {
        struct af_prepared *prepared = NULL;
        if (!fragment || !ret_hex)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_fragment_digest: an argument is NULL");
        enum autofuse_status status = af_fragment_prepare(fragment, &prepared, ret_error);
        if (status == AUTOFUSE_OK) {
                af_digest_hex(&prepared->digest, ret_hex);
                af_prepared_unref(prepared);
        }
        return status;
}

void af_fragment_handle_print(const struct autofuse_fragment *fragment, struct af_buf *buf) {
        af_fragment_print(&fragment->f, 1, buf);
}
