/* SPDX-License-Identifier: Apache-2.0 */
/* A main for fuzz targets without a fuzzer: runs each file named, and each file of each folder named, in order of their names. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        int r = af_io_read_file(path, 64u << 20, &bytes);

        if (r < 0)
                return r;
        /* An exact block, so that a read beyond it is seen. */
        uint8_t *exact = malloc(bytes.size > 0 ? bytes.size : 1);
        if (!exact)
                return -ENOMEM;
        if (bytes.size > 0)
                memcpy(exact, bytes.data, bytes.size);
        LLVMFuzzerTestOneInput(exact, bytes.size);
        free(exact);
        return 0;
}

static int run_folder(const char *folder, unsigned *n) {
        struct dirent **entries;
        int n_entries = scandir(folder, &entries, NULL, alphasort), r = 0;

        if (n_entries < 0)
                return -errno;
        for (int i = 0; i < n_entries; i++) {
                char *path;
                if (r == 0 && entries[i]->d_name[0] != '.') {
                        if (asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0)
                                abort();
                        r = run_file(path);
                        free(path);
                        ++*n;
                }
                free(entries[i]);
        }
        free(entries);
        return r;
}

int main(int argc, char **argv) {
        unsigned n = 0;

        for (int i = 1; i < argc; i++) {
                int r = run_folder(argv[i], &n);
                if (r == -ENOTDIR) {
                        r = run_file(argv[i]);
                        n++;
                }
                if (r < 0) {
                        fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
                        return 1;
                }
        }
        printf("%u inputs\n", n);
        return n > 0 ? 0 : 1;
}
