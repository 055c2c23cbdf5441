/* SPDX-License-Identifier: Apache-2.0 */
#include "client/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"

static void content_free(struct af_content *c) {
        if (c->kernels)
                for (uint32_t i = 0; i < af_bundle_count(&c->view, AF_SECTION_KERNELS); i++)
                        af_host_kernel_free(atomic_load(&c->kernels[i]));
        free(c->kernels);
        af_solved_memo_deinit(&c->solved);
        if (c->mapped)
                af_io_unmap(c->data, c->size);
        else
                free((void *)c->data);
        free(c);
}

/* Takes the bytes, also on failure. */
static int content_new(const void *data, size_t n, bool mapped, bool verified, const struct af_bundle_key *key,
                       struct af_content **ret_content, const char **ret_why) {
        struct af_content *c = calloc(1, sizeof(*c));
        if (!c) {
                if (mapped)
                        af_io_unmap(data, n);
                else
                        free((void *)data);
                return -ENOMEM;
        }
        *c = (struct af_content){.key = *key, .data = data, .size = n, .mapped = mapped};
        atomic_init(&c->refs, 1);
        af_solved_memo_init(&c->solved);
        const char *why = "damaged";
        int r = (verified ? af_bundle_open_verified : af_bundle_open)(data, n, &c->view, &why) == 0 ? 0 : AF_CONTENT_E_DAMAGED;
        if (r == 0 && (c->view.header->flags & AF_BUNDLE_SKELETON)) {
                why = "it has no kernels' binaries";
                r = AF_CONTENT_E_DAMAGED;
        }
        uint32_t n_kernels = r == 0 ? af_bundle_count(&c->view, AF_SECTION_KERNELS) : 0;
        if (r == 0) {
                c->kernels = calloc(n_kernels + 1, sizeof(*c->kernels));
                r = c->kernels ? 0 : -ENOMEM;
        }
        if (r != 0) {
                content_free(c);
                if (r > 0)
                        *ret_why = why;
                return r;
        }
        *ret_content = c;
        return 0;
}

int af_content_from_bytes(const void *p, size_t n, const struct af_bundle_key *key, struct af_content **ret_content, const char **ret_why) {
        void *copy = malloc(n ? n : 1);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, p, n);
        return content_new(copy, n, false, false, key, ret_content, ret_why);
}

int af_content_from_verified(void *p, size_t n, const struct af_bundle_key *key, struct af_content **ret_content, const char **ret_why) {
        return content_new(p, n, false, true, key, ret_content, ret_why);
}

int af_content_from_memfd(int fd, uint64_t n, const struct af_bundle_key *key, struct af_content **ret_content, const char **ret_why) {
        struct stat st;
        if (af_io_check_sealed(fd) < 0) {
                *ret_why = "its memory is not sealed";
                return AF_CONTENT_E_DAMAGED;
        }
        if (fstat(fd, &st) < 0)
                return -errno;
        if (n == 0 || n > AF_CONTENT_MAX_BYTES || (uint64_t)st.st_size != n) {
                *ret_why = "its size is not the one that was announced";
                return AF_CONTENT_E_DAMAGED;
        }
        const void *data;
        size_t size;
        int r = af_io_map_fd(fd, &data, &size);
        return r < 0 ? r : content_new(data, size, true, false, key, ret_content, ret_why);
}

struct af_content *af_content_ref(struct af_content *content) {
        atomic_fetch_add_explicit(&content->refs, 1, memory_order_relaxed);
        return content;
}

void af_content_unref(struct af_content *content) {
        if (content && atomic_fetch_sub_explicit(&content->refs, 1, memory_order_acq_rel) == 1)
                content_free(content);
}

int af_content_kernel(struct af_content *content, uint32_t i, struct af_host_kernel **ret_kernel, char **ret_why) {
        struct af_host_kernel *k = atomic_load_explicit(&content->kernels[i], memory_order_acquire);
        if (!k) {
                const struct af_bundle_kernel *bk = af_bundle_at(&content->view, AF_SECTION_KERNELS, i);
                int r = af_host_kernel_load(af_bundle_blob(&content->view, bk->binary), bk->binary.size, &k, ret_why);
                if (r != 0)
                        return r;
                struct af_host_kernel *other = NULL;
                if (!atomic_compare_exchange_strong(&content->kernels[i], &other, k)) {
                        af_host_kernel_free(k);
                        k = other;
                }
        }
        *ret_kernel = k;
        return 0;
}
