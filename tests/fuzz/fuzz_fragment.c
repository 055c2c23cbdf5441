/* SPDX-License-Identifier: Apache-2.0 */
/* Any text: it parses or it does not; what parses prints, and that parses and prints the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/fragment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int print(const char *text, size_t n, struct af_buf *out) {
        struct af_arena arena;
        struct af_fragment f;
        struct af_diags diags = {0};

        af_arena_init(&arena, 256u << 20);
        int r = af_fragment_init(&f, &arena);
        if (r == 0)
                r = af_fragment_parse(&f, text, n, &diags);
        if (r == 0)
                af_fragment_print(&f, 0, out);
        if (r > 0 && diags.n_errors == 0)
                abort();
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct af_buf first = AF_BUF_INIT, second = AF_BUF_INIT;

        /* A short value that fills a large constant prints to more text than may be read. */
        if (print((const char *)data, size, &first) == 0 && first.size <= AF_LIMIT_TEXT_BYTES) {
                if (print((const char *)first.data, first.size, &second) > 0)
                        abort();
                if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
                        abort();
        }
        af_buf_deinit(&first);
        af_buf_deinit(&second);
        return 0;
}
