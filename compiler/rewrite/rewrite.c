/* SPDX-License-Identifier: Apache-2.0 */
/* The passes in order. */
#include "compiler/rewrite/rewrite.h"

static int (*const passes[])(const struct af_graph *, const bool *, struct af_graph *, struct af_rewrite_notes *) = {
        af_rewrite_decompose,
        af_rewrite_narrow,
        af_rewrite_motion,
};

int af_rewrite(const struct af_graph *g, const bool *pinned, struct af_graph *ret, struct af_rewrite_notes *notes) {
        struct af_graph now = *g;
        for (size_t i = 0; i < AF_ARRAY_SIZE(passes); i++) {
                struct af_graph before = now;
                int r = passes[i](&before, pinned, &now, notes);
                if (r)
                        return r;
        }
        *ret = now;
        return 0;
}
