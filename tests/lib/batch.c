/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/batch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "tests/lib/batch_unit.h"

#define UNIT_KERNELS 800u
#define UNIT_BYTES   (8u << 20)

struct af_toolchain_config batch_toolchain(const char *flags) {
        static const char clang[] = "/usr/bin/clang++";

        return (struct af_toolchain_config){.id = "host",
                                            .kind = AF_TOOLCHAIN_HOST,
                                            .driver = !flags && access(clang, X_OK) == 0 ? clang : NULL,
                                            .extra_flags = flags ? flags : "-O0 -DAF_TWIN_OUTLINE=1",
                                            .pch_dir = getenv("AF_TEST_PCH_DIR")};
}

void batch_init(struct batch *b, const struct af_toolchain *toolchain) {
        *b = (struct batch){.toolchain = toolchain};
}

void batch_reset(struct batch *b) {
        for (uint32_t i = 0; i < b->n_handles; i++)
                dlclose(b->handles[i]);
        for (uint32_t i = 0; i < b->n_kernels; i++) {
                free(b->kernels[i].symbol);
                free(b->kernels[i].source);
        }
        free(b->handles);
        free(b->kernels);
        *b = (struct batch){.toolchain = b->toolchain, .n_compiles = b->n_compiles};
}

static struct batch_kernel *find(const struct batch *b, const char *symbol) {
        for (uint32_t i = 0; i < b->n_kernels; i++)
                if (strcmp(b->kernels[i].symbol, symbol) == 0)
                        return &b->kernels[i];
        return NULL;
}

af_twin_launch_fn batch_find(const struct batch *b, const char *symbol) {
        const struct batch_kernel *k = find(b, symbol);
        return k ? k->launch : NULL;
}

int batch_add(struct batch *b, const char *symbol, const void *source, uint32_t size) {
        if (find(b, symbol))
                return 0;
        if (b->n_kernels == b->cap_kernels) {
                uint32_t cap = b->cap_kernels ? b->cap_kernels * 2 : 64;
                struct batch_kernel *grown = realloc(b->kernels, cap * sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                b->kernels = grown;
                b->cap_kernels = cap;
        }
        struct batch_kernel k = {.symbol = strdup(symbol), .source = malloc(size + 1), .size = size};
        if (!k.symbol || !k.source) {
                free(k.symbol);
                free(k.source);
                return -ENOMEM;
        }
        memcpy(k.source, source, size);
        k.sync_all = memmem(source, size, "SyncAll", 7) != NULL;
        b->kernels[b->n_kernels++] = k;
        return 0;
}

/* Through a file that is gone at once: the loader tells objects apart by name, and a descriptor's number comes again. */
static void *load_bytes(const struct af_buf *binary) {
        char path[] = "/tmp/af_batch_XXXXXX";
        AF_CLEANUP(af_closep) int fd = mkstemp(path);
        if (fd < 0)
                return NULL;
        void *handle = write(fd, binary->data, binary->size) == (ssize_t)binary->size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        unlink(path);
        return handle;
}

static int load_unit(struct batch *b, const struct af_buf *binary, struct batch_kernel *const *kernels, uint32_t n) {
        if (b->n_handles == b->cap_handles) {
                uint32_t cap = b->cap_handles ? b->cap_handles * 2 : 16;
                void **grown = realloc(b->handles, cap * sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                b->handles = grown;
                b->cap_handles = cap;
        }
        void *handle = load_bytes(binary);
        if (!handle)
                return -ELIBBAD;
        b->handles[b->n_handles++] = handle;
        for (uint32_t i = 0; i < n; i++) {
                char name[32];
                snprintf(name, sizeof(name), "af_batch_%u", i);
                void *symbol = dlsym(handle, name);
                memcpy(&kernels[i]->launch, &symbol, sizeof(symbol));
        }
        return 0;
}

static int build_unit(struct batch *b, struct batch_kernel *const *kernels, uint32_t n, struct af_buf *err) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf binary = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf own = AF_BUF_INIT;
        batch_unit_write(&text, kernels, n);
        int r = af_buf_error(&text);
        b->n_compiles++;
        if (!r)
                r = af_toolchain_compile(b->toolchain, "af_batch_none", text.data, text.size, 600000, -1, &binary, &own, NULL);
        if (r > 0 && n > 1) { /* whose fault is it? */
                for (uint32_t i = 0; i < n; i++) {
                        int one = build_unit(b, &kernels[i], 1, err);
                        if (one)
                                r = one;
                }
                return r;
        }
        if (r && n == 1)
                af_buf_printf(err, "%s: error %d: %.*s\n", kernels[0]->symbol, r, (int)AF_MIN(own.size, (size_t)3000),
                              own.data ? (const char *)own.data : "");
        return r ? r : load_unit(b, &binary, kernels, n);
}

int batch_build(struct batch *b, struct af_buf *err) {
        int result = 0;
        for (uint32_t sync_all = 0; sync_all < 2; sync_all++) {
                struct batch_kernel *unit[UNIT_KERNELS];
                uint32_t n = 0, bytes = 0;
                for (uint32_t i = 0; i <= b->n_kernels; i++) {
                        struct batch_kernel *k = i < b->n_kernels ? &b->kernels[i] : NULL;
                        if (n && (!k || n == UNIT_KERNELS || bytes > UNIT_BYTES)) {
                                int r = build_unit(b, unit, n, err);
                                if (r)
                                        result = r;
                                n = bytes = 0;
                        }
                        if (k && !k->built && k->sync_all == sync_all) {
                                unit[n++] = k;
                                bytes += k->size;
                                k->built = true;
                        }
                }
        }
        return result;
}
