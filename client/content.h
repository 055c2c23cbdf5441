/* SPDX-License-Identifier: Apache-2.0 */
/* The checked bytes of a bundle, shared by all handles and the memo: a mapped sealed memfd, or a copy on the heap. */
#pragma once

#include <stdatomic.h>

#include "client/solved.h"
#include "compiler/graph/key.h"
#include "proto/bundle.h"
#include "runtime/host_kernel.h"

#define AF_CONTENT_MAX_BYTES (1ull << 30)

struct af_content {
        atomic_uint refs;
        struct af_bundle_key key;
        const void *data;
        size_t size;
        bool mapped;                       /* else malloc'd */
        bool packed;                       /* out of a pack of this process */
        uint64_t confirmed_ns, touched_ns; /* the server said that it is in force; heard that it was used. Under the context's lock */
        struct af_bundle view;
        /* Loaded on first use, published by compare-and-swap; one per KERNELS entry. */
        _Atomic(struct af_host_kernel *) *kernels;
        struct af_solved_memo solved; /* of a form */
};

enum { AF_CONTENT_E_DAMAGED = 1 /* *ret_why: static text */ };

/* Checks and copies n bytes. 0, -ENOMEM, DAMAGED. The caller gets the one reference. */
int af_content_from_bytes(const void *p, size_t n, const struct af_bundle_key *key, struct af_content **ret_content,
                          const char **ret_why) AF_WARN_UNUSED;
/* Checks that fd is a sealed memfd of n bytes, maps it and checks the bytes. The caller keeps fd. 0, -errno, DAMAGED. */
int af_content_from_memfd(int fd, uint64_t n, const struct af_bundle_key *key, struct af_content **ret_content,
                          const char **ret_why) AF_WARN_UNUSED;
/* Takes p (malloc'd, aligned to 8; freed also on failure), whose bytes were verified where they came from. 0, -ENOMEM, DAMAGED. */
int af_content_from_verified(void *p, size_t n, const struct af_bundle_key *key, struct af_content **ret_content,
                             const char **ret_why) AF_WARN_UNUSED;
struct af_content *af_content_ref(struct af_content *content);
void af_content_unref(struct af_content *content);
/*
 * Kernel i, loaded from this copy of the bytes; belongs to content. i is in range. 0, -errno, AF_HOST_KERNEL_E_LOAD with *ret_why
 * (malloc'd, may be NULL).
 */
int af_content_kernel(struct af_content *content, uint32_t i, struct af_host_kernel **ret_kernel, char **ret_why) AF_WARN_UNUSED;
