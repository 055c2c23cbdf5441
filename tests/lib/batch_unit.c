/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/batch_unit.h"

#include <stdlib.h>
#include <string.h>

#define SIZES      "// Sizes in elements"
#define NEW_TILING "constexpr Tiling t{};"

struct text {
        const char *p;
        size_t n;
};

/* A kernel's source taken apart. */
struct part {
        const char *symbol;
        struct text helpers; /* between the include line and the sizes */
        struct text rest;    /* all after it */
        struct text entry;   /* its end, from extern "C" on; empty where the body is not to be shared */
        struct af_buf key;   /* rest without the symbol and the sizes' values */
        struct af_buf values;
        uint32_t leader; /* whose body it shares: its own number, or an earlier one's */
};

static bool same(struct text a, struct text b) {
        return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static const char *find(struct text t, const char *what) {
        return t.n ? memmem(t.p, t.n, what, strlen(what)) : NULL;
}

static void put_renamed(struct af_buf *out, struct text t, const char *from, const char *to) {
        for (const char *at; (at = find(t, from)) != NULL;) {
                af_buf_put(out, t.p, (size_t)(at - t.p));
                af_buf_put_str(out, to);
                t.n -= (size_t)(at - t.p) + strlen(from);
                t.p = at + strlen(from);
        }
        af_buf_put(out, t.p, t.n);
}

/* "NAME = VALUE" of each size, up to a comma or semicolon: names to the key, values to the list. False where a line has no value. */
static bool take_sizes(struct part *p, struct text sizes) {
        const char *eq;
        while ((eq = find(sizes, "=")) != NULL) {
                struct text value = {eq + 2, sizes.n - (size_t)(eq + 2 - sizes.p)};
                const char *comma = find(value, ","), *end = find(value, ";");
                if (!end || memchr(sizes.p, ';', (size_t)(eq - sizes.p)))
                        return false;
                end = comma && comma < end ? comma : end;
                af_buf_put(&p->key, sizes.p, (size_t)(eq - sizes.p));
                af_buf_printf(&p->values, "%s%.*s", p->values.size ? ", " : "", (int)(end - value.p), value.p);
                af_buf_put(&p->key, end, 1);
                sizes.n -= (size_t)(end + 1 - sizes.p);
                sizes.p = end + 1;
        }
        return find(sizes, ";") == NULL;
}

/* A source of another look is left whole: a group of its own. */
static void take_apart(const struct batch_kernel *k, struct part *p) {
        struct text all = {(const char *)k->source, k->size};
        const char *include = find(all, BATCH_INCLUDE), *sizes = find(all, SIZES), *end;

        *p = (struct part){.symbol = k->symbol, .rest = all};
        if (!include || !sizes || sizes < include)
                return;
        p->helpers.p = include + strlen(BATCH_INCLUDE);
        p->helpers.n = (size_t)(sizes - p->helpers.p);
        p->rest = (struct text){sizes, all.n - (size_t)(sizes - all.p)};
        end = find(p->rest, "};");
        const char *entry = find(p->rest, "extern \"C\" "), *made = find(p->rest, NEW_TILING), *open = memchr(sizes, '{', p->rest.n);
        if (!end || !entry || !made || made < entry || !open || open > end ||
            !take_sizes(p, (struct text){open + 1, (size_t)(end - open - 1)}))
                return;
        put_renamed(&p->key, (struct text){end, p->rest.n - (size_t)(end - sizes)}, k->symbol, "KERNEL");
        p->entry = (struct text){entry, p->rest.n - (size_t)(entry - sizes)};
}

static void put_launcher(struct af_buf *out, const char *symbol, uint32_t i) {
        af_buf_printf(out,
                      "\nstatic void af_entry_%u(const AscendC::twin::Launch &l) { ::af_batch::body_of(&%s, l); }\n"
                      "extern \"C\" __attribute__((visibility(\"default\"))) int af_batch_%u(const AscendC::twin::Launch *l) "
                      "{ return AscendC::twin::launch(l, &%s, af_entry_%u); }\n}\n",
                      i, symbol, i, symbol, i);
}

/* The entry alone, with sizes of its own, calling the leader's body. */
static void put_follower(struct af_buf *out, const struct part *p, const char *leader) {
        AF_CLEANUP(af_buf_deinit) struct af_buf body = AF_BUF_INIT, leader_body = AF_BUF_INIT, sizes = AF_BUF_INIT, text = AF_BUF_INIT;

        af_buf_printf(&body, "%s_body", p->symbol);
        af_buf_put_u8(&body, 0);
        af_buf_printf(&leader_body, "%s_body", leader);
        af_buf_put_u8(&leader_body, 0);
        af_buf_printf(&sizes, "constexpr Tiling t{%.*s};", (int)p->values.size, p->values.size ? (const char *)p->values.data : "");
        af_buf_put_u8(&sizes, 0);
        if (af_buf_error(&body) || af_buf_error(&leader_body) || af_buf_error(&sizes))
                abort();
        put_renamed(&text, p->entry, NEW_TILING, (const char *)sizes.data);
        put_renamed(out, (struct text){(const char *)text.data, text.size}, (const char *)body.data, (const char *)leader_body.data);
}

/* Kernels with one text of helpers, from part `first` on. */
static void put_group(struct af_buf *out, struct part *parts, uint32_t n, uint32_t first) {
        af_buf_printf(out, "namespace af_helpers_%u {\n", first);
        af_buf_put(out, parts[first].helpers.p, parts[first].helpers.n);
        for (uint32_t i = first; i < n; i++) {
                struct part *p = &parts[i];
                if (i > first && (!p->helpers.p || !parts[first].helpers.p || !same(p->helpers, parts[first].helpers)))
                        continue;
                p->leader = i;
                for (uint32_t k = first; k < i && p->entry.n && p->leader == i; k++) {
                        const struct part *q = &parts[k];
                        if (q->leader == k && q->entry.n && q->helpers.p && same(q->helpers, p->helpers) &&
                            same((struct text){(const char *)q->key.data, q->key.size},
                                 (struct text){(const char *)p->key.data, p->key.size}))
                                p->leader = k;
                }
                af_buf_printf(out, "namespace af_kernel_%u {\n", p->leader);
                if (p->leader == i)
                        af_buf_put(out, p->rest.p, p->rest.n);
                else
                        put_follower(out, p, parts[p->leader].symbol);
                put_launcher(out, p->symbol, i);
        }
        af_buf_put_str(out, "}\n");
}

void batch_unit_write(struct af_buf *out, struct batch_kernel *const *kernels, uint32_t n) {
        struct part *parts = calloc(n, sizeof(*parts));

        if (!parts)
                abort();
        af_buf_put_str(out, BATCH_INCLUDE "namespace af_batch { template <class... P> static void body_of(void (*k)(P...), const "
                                          "AscendC::twin::Launch &l) { AscendC::twin::call(k, l, typename "
                                          "AscendC::twin::MakeSeq<sizeof...(P)>::type()); } }\n");
        for (uint32_t i = 0; i < n; i++)
                take_apart(kernels[i], &parts[i]);
        for (uint32_t i = 0; i < n; i++) {
                bool taken = false;
                for (uint32_t k = 0; k < i && parts[i].helpers.p && !taken; k++)
                        taken = parts[k].helpers.p && same(parts[k].helpers, parts[i].helpers);
                if (!taken)
                        put_group(out, parts, n, i);
        }
        af_buf_put_str(out, "extern \"C\" __global__ __aicore__ void af_batch_none() {}\n");
        for (uint32_t i = 0; i < n; i++) {
                af_buf_deinit(&parts[i].key);
                af_buf_deinit(&parts[i].values);
        }
        free(parts);
}
