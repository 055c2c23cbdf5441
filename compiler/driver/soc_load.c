/* SPDX-License-Identifier: Apache-2.0 */
/* rules/soc/<name>.yaml -> struct af_soc, by one table of keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/yaml_tree.h"
#include "compiler/driver/env.h"

enum field_kind { FIELD_TEXT, FIELD_U32, FIELD_DOUBLE, FIELD_BOOL, FIELD_DTYPES };
struct field {
        const char *key, *sub; /* sub: key inside a map, or NULL */
        enum field_kind kind;
        size_t offset, size;
};

#define AT(member) offsetof(struct af_soc, member), sizeof(((struct af_soc *)0)->member)
static const struct field fields[] = {
        {"name", NULL, FIELD_TEXT, AT(name)},
        {"arch", NULL, FIELD_TEXT, AT(arch)},
        {"ccec_arch", NULL, FIELD_TEXT, AT(ccec_arch)},
        {"vector_cores", NULL, FIELD_U32, AT(vector_cores)},
        {"ub_bytes", NULL, FIELD_U32, AT(ub_bytes)},
        {"queue_buffers", NULL, FIELD_U32, AT(queue_buffers)},
        {"max_inputs", NULL, FIELD_U32, AT(max_inputs)},
        {"max_nodes", NULL, FIELD_U32, AT(max_nodes)},
        {"dtypes", NULL, FIELD_DTYPES, AT(dtypes)},
        {"data_copy_pad", NULL, FIELD_BOOL, AT(data_copy_pad)},
        {"load", "a", FIELD_DOUBLE, AT(load.a)},
        {"load", "b", FIELD_DOUBLE, AT(load.b)},
        {"load", "h", FIELD_DOUBLE, AT(load.h)},
        {"load_small", "a", FIELD_DOUBLE, AT(load_small.a)},
        {"load_small", "b", FIELD_DOUBLE, AT(load_small.b)},
        {"load_small", "h", FIELD_DOUBLE, AT(load_small.h)},
        {"store", "a", FIELD_DOUBLE, AT(store.a)},
        {"store", "b", FIELD_DOUBLE, AT(store.b)},
        {"store", "h", FIELD_DOUBLE, AT(store.h)},
        {"small_bytes", NULL, FIELD_DOUBLE, AT(small_bytes)},
        {"head_mte2", "base", FIELD_DOUBLE, AT(head_mte2_base)},
        {"head_mte2", "per_block", FIELD_DOUBLE, AT(head_mte2_per_block)},
        {"head_mte2_small", "base", FIELD_DOUBLE, AT(head_mte2_small_base)},
        {"head_mte2_small", "per_block", FIELD_DOUBLE, AT(head_mte2_small_per_block)},
        {"head_mte2_small", "below_bytes", FIELD_DOUBLE, AT(head_mte2_small_bytes)},
        {"head_mte3", NULL, FIELD_DOUBLE, AT(head_mte3)},
        {"head_vector", NULL, FIELD_DOUBLE, AT(head_vector)},
        {"vector_f32", "k", FIELD_DOUBLE, AT(vec_default_f32.k)},
        {"vector_f32", "c", FIELD_DOUBLE, AT(vec_default_f32.c)},
        {"vector_f16", "k", FIELD_DOUBLE, AT(vec_default_f16.k)},
        {"vector_f16", "c", FIELD_DOUBLE, AT(vec_default_f16.c)},
        {"vector_unary_f32", "k", FIELD_DOUBLE, AT(vec_unary_f32.k)},
        {"vector_unary_f32", "c", FIELD_DOUBLE, AT(vec_unary_f32.c)},
        {"vector_unary_f16", "k", FIELD_DOUBLE, AT(vec_unary_f16.k)},
        {"vector_unary_f16", "c", FIELD_DOUBLE, AT(vec_unary_f16.c)},
        {"vector_wide", "k", FIELD_DOUBLE, AT(vec_wide.k)},
        {"vector_wide", "c", FIELD_DOUBLE, AT(vec_wide.c)},
        {"cast_u8_f16", "k", FIELD_DOUBLE, AT(vec_u8_f16.k)},
        {"cast_u8_f16", "c", FIELD_DOUBLE, AT(vec_u8_f16.c)},
        {"cast_f32_f16", "k", FIELD_DOUBLE, AT(vec_f32_f16.k)},
        {"cast_f32_f16", "c", FIELD_DOUBLE, AT(vec_f32_f16.c)},
        {"sync_all_cycles", NULL, FIELD_DOUBLE, AT(sync_all_cycles)},
        {"launch_cycles", NULL, FIELD_DOUBLE, AT(launch_cycles)},
};

static bool read_dtypes(const struct af_yaml *y, uint32_t *ret_mask) {
        if (!y || y->kind != AF_YAML_LIST)
                return false;
        *ret_mask = 0;
        for (uint32_t i = 0; i < y->n; i++) {
                const char *name;
                enum af_dtype d;
                if (!af_yaml_str(&y->items[i], &name) || (d = af_dtype_from_name(name)) == AF_DTYPE_INVALID)
                        return false;
                *ret_mask |= AF_DTYPE_BIT(d);
        }
        return true;
}

static bool read_field(const struct field *f, const struct af_yaml *y, struct af_soc *soc) {
        void *p = (char *)soc + f->offset;
        const char *s;
        int64_t i;
        double d;
        switch (f->kind) {
        case FIELD_TEXT:
                if (!af_yaml_str(y, &s) || strlen(s) >= f->size)
                        return false;
                memcpy(p, s, strlen(s) + 1);
                return true;
        case FIELD_U32:
                if (!af_yaml_int(y, &i) || i < 1 || i > (1 << 30))
                        return false;
                *(uint32_t *)p = (uint32_t)i;
                return true;
        case FIELD_DOUBLE:
                if (!af_yaml_double(y, &d) || !(d >= 0 && d < 1e12))
                        return false;
                *(double *)p = d;
                return true;
        case FIELD_BOOL:
                return af_yaml_bool(y, p);
        case FIELD_DTYPES:
                return read_dtypes(y, p);
        }
        return false;
}

static const char *expected(enum field_kind kind) {
        static const char *const names[] = {"a word of moderate length", "a whole number above 0", "a number of at least 0",
                                            "true or false", "a list of dtypes"};
        return names[kind];
}

static void warn_unknown(const char *path, const struct af_yaml *root, struct af_diags *diags) {
        for (uint32_t i = 0; i < root->n; i++) {
                bool known = false;
                for (size_t j = 0; j < AF_ARRAY_SIZE(fields); j++)
                        known |= strcmp(fields[j].key, root->keys[i]) == 0;
                if (known)
                        continue;
                char where[4200];
                snprintf(where, sizeof(where), "%s:%u", path, root->items[i].line);
                af_diag_warn(diags, where, "unknown key '%s'", root->keys[i]);
        }
}

static int read_all(const char *path, const struct af_yaml *root, struct af_soc *soc, struct af_diags *diags) {
        int bad = 0;
        if (root->kind != AF_YAML_MAP) {
                af_diag_error(diags, path, "a SoC file is a map of keys");
                return AF_ENV_E_INVALID;
        }
        warn_unknown(path, root, diags);
        for (size_t j = 0; j < AF_ARRAY_SIZE(fields); j++) {
                const struct field *f = &fields[j];
                const struct af_yaml *top = af_yaml_get(root, f->key), *y = f->sub ? af_yaml_get(top, f->sub) : top;
                if (y && read_field(f, y, soc))
                        continue;
                char where[4200];
                snprintf(where, sizeof(where), "%s:%u", path, y ? y->line : top ? top->line : root->line);
                if (!y)
                        af_diag_error(diags, where, "key '%s%s%s' is missing", f->key, f->sub ? "." : "", f->sub ? f->sub : "");
                else
                        af_diag_error(diags, where, "'%s%s%s' must be %s", f->key, f->sub ? "." : "", f->sub ? f->sub : "",
                                      expected(f->kind));
                bad = AF_ENV_E_INVALID;
        }
        return bad;
}

/* A SoC name becomes a file name: letters, digits, '_' and '-' only. */
static bool name_is_plain(const char *name) {
        size_t n = strlen(name);
        return n > 0 && n < 64 && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

int af_soc_load(const char *dir, const char *name, struct af_soc *ret_soc, struct af_digest *ret_digest, struct af_diags *diags) {
        if (!name_is_plain(name)) {
                af_diag_error(diags, "target.soc", "'%.80s' is no SoC name", name);
                return AF_ENV_E_SOC;
        }
        char path[4096];
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_arena_deinit) struct af_arena arena;
        af_arena_init(&arena, 1 << 20);
        if (snprintf(path, sizeof(path), "%s/%s.yaml", dir, name) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        int r = af_io_read_file(path, 1 << 16, &text);
        if (r == -ENOENT) {
                af_diag_add(diags, AF_SEVERITY_ERROR, "target.soc", "a file rules/soc/NAME.yaml describes a SoC", "unknown SoC '%s'", name);
                return AF_ENV_E_SOC;
        }
        if (r)
                return r;
        const struct af_yaml *root;
        r = af_yaml_parse(&arena, path, (const char *)text.data, text.size, &root, diags);
        if (r)
                return r < 0 ? r : AF_ENV_E_INVALID;
        struct af_soc soc = {0};
        r = read_all(path, root, &soc, diags);
        if (!r && strcmp(soc.name, name) != 0) {
                af_diag_error(diags, path, "the file describes '%s'", soc.name);
                r = AF_ENV_E_INVALID;
        }
        if (r)
                return r;
        if (ret_digest)
                af_digest_bytes("autofuse.soc/1", text.data, text.size, ret_digest);
        *ret_soc = soc;
        return 0;
}
