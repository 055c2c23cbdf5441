/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow that is decided while reading. */
#include <string.h>

#include "importer/import.h"

#define MAX_DEPTH 16 /* of graphs within graphs */

/* The branch that a known condition takes stands in the node's place. */
static void if_(struct import *im) {
        const Onnxm__Node *node = im->node;
        const uint8_t *condition = im_bytes(im, im->in[0]);
        const Onnxm__Attribute *a = condition ? im_attr(im, condition[0] ? "then_branch" : "else_branch") : NULL;
        if (!condition || im->in[0]->dtype != AF_DTYPE_BOOL || im_count(im->in[0]) != 1) {
                im_refuse(im, "op If of a condition that is not known");
                return;
        }
        if (!a || !a->g || a->g->n_output != node->n_output || im->depth >= MAX_DEPTH) {
                im_refuse(im, "op If without such a branch");
                return;
        }
        im->depth++;
        im_graph(im, a->g);
        im->depth--;
        im->node = node;
        memset(im->out, 0, sizeof(im->out));
        for (size_t i = 0; i < a->g->n_output && !im->error; i++)
                im->out[i] = a->g->output[i]->name ? im_lookup(im, a->g->output[i]->name) : NULL;
}

const struct handler im_ops_control[] = {
        {"If", if_, 0},
        {NULL, NULL, 0},
};
