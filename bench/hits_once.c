/* SPDX-License-Identifier: Apache-2.0 */
/* A whole process: builds the fragment, has the bundle's kernels in hand, ends. Argument: the socket.
 */
#include "bench/hits.h"

int main(int argc, char **argv) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        struct autofuse_context *ctx = NULL;
        struct autofuse_bundle *bundle = NULL;
        struct autofuse_bundle_info info;
        struct autofuse_error *error = NULL;
        o.socket = argc > 1 ? argv[1] : NULL;
        hits_must(autofuse_context_open(&o, &ctx, &error), error);
        struct autofuse_fragment *f = hits_fragment_make(false);
        hits_must(autofuse_compile(ctx, f, NULL, &bundle, &error), error);
        autofuse_bundle_info(bundle, &info);
        autofuse_bundle_unref(bundle);
        autofuse_fragment_free(f);
        autofuse_context_close(ctx);
        return info.hit == AUTOFUSE_HIT_HOT || info.hit == AUTOFUSE_HIT_STORE ? 0 : 1;
}
