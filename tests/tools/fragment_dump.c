/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "tests/tools/fragment_runs.h"

static const struct af_view_kernel *find_kernel(const struct dump *d, const char *symbol) {
        for (uint32_t i = 0; i < d->view->fusion.n_groups; i++)
                if (d->view->kernels[i].kernel && strcmp(d->view->kernels[i].symbol, symbol) == 0)
                        return &d->view->kernels[i];
        return NULL;
}

/* The next step that launches a kernel: launches come in the steps' order. */
static const struct af_bundle_step *take_step(struct dump *d) {
        const struct af_bundle_step *s;
        do
                s = af_bundle_at(d->bundle, AF_SECTION_STEPS, d->step++);
        while (s && s->kind != AF_STEP_KERNEL);
        return s;
}

static void write_file(struct dump *d, const char *suffix, const void *bytes, size_t n, char *path, size_t path_size) {
        snprintf(path, path_size, "%s/%s_%u.%s", d->s->dump, d->item->name, d->n_launches, suffix);
        int e = af_io_publish_file(path, bytes, n, 0644);
        if (e && !d->error)
                d->error = e;
}

/* What a form's kernel gets by value. */
static void put_sizes(struct dump *d, const struct af_bundle_kernel *b) {
        char path[700];
        if (!b->tiling.size)
                return;
        write_file(d, "sizes", af_bundle_blob(d->bundle, b->tiling), b->tiling.size, path, sizeof(path));
        fprintf(d->s->cases, " struct:%s", path);
}

static bool is_workspace(const struct af_view_kernel *k, uint32_t i) {
        return k->kernel->args[i].kind == AF_KARG_WORKSPACE;
}

int dump_launch(void *userdata, const char *symbol, const struct af_twin_launch *launch) {
        struct dump *d = userdata;
        const struct af_view_kernel *k = find_kernel(d, symbol);
        const struct af_bundle_step *s = take_step(d);
        af_twin_launch_fn fn = batch_find(&d->s->batch, symbol);
        char path[700], suffix[32];
        if (!k || !s || !fn || k->kernel->n_args != launch->n_args) {
                snprintf(launch->error, launch->error_size, "%s did not compile, or is not in the view", symbol);
                return -1;
        }
        write_file(d, "cpp", k->source, k->source_size, path, sizeof(path));
        for (uint32_t i = 0; i < launch->n_args; i++) {
                snprintf(suffix, sizeof(suffix), "%u.in", i);
                if (!is_workspace(k, i))
                        write_file(d, suffix, launch->args[i], launch->arg_bytes[i], path, sizeof(path));
        }
        launch->error[0] = 0;
        int e = fn(launch);
        if (e)
                return e;
        const struct af_bundle_kernel *b = af_bundle_at(d->bundle, AF_SECTION_KERNELS, s->kernel);
        fprintf(d->s->cases, "%s_%u %s %u %d", d->item->name, d->n_launches, symbol, launch->block_dim, k->kernel->needs_sync_all);
        for (uint32_t i = 0; i < launch->n_args; i++) {
                const struct af_bundle_arg *a = af_bundle_at(d->bundle, AF_SECTION_ARGS, s->first_arg + i);
                if (is_workspace(k, i)) {
                        fprintf(d->s->cases, " work:%" PRIu64, b->workspace_bytes);
                        continue;
                }
                fprintf(d->s->cases, " %s:%s/%s_%u.%u.in", a->access & AF_ACCESS_WRITE ? "out" : "in", d->s->dump, d->item->name,
                        d->n_launches, i);
                if (!(a->access & AF_ACCESS_WRITE))
                        continue;
                snprintf(suffix, sizeof(suffix), "%u.want", i);
                write_file(d, suffix, launch->args[i], launch->arg_bytes[i], path, sizeof(path));
                fprintf(d->s->cases, ":%s:%s", path, af_dtype_name(k->kernel->args[i].dtype));
        }
        put_sizes(d, b);
        fprintf(d->s->cases, "\n");
        d->n_launches++;
        return 0;
}
