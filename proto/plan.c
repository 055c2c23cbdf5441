/* SPDX-License-Identifier: Apache-2.0 */
/* Slot maps and plans; both formats are drawn in bundle.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/bundle.h"

#define PLAN_MAGIC            0x31504641u /* "AFP1" */
#define PLAN_KERNEL_MIN_BYTES (32u + 3 * 4u)

void af_slot_map_write(const struct af_slot_map *m, struct af_buf *buf) {
        const struct {
                const uint32_t *slots;
                uint32_t n;
        } lists[3] = {{m->inputs, m->n_inputs}, {m->nodes, m->n_nodes}, {m->symbols, m->n_symbols}};

        for (int i = 0; i < 3; i++)
                af_buf_put_u32(buf, lists[i].n);
        for (int i = 0; i < 3; i++)
                for (uint32_t j = 0; j < lists[i].n; j++)
                        af_buf_put_u32(buf, lists[i].slots[j]);
}

static int read_slots(struct af_cursor *c, uint32_t n, uint32_t **ret_slots) {
        /* n is backed by bytes: the caller compared the counts with the size. */
        uint32_t *slots = malloc(AF_MAX((size_t)n, (size_t)1) * sizeof(*slots));

        if (!slots)
                return -ENOMEM;
        *ret_slots = slots;
        for (uint32_t i = 0; i < n; i++) {
                slots[i] = af_cursor_u32(c);
                if (slots[i] >= n && slots[i] != AF_NONE)
                        return AF_BUNDLE_E_DAMAGED;
        }
        return 0;
}

int af_slot_map_read(const void *p, size_t n, struct af_slot_map *ret_map) {
        struct af_cursor c = af_cursor_make(p, n);
        struct af_slot_map m = {0};

        m.n_inputs = af_cursor_u32(&c);
        m.n_nodes = af_cursor_u32(&c);
        m.n_symbols = af_cursor_u32(&c);
        if (c.error || ((uint64_t)m.n_inputs + m.n_nodes + m.n_symbols) * 4 != n - c.at)
                return AF_BUNDLE_E_DAMAGED;
        int r = read_slots(&c, m.n_inputs, &m.inputs);
        if (r == 0)
                r = read_slots(&c, m.n_nodes, &m.nodes);
        if (r == 0)
                r = read_slots(&c, m.n_symbols, &m.symbols);
        if (r != 0) {
                af_slot_map_deinit(&m);
                return r;
        }
        *ret_map = m;
        return 0;
}

void af_slot_map_deinit(struct af_slot_map *m) {
        free(m->inputs);
        free(m->nodes);
        free(m->symbols);
        *m = (struct af_slot_map){0};
}

void af_plan_write(const struct af_plan_view *plan, struct af_buf *buf) {
        af_buf_put_u32(buf, PLAN_MAGIC);
        af_buf_put_u32(buf, plan->n_kernels);
        af_buf_put(buf, plan->fragment.bytes, sizeof(plan->fragment.bytes));
        af_buf_put_u32(buf, 0);
        af_buf_put_field(buf, plan->skeleton, plan->skeleton_size);
        for (uint32_t i = 0; i < plan->n_kernels; i++) {
                const struct af_plan_kernel *k = &plan->kernels[i];
                af_buf_put(buf, k->key.bytes, sizeof(k->key.bytes));
                af_buf_put_field(buf, k->toolchain, strlen(k->toolchain) + 1);
                af_buf_put_field(buf, k->symbol, strlen(k->symbol) + 1);
                af_buf_put_field(buf, k->source, k->source_size);
        }
        af_buf_put_field(buf, plan->slot_map, plan->slot_map_size);
        af_buf_put_field(buf, plan->canon, plan->canon_size);
        af_buf_put_field(buf, plan->fallbacks, plan->fallbacks_size);
}

/* A field that is one NUL-terminated string; NULL where it is not. */
static const char *read_str(struct af_cursor *c) {
        uint32_t n;
        const uint8_t *p = af_cursor_field(c, &n);

        return p && n > 0 && memchr(p, 0, n) == p + n - 1 ? (const char *)p : NULL;
}

static int read_kernels(struct af_cursor *c, struct af_plan_view *plan) {
        for (uint32_t i = 0; i < plan->n_kernels; i++) {
                struct af_plan_kernel *k = &plan->kernels[i];
                const uint8_t *key = af_cursor_bytes(c, sizeof(k->key.bytes));
                if (!key)
                        return AF_BUNDLE_E_DAMAGED;
                memcpy(k->key.bytes, key, sizeof(k->key.bytes));
                k->toolchain = read_str(c);
                k->symbol = read_str(c);
                k->source = af_cursor_field(c, &k->source_size);
                if (!k->toolchain || !k->symbol || !k->source)
                        return AF_BUNDLE_E_DAMAGED;
        }
        return 0;
}

static int read_plan(struct af_cursor *c, struct af_plan_view *plan) {
        uint32_t magic = af_cursor_u32(c);

        plan->n_kernels = af_cursor_u32(c);
        const uint8_t *digest = af_cursor_bytes(c, sizeof(plan->fragment.bytes));
        uint32_t zero = af_cursor_u32(c);
        plan->skeleton = af_cursor_field(c, &plan->skeleton_size);
        if (c->error || magic != PLAN_MAGIC || zero != 0 || plan->n_kernels > (c->size - c->at) / PLAN_KERNEL_MIN_BYTES)
                return AF_BUNDLE_E_DAMAGED;
        memcpy(plan->fragment.bytes, digest, sizeof(plan->fragment.bytes));
        plan->kernels = calloc(AF_MAX((size_t)plan->n_kernels, (size_t)1), sizeof(*plan->kernels));
        if (!plan->kernels)
                return -ENOMEM;
        int r = read_kernels(c, plan);
        if (r != 0)
                return r;
        plan->slot_map = af_cursor_field(c, &plan->slot_map_size);
        plan->canon = af_cursor_field(c, &plan->canon_size);
        plan->fallbacks = af_cursor_field(c, &plan->fallbacks_size);
        return c->error || c->at != c->size ? AF_BUNDLE_E_DAMAGED : 0;
}

int af_plan_read(const void *p, size_t n, struct af_plan_view *ret_plan) {
        struct af_cursor c = af_cursor_make(p, n);
        struct af_plan_view plan = {0};
        int r = read_plan(&c, &plan);

        if (r != 0) {
                af_plan_view_deinit(&plan);
                return r;
        }
        *ret_plan = plan;
        return 0;
}

void af_plan_view_deinit(struct af_plan_view *plan) {
        free(plan->kernels);
        *plan = (struct af_plan_view){0};
}
