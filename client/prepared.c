/* SPDX-License-Identifier: Apache-2.0 */
#include "client/prepared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/graph/canon.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/key.h"

static int copy_names(struct af_prepared *p, const struct af_fragment *f) {
        p->n_inputs = f->n_inputs;
        p->n_outputs = f->n_outputs;
        p->n_nodes = f->n_nodes;
        p->inputs = af_arena_calloc(&p->arena, f->n_inputs, sizeof(*p->inputs));
        p->outputs = af_arena_calloc(&p->arena, f->n_outputs, sizeof(*p->outputs));
        p->nodes = af_arena_calloc(&p->arena, f->n_nodes, sizeof(*p->nodes));
        p->origins = af_arena_calloc(&p->arena, f->n_nodes, sizeof(*p->origins));
        p->n_symbols = f->n_symbols;
        p->symbols = af_arena_calloc(&p->arena, f->n_symbols, sizeof(*p->symbols));
        if (!p->inputs || !p->outputs || !p->nodes || !p->origins || !p->symbols)
                return -ENOMEM;
        for (uint32_t i = 0; i < f->n_symbols; i++)
                if (!(p->symbols[i] = af_arena_strdup(&p->arena, f->symbols[i].name)))
                        return -ENOMEM;
        for (uint32_t i = 0; i < f->n_inputs; i++)
                if (!(p->inputs[i] = af_arena_strdup(&p->arena, f->inputs[i].t.name)))
                        return -ENOMEM;
        for (uint32_t i = 0; i < f->n_outputs; i++)
                if (!(p->outputs[i] = af_arena_strdup(&p->arena, f->outputs[i].value)))
                        return -ENOMEM;
        for (uint32_t i = 0; i < f->n_nodes; i++) {
                if (!(p->nodes[i] = af_arena_strdup(&p->arena, f->nodes[i].name ? f->nodes[i].name : "")))
                        return -ENOMEM;
                if (f->nodes[i].origin && !(p->origins[i] = af_arena_strdup(&p->arena, f->nodes[i].origin)))
                        return -ENOMEM;
        }
        return 0;
}

/* to[from[i]] = the smallest such i; n_to is one more than the largest from[i]. */
static int invert(struct af_arena *arena, const uint32_t *from, uint32_t n, uint32_t **ret_to, uint32_t *ret_n) {
        uint32_t n_to = 0;
        for (uint32_t i = 0; i < n; i++)
                if (from[i] != AF_NONE)
                        n_to = AF_MAX(n_to, from[i] + 1);
        uint32_t *to = af_arena_calloc(arena, n_to, sizeof(*to));
        if (!to)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_to; i++)
                to[i] = AF_NONE;
        for (uint32_t i = 0; i < n; i++)
                if (from[i] != AF_NONE && to[from[i]] == AF_NONE)
                        to[from[i]] = i;
        *ret_to = to;
        *ret_n = n_to;
        return 0;
}

static int map_slots(struct af_prepared *p, const struct af_fragment *f, const struct af_slot_map *map) {
        p->input_slots = af_arena_calloc(&p->arena, f->n_inputs, sizeof(*p->input_slots));
        if (!p->input_slots)
                return -ENOMEM;
        for (uint32_t i = 0; i < f->n_inputs; i++)
                p->input_slots[i] = i < map->n_inputs ? map->inputs[i] : AF_NONE;
        int r = invert(&p->arena, p->input_slots, f->n_inputs, &p->slot_inputs, &p->n_slots);
        if (!r)
                r = invert(&p->arena, map->nodes, AF_MIN(map->n_nodes, f->n_nodes), &p->canon_nodes, &p->n_canon_nodes);
        return r ? r : invert(&p->arena, map->symbols, AF_MIN(map->n_symbols, f->n_symbols), &p->canon_symbols, &p->n_canon_symbols);
}

static int prepare(struct af_prepared *p, const struct af_fragment *f, struct af_arena *scratch, struct af_diags *diags) {
        struct af_graph g = {.arena = scratch};
        struct af_buf canon = AF_BUF_INIT;
        struct af_slot_map map = {0};
        int r = af_graph_from_fragment(&g, f, diags);
        if (r != 0)
                return r < 0 ? r : AF_PREPARED_E_INVALID;
        r = af_canon_write(&g, &canon, &map);
        if (r == 0)
                r = copy_names(p, f);
        if (r == 0)
                r = map_slots(p, f, &map);
        if (r == 0 && !(p->canon = af_buf_take(&canon, &p->n_canon)))
                r = -ENOMEM;
        if (r == 0) {
                af_key_fragment(p->canon, p->n_canon, &p->digest);
                p->target = af_hot_target_make(f->soc ? f->soc : "", f->toolchain ? f->toolchain : "", f->twin);
                p->n_bytes = sizeof(*p) + p->n_canon + p->arena.n_bytes;
        }
        af_slot_map_deinit(&map);
        af_buf_deinit(&canon);
        return r;
}

int af_prepared_new(const struct af_fragment *f, struct af_diags *diags, struct af_prepared **ret_prepared) {
        struct af_prepared *p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        atomic_init(&p->refs, 1);
        af_arena_init(&p->arena, 0);
        struct af_arena scratch;
        af_arena_init(&scratch, 0);
        int r = prepare(p, f, &scratch, diags);
        af_arena_deinit(&scratch);
        if (r != 0) {
                af_prepared_unref(p);
                return r;
        }
        *ret_prepared = p;
        return 0;
}

int af_prepared_new_text(const char *text, size_t n, struct af_diags *diags, struct af_prepared **ret_prepared) {
        struct af_arena arena;
        struct af_fragment f;
        af_arena_init(&arena, 0);
        int r = af_fragment_init(&f, &arena);
        if (r == 0)
                r = af_fragment_parse(&f, text, n, diags);
        if (r == 0)
                r = af_prepared_new(&f, diags, ret_prepared);
        else if (r > 0)
                r = AF_PREPARED_E_INVALID;
        af_arena_deinit(&arena);
        return r;
}

struct af_prepared *af_prepared_ref(struct af_prepared *prepared) {
        atomic_fetch_add_explicit(&prepared->refs, 1, memory_order_relaxed);
        return prepared;
}

void af_prepared_unref(struct af_prepared *prepared) {
        if (!prepared || atomic_fetch_sub_explicit(&prepared->refs, 1, memory_order_acq_rel) != 1)
                return;
        af_arena_deinit(&prepared->arena);
        free(prepared->canon);
        free(prepared);
}

void af_prepared_origins(const struct af_prepared *prepared, size_t max, struct af_buf *buf) {
        size_t start = buf->size;
        af_buf_put_u32(buf, prepared->n_canon_nodes);
        for (uint32_t i = 0; i < prepared->n_canon_nodes; i++) {
                uint32_t node = prepared->canon_nodes[i];
                const char *name = node == AF_NONE ? "" : prepared->origins[node] ? prepared->origins[node] : prepared->nodes[node];
                af_buf_put_field(buf, name, strlen(name));
                if (buf->size - start > max) {
                        buf->size = start;
                        return;
                }
        }
}
