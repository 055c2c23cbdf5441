/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "tools/commands.h"
#include "tools/out.h"
#include "tools/picture.h"
#include "tools/view.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {0, "dot", AF_OPTION_FLAG, NULL, "print the fused graph as Graphviz text instead"},
        {0, "svg", AF_OPTION_TEXT, "FILE", "write a picture of the fused graph (- for standard output)"},
        {0, "sources", AF_OPTION_FLAG, NULL, "print each kernel's Ascend C source too"},
        {'a', "all", AF_OPTION_FLAG, NULL, "show every merge that was refused, not only the first"},
        {'s', "socket", AF_OPTION_TEXT, "PATH", "taken as by every command, and not needed: no server is asked"},
        {0},
};

static const char *const decision_names[] = {
        [AF_DECISION_MERGED] = "merged", [AF_DECISION_REFUSED] = "refused", [AF_DECISION_FALLBACK] = "fallback"};

#define SHOWN_REFUSALS 20u

/* ---- kernels ---- */

/* "256 x 100 by 8 x 100" */
static void print_tiles(const struct af_kernel *k) {
        for (uint32_t p = 0; p < k->n_phases; p++) {
                const struct af_phase *ph = &k->phases[p];
                printf("%s", p ? "; then " : "");
                for (uint32_t i = 0; i < ph->n_axes; i++)
                        printf("%s%lld%s", i ? " x " : "", (long long)ph->axes[i].extent, ph->axes[i].reduced ? " (reduced)" : "");
                printf(" in %lld tile%s of ", (long long)ph->n_tiles, ph->n_tiles == 1 ? "" : "s");
                for (uint32_t i = 0; i < ph->n_axes; i++)
                        printf("%s%lld", i ? " x " : "", (long long)ph->axes[i].tile);
        }
}

static uint64_t ub_bytes(const struct af_kernel *k) {
        return k->ub_bytes;
}

static void print_kernel(const struct af_driver_view *v, uint32_t i, bool sources) {
        const struct af_group *g = &v->fusion.groups[i];
        const struct af_kernel *k = v->kernels[i].kernel;
        char moved[32], ub[32], workspace[32];
        printf("\nkernel %u  %s\n  nodes    ", i + 1, v->kernels[i].symbol);
        for (uint32_t j = 0; j < g->n_nodes; j++) {
                const struct af_node *n = &v->graph.nodes[g->nodes[j]];
                printf("%s%s", j ? ", " : "", af_view_node_name(v, g->nodes[j]));
                if (n->name && !n->piece)
                        printf(" (%s)", n->origin ? n->origin : af_op_info(n->op)->name);
        }
        printf("\n  rule     %s, template %s\n", g->rule ? g->rule->name : "none, a node by itself", g->tmpl ? g->tmpl : "-");
        printf("  tiles    ");
        print_tiles(k);
        printf("\n  cost     %s moved, %llu cycles modelled, %u block%s, %s of UB", af_out_bytes(k->hbm_bytes, moved),
               (unsigned long long)k->modelled_cycles, k->block_dim, k->block_dim == 1 ? "" : "s", af_out_bytes(ub_bytes(k), ub));
        if (k->workspace_bytes)
                printf(", %s of workspace", af_out_bytes(k->workspace_bytes, workspace));
        printf("\n");
        if (sources)
                printf("\n%.*s", (int)v->kernels[i].source_size, (const char *)v->kernels[i].source);
}

/* ---- rewrites ---- */

static const char *const rewrite_names[] = {
        [AF_REWRITE_DECOMPOSED] = "taken apart", [AF_REWRITE_NARROWED] = "narrowed", [AF_REWRITE_MOVED] = "moved"};

/* Calls visit for each of the sender's nodes that was rewritten, with the number of planned nodes that are pieces of it. */
static void each_rewrite(struct af_named_view *v, const struct af_frag *frag,
                         void (*visit)(void *to, enum af_rewrite_kind kind, const struct af_fragment_node *node, uint32_t n_pieces),
                         void *to) {
        const struct af_driver_view *fused = &v->fused;
        uint32_t n_canon = v->prepared->n_canon_nodes, *n_pieces = af_arena_calloc(&v->arena, n_canon, sizeof(*n_pieces));
        for (uint32_t i = 0; n_pieces && i < fused->graph.n_nodes; i++)
                if (fused->graph.nodes[i].piece && fused->canonical[i] < n_canon)
                        n_pieces[fused->canonical[i]]++;
        for (uint32_t i = 0; n_pieces && i < fused->notes.n; i++) {
                uint32_t source = fused->notes.items[i].source, node = source < n_canon ? v->prepared->canon_nodes[source] : AF_NONE;
                if (node != AF_NONE)
                        visit(to, fused->notes.items[i].kind, &frag->f.nodes[node], n_pieces[source]);
        }
}

static void print_rewrite(void *to, enum af_rewrite_kind kind, const struct af_fragment_node *node, uint32_t n_pieces) {
        printf("%-12s %s (%s): ", rewrite_names[kind], node->name, node->origin ? node->origin : node->op);
        if (n_pieces)
                printf("%u node%s\n", n_pieces, n_pieces == 1 ? "" : "s");
        else
                printf("nothing is left of it\n");
}

/* ---- decisions ---- */

static void print_decisions(const struct af_driver_view *v, bool all) {
        struct af_table t;
        uint32_t n = 0, n_refused = 0;
        char bytes[32];
        static const char *const heads[] = {"decision", "nodes", "rule", "saves", "why"};
        af_table_init(&t, heads, AF_ARRAY_SIZE(heads));
        for (uint32_t i = 0; i < v->fusion.n_decisions; i++) {
                const struct af_decision *d = &v->fusion.decisions[i];
                n_refused += d->kind == AF_DECISION_REFUSED;
                if (d->kind == AF_DECISION_FALLBACK || (d->kind == AF_DECISION_REFUSED && n_refused > SHOWN_REFUSALS && !all))
                        continue;
                n++;
                af_table_add(&t, "%s", decision_names[d->kind]);
                if (d->producer == AF_NONE)
                        af_table_add(&t, "%s", af_view_node_name(v, d->consumer));
                else
                        af_table_add(&t, "%s → %s", af_view_node_name(v, d->producer), af_view_node_name(v, d->consumer));
                af_table_add(&t, "%s", d->rule ? d->rule->name : "-");
                af_table_add(&t, "%s", d->bytes_saved > 0 ? af_out_bytes((uint64_t)d->bytes_saved, bytes) : "-");
                af_table_add(&t, "%s", d->reason ? d->reason : "");
        }
        if (n) {
                printf("\n");
                af_table_print(&t, 0, stdout);
        }
        if (n_refused > SHOWN_REFUSALS && !all)
                printf("\n%u more merge%s refused: --all shows why\n", n_refused - SHOWN_REFUSALS,
                       n_refused - SHOWN_REFUSALS == 1 ? " was" : "s were");
        af_table_deinit(&t);
}

static void print_fallbacks(const struct af_driver_view *v) {
        bool first = true;
        for (uint32_t i = 0; i < v->graph.n_nodes; i++) {
                const struct af_node *n = &v->graph.nodes[i];
                if (!v->fusion.fallback[i])
                        continue;
                printf("%sFallback %s $reason: %s\n", first ? "\n" : "", n->origin ? n->origin : af_op_info(n->op)->name,
                       v->fusion.fallback[i]);
                first = false;
        }
}

static int print_text(const struct af_args *args, const struct af_frag *frag, struct af_named_view *v) {
        printf("%s\n%s\n", af_view_headline(v, frag), af_view_bytes_line(v));
        for (uint32_t i = 0; i < v->fused.fusion.n_groups; i++)
                print_kernel(&v->fused, i, af_args_flag(args, "sources"));
        if (v->fused.notes.n)
                printf("\n");
        each_rewrite(v, frag, print_rewrite, NULL);
        print_decisions(&v->fused, af_args_flag(args, "all"));
        print_fallbacks(&v->fused);
        return AF_EXIT_OK;
}

/* ---- JSON ---- */

static void rewrite_json(void *to, enum af_rewrite_kind kind, const struct af_fragment_node *node, uint32_t n_pieces) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "kind", rewrite_names[kind]);
        cJSON_AddStringToObject(o, "node", node->name);
        cJSON_AddNumberToObject(o, "nodes", n_pieces);
        cJSON_AddItemToArray(to, o);
}

static void add_numbers(cJSON *o, const char *key, const struct af_phase *ph, bool tiles) {
        cJSON *list = cJSON_AddArrayToObject(o, key);
        for (uint32_t i = 0; i < ph->n_axes; i++)
                cJSON_AddItemToArray(list, cJSON_CreateNumber((double)(tiles ? ph->axes[i].tile : ph->axes[i].extent)));
}

static void add_phases(cJSON *o, const struct af_kernel *k) {
        cJSON *phases = cJSON_AddArrayToObject(o, "phases");
        for (uint32_t p = 0; p < k->n_phases; p++) {
                cJSON *phase = cJSON_CreateObject();
                add_numbers(phase, "extents", &k->phases[p], false);
                add_numbers(phase, "tile", &k->phases[p], true);
                cJSON_AddNumberToObject(phase, "tiles", (double)k->phases[p].n_tiles);
                cJSON_AddNumberToObject(phase, "cycles", (double)k->phases[p].cycles);
                cJSON_AddNumberToObject(phase, "hbm_bytes", (double)k->phases[p].hbm_bytes);
                cJSON_AddBoolToObject(phase, "meets_before", k->phases[p].sync_before);
                cJSON_AddItemToArray(phases, phase);
        }
}

static cJSON *group_json(const struct af_driver_view *v, uint32_t i, bool sources) {
        const struct af_group *g = &v->fusion.groups[i];
        const struct af_kernel *k = v->kernels[i].kernel;
        cJSON *o = cJSON_CreateObject(), *nodes = cJSON_AddArrayToObject(o, "nodes");
        for (uint32_t j = 0; j < g->n_nodes; j++)
                cJSON_AddItemToArray(nodes, cJSON_CreateString(af_view_node_name(v, g->nodes[j])));
        cJSON_AddStringToObject(o, "symbol", v->kernels[i].symbol);
        cJSON_AddStringToObject(o, "rule", g->rule ? g->rule->name : "");
        cJSON_AddStringToObject(o, "template", g->tmpl ? g->tmpl : "");
        cJSON_AddNumberToObject(o, "block_dim", k->block_dim);
        cJSON_AddNumberToObject(o, "hbm_bytes", (double)k->hbm_bytes);
        cJSON_AddNumberToObject(o, "modelled_cycles", (double)k->modelled_cycles);
        cJSON_AddNumberToObject(o, "workspace_bytes", (double)k->workspace_bytes);
        cJSON_AddNumberToObject(o, "ub_bytes", (double)ub_bytes(k));
        add_phases(o, k);
        if (sources) {
                char *text = strndup((const char *)v->kernels[i].source, v->kernels[i].source_size);
                cJSON_AddStringToObject(o, "source", text ? text : "");
                af_freep(&text);
        }
        return o;
}

static cJSON *decision_json(const struct af_driver_view *v, const struct af_decision *d) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "kind", decision_names[d->kind]);
        cJSON_AddStringToObject(o, "consumer", af_view_node_name(v, d->consumer));
        if (d->producer != AF_NONE)
                cJSON_AddStringToObject(o, "producer", af_view_node_name(v, d->producer));
        if (d->rule)
                cJSON_AddStringToObject(o, "rule", d->rule->name);
        cJSON_AddStringToObject(o, "reason", d->reason ? d->reason : "");
        cJSON_AddNumberToObject(o, "bytes_saved", (double)d->bytes_saved);
        return o;
}

static int print_json(const struct af_args *args, const struct af_frag *frag, struct af_named_view *v) {
        cJSON *o = cJSON_CreateObject(), *kernels, *decisions, *fallbacks;
        cJSON_AddStringToObject(o, "file", frag->path);
        cJSON_AddStringToObject(o, "name", frag->f.name);
        cJSON_AddNumberToObject(o, "nodes", frag->f.n_nodes);
        cJSON_AddNumberToObject(o, "bytes_unfused", (double)(af_view_kernel_bytes(&v->unfused) + v->fallback_bytes));
        cJSON_AddNumberToObject(o, "bytes_fused", (double)(af_view_kernel_bytes(&v->fused) + v->fallback_bytes));
        cJSON_AddNumberToObject(o, "launches_unfused", v->unfused.fusion.n_groups);
        cJSON_AddNumberToObject(o, "launches", v->fused.fusion.n_groups);
        cJSON_AddNumberToObject(o, "framework_launches", v->n_fallbacks);
        kernels = cJSON_AddArrayToObject(o, "kernels");
        for (uint32_t i = 0; i < v->fused.fusion.n_groups; i++)
                cJSON_AddItemToArray(kernels, group_json(&v->fused, i, af_args_flag(args, "sources")));
        each_rewrite(v, frag, rewrite_json, cJSON_AddArrayToObject(o, "rewrites"));
        decisions = cJSON_AddArrayToObject(o, "decisions");
        for (uint32_t i = 0; i < v->fused.fusion.n_decisions; i++)
                cJSON_AddItemToArray(decisions, decision_json(&v->fused, &v->fused.fusion.decisions[i]));
        fallbacks = cJSON_AddArrayToObject(o, "fallbacks");
        for (uint32_t i = 0; i < v->fused.graph.n_nodes; i++) {
                const struct af_node *n = &v->fused.graph.nodes[i];
                if (!v->fused.fusion.fallback[i])
                        continue;
                cJSON *f = cJSON_CreateObject();
                cJSON_AddStringToObject(f, "node", af_view_node_name(&v->fused, i));
                cJSON_AddStringToObject(f, "op", af_op_info(n->op)->name);
                if (n->origin)
                        cJSON_AddStringToObject(f, "origin", n->origin);
                cJSON_AddStringToObject(f, "reason", v->fused.fusion.fallback[i]);
                cJSON_AddItemToArray(fallbacks, f);
        }
        af_out_json(o);
        return AF_EXIT_OK;
}

/* ---- pictures ---- */

static int write_svg(const char *path, const struct af_frag *frag, struct af_named_view *v) {
        AF_CLEANUP(af_buf_deinit) struct af_buf svg = AF_BUF_INIT;
        struct af_picture picture;
        int r = af_picture_make(&v->arena, &v->fused, &picture);
        if (r == 0) {
                picture.title = af_view_headline(v, frag);
                picture.subtitle = af_view_bytes_line(v);
                af_picture_svg(&picture, &svg);
                r = af_buf_error(&svg);
        }
        if (r == 0 && strcmp(path, "-") == 0)
                fwrite(svg.data, 1, svg.size, stdout);
        else if (r == 0)
                r = af_io_publish_file(path, svg.data, svg.size, 0644);
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", path, r == -E2BIG ? "the graph is too large for a picture: use --dot" : strerror(-r));
        return r < 0 ? AF_EXIT_FAILED : AF_EXIT_OK;
}

static void print_dot(const struct af_driver_view *v) {
        AF_CLEANUP(af_buf_deinit) struct af_buf dot = AF_BUF_INIT;
        af_fusion_dot(&v->graph, &v->fusion, &dot);
        fwrite(dot.data ? dot.data : (uint8_t *)"", 1, dot.size, stdout);
}

static int show(const struct af_args *args, const struct af_frag *frag, struct af_named_view *v) {
        const char *svg = af_args_text(args, "svg");
        if (svg && write_svg(svg, frag, v) != AF_EXIT_OK)
                return AF_EXIT_FAILED;
        if (svg && strcmp(svg, "-") == 0)
                return AF_EXIT_OK;
        if (af_args_flag(args, "dot"))
                print_dot(&v->fused);
        else if (af_args_flag(args, "json"))
                return print_json(args, frag, v);
        else
                return print_text(args, frag, v);
        return AF_EXIT_OK;
}

static int run(const struct af_args *args) {
        struct af_session s;
        struct af_frag frag;
        struct af_named_view v;
        if (af_frag_load(args->operands[0], &frag) != 0)
                return AF_EXIT_FAILED;
        af_session_open_offline(&s);
        int r = af_named_view_make(&s, &frag, &v);
        if (r == AF_EXIT_OK) {
                r = show(args, &frag, &v);
                af_named_view_deinit(&v);
        }
        af_session_close(&s);
        af_frag_deinit(&frag);
        return r;
}

const struct af_command af_command_explain = {
        .name = "explain",
        .operands = "FRAG.json",
        .summary = "show how a fragment is fused, and why",
        .details = "Plans in this process; nothing is compiled. Bytes are modelled: what DMA moves between memory and cores, over all "
                   "kernels, with the nodes left to the "
                   "framework at the size of their operands and results.",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .run = run,
};
