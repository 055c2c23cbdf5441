/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/frag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "tools/args.h"
#include "tools/out.h"

static int read_all(const char *path, struct af_buf *text) {
        return strcmp(path, "-") == 0 ? af_io_read_fd(STDIN_FILENO, AF_LIMIT_TEXT_BYTES, text)
                                      : af_io_read_file(path, AF_LIMIT_TEXT_BYTES, text);
}

int af_frag_resolve(struct af_frag *frag, struct af_diags *diags) {
        int r = af_graph_from_fragment(&frag->g, &frag->f, diags);
        if (r != 0)
                return r;
        uint32_t *node_of = af_arena_calloc(&frag->arena, frag->f.n_nodes, sizeof(*node_of));
        if (!node_of)
                return -ENOMEM;
        for (uint32_t i = 0; i < frag->f.n_nodes; i++)
                node_of[i] = AF_NONE;
        for (uint32_t i = 0; i < frag->g.n_nodes; i++)
                node_of[frag->g.nodes[i].source] = i;
        frag->node_of = node_of;
        return 0;
}

int af_frag_parse(const char *path, struct af_frag *ret_frag, struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        int r = read_all(path, &text);
        if (r < 0)
                return r;
        *ret_frag = (struct af_frag){.path = path};
        af_arena_init(&ret_frag->arena, 0);
        r = af_fragment_init(&ret_frag->f, &ret_frag->arena);
        if (r == 0)
                r = af_fragment_parse(&ret_frag->f, (const char *)text.data, text.size, diags);
        if (r == 0)
                r = af_frag_resolve(ret_frag, diags);
        if (r != 0)
                af_frag_deinit(ret_frag);
        return r;
}

int af_frag_load(const char *path, struct af_frag *ret_frag) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        int r = af_frag_parse(path, ret_frag, &diags);
        if (r == 0)
                return 0;
        if (r < 0)
                fprintf(stderr, "error: %s: %s\n", path, r == -EFBIG ? "is over the limit of 64 MiB" : strerror(-r));
        else
                fprintf(stderr, "%s: the fragment is invalid\n", path);
        af_out_diags(&diags);
        return AF_EXIT_FAILED;
}

void af_frag_deinit(struct af_frag *frag) {
        af_arena_deinit(&frag->arena);
        *frag = (struct af_frag){0};
}
