/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

static void print_difference(const char *name, const char *want, size_t n_want, const char *got, size_t n_got) {
        size_t line = 1, start = 0;
        for (size_t i = 0; i < n_want && i < n_got && want[i] == got[i]; i++)
                if (want[i] == '\n') {
                        line++;
                        start = i + 1;
                }
        fprintf(stderr, "%s:%zu (AF_BLESS=1 updates)\n  want %.*s\n  got  %.*s\n", name, line,
                (int)(start < n_want ? strcspn(want + start, "\n") : 0), want + start,
                (int)(start < n_got ? strcspn(got + start, "\n") : 0), got + start);
}

bool golden_equal(const char *name, const void *text, size_t n) {
        AF_CLEANUP(af_buf_deinit) struct af_buf want = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf got = AF_BUF_INIT;
        const char *root = getenv("AF_SOURCE_ROOT");
        char path[600];
        snprintf(path, sizeof(path), "%s/tests/golden/%s", root ? root : ".", name);
        if (getenv("AF_BLESS"))
                return af_io_publish_file(path, text, n, 0644) == 0;
        if (af_io_read_file(path, 1 << 24, &want)) {
                fprintf(stderr, "%s: no such golden file (AF_BLESS=1 writes it)\n", name);
                return false;
        }
        if (want.size == n && memcmp(want.data, text, n) == 0)
                return true;
        af_buf_put(&got, text, n);
        af_buf_put_u8(&got, 0);
        af_buf_put_u8(&want, 0);
        print_difference(name, (const char *)want.data, want.size - 1, (const char *)got.data, n);
        return false;
}
