/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/view.h"

#include <errno.h>
#include <string.h>

#include "compiler/graph/traffic.h"
#include "tools/out.h"
#include "tools/report.h"

/* Canonical numbers back to the sender's names. */
static void put_names(const struct af_frag *frag, const struct af_prepared *p, struct af_driver_view *v) {
        struct af_graph *g = &v->graph;
        for (uint32_t i = 0; i < g->n_inputs && i < p->n_slots; i++)
                g->values[g->inputs[i].value].name = frag->f.inputs[p->slot_inputs[i]].t.name;
        for (uint32_t i = 0; i < g->n_symbols && i < p->n_canon_symbols; i++)
                g->symbols[i].name = frag->f.symbols[p->canon_symbols[i]].name;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                uint32_t c = v->canonical[i], node = c < p->n_canon_nodes ? p->canon_nodes[c] : AF_NONE;
                if (node == AF_NONE)
                        continue;
                const struct af_fragment_node *from = &frag->f.nodes[node];
                g->nodes[i].name = from->name;
                g->nodes[i].origin = from->origin;
                for (uint32_t j = 0; j < g->nodes[i].n_out && j < from->n_outputs && !g->nodes[i].piece; j++)
                        g->values[g->nodes[i].out[j]].name = from->outputs[j].name;
        }
}

/* Pieces of a node are told apart by their ops. */
static int put_piece_names(struct af_driver_view *v, struct af_arena *arena) {
        for (uint32_t i = 0; i < v->graph.n_nodes; i++) {
                struct af_node *n = &v->graph.nodes[i];
                if (!n->piece || !n->name)
                        continue;
                n->name = af_arena_printf(arena, "%s.%s", n->name, af_op_info(n->op)->name);
                if (!n->name)
                        return -ENOMEM;
        }
        return 0;
}

/* What the framework's nodes read and write, each by itself. */
static void count_fallbacks(struct af_named_view *v) {
        const struct af_graph *g = &v->fused.graph;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
                if (!v->fused.fusion.fallback[i])
                        continue;
                v->n_fallbacks++;
                v->fallback_bytes += (uint64_t)af_traffic(g, &i, 1, g->nodes[i].out, g->nodes[i].n_out);
        }
}

static int plan(const struct af_env *env, struct af_named_view *v, struct af_diags *diags) {
        struct af_driver_opts fused = {0}, unfused = {.no_fuse = true};
        int r = af_driver_view(env, &v->arena, v->prepared->canon, v->prepared->n_canon, &fused, &v->fused, diags);
        return r ? r : af_driver_view(env, &v->arena, v->prepared->canon, v->prepared->n_canon, &unfused, &v->unfused, diags);
}

int af_named_view_make(struct af_session *s, const struct af_frag *frag, struct af_named_view *ret_view) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        const struct af_env *env;
        struct af_named_view *v = ret_view;
        *v = (struct af_named_view){0};
        if (af_session_env(s, frag->f.soc, frag->f.toolchain, frag->f.twin, &env) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        af_arena_init(&v->arena, 0);
        int r = af_prepared_new(&frag->f, &diags, &v->prepared);
        if (r == 0)
                r = plan(env, v, &diags);
        af_out_diags(&diags);
        if (r != 0) {
                if (!diags.n_errors)
                        fprintf(stderr, "error: %s: cannot be planned: %s\n", frag->path, r < 0 ? strerror(-r) : "invalid");
                af_named_view_deinit(v);
                return AF_EXIT_FAILED;
        }
        put_names(frag, v->prepared, &v->fused);
        put_names(frag, v->prepared, &v->unfused);
        if (put_piece_names(&v->fused, &v->arena) || put_piece_names(&v->unfused, &v->arena)) {
                fprintf(stderr, "error: %s: %s\n", frag->path, strerror(ENOMEM));
                af_named_view_deinit(v);
                return AF_EXIT_FAILED;
        }
        count_fallbacks(v);
        return AF_EXIT_OK;
}

void af_named_view_deinit(struct af_named_view *v) {
        af_prepared_unref(v->prepared);
        af_arena_deinit(&v->arena);
        *v = (struct af_named_view){0};
}

const char *af_view_node_name(const struct af_driver_view *v, uint32_t node) {
        const struct af_node *n = &v->graph.nodes[node];
        return n->name && n->name[0] ? n->name : af_op_info(n->op)->name;
}

uint64_t af_view_kernel_bytes(const struct af_driver_view *v) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < v->fusion.n_groups; i++)
                n += v->kernels[i].kernel->hbm_bytes;
        return n;
}

const char *af_view_headline(struct af_named_view *v, const struct af_frag *frag) {
        char stem[256];
        af_report_stem(frag->path, stem, sizeof(stem));
        const char *line = af_arena_printf(&v->arena, "%s: %u node%s → %u kernel%s, %u left to the framework",
                                           frag->f.name[0] ? frag->f.name : stem, frag->f.n_nodes, frag->f.n_nodes == 1 ? "" : "s",
                                           v->fused.fusion.n_groups, v->fused.fusion.n_groups == 1 ? "" : "s", v->n_fallbacks);
        return line ? line : "";
}

/* " at batch = 512, length = 512": what the plan counts symbols as (no key has hints, so that it is not the sender's); "" without any. */
static const char *symbols_text(struct af_named_view *v) {
        const struct af_graph *g = &v->fused.graph;
        int64_t *sizes = af_arena_calloc(&v->arena, g->n_symbols, sizeof(*sizes));
        const char *text = "";
        if (sizes)
                af_graph_hints(g, sizes);
        for (uint32_t i = 0; sizes && i < g->n_symbols && i < 4; i++) {
                const char *name = g->symbols[i].name ? g->symbols[i].name : "a symbol";
                const char *more = af_arena_printf(&v->arena, "%s%s%s = %lld", text, i ? ", " : " at ", name, (long long)sizes[i]);
                text = more ? more : text;
        }
        return text;
}

const char *af_view_bytes_line(struct af_named_view *v) {
        uint64_t before = af_view_kernel_bytes(&v->unfused) + v->fallback_bytes,
                 after = af_view_kernel_bytes(&v->fused) + v->fallback_bytes;
        char a[32], b[32];
        const char *line = af_arena_printf(&v->arena, "moved%s: %s node by node, %s fused (%.2fx less); launches: %u, %u", symbols_text(v),
                                           af_out_bytes(before, a), af_out_bytes(after, b), after ? (double)before / (double)after : 1.0,
                                           v->unfused.fusion.n_groups + v->n_fallbacks, v->fused.fusion.n_groups + v->n_fallbacks);
        return line ? line : "";
}
