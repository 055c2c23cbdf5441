/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many kernels in one compile: tests of thousands of kernels spend most of their time starting compilers. Each kernel's source, as the
 * code generator wrote it, gets a namespace of its own in one translation unit (batch_unit.h). Not how kernels are served: one object each.
 */
#pragma once

#include "compiler/toolchain/toolchain.h"
#include "runtime/host_kernel.h"

struct batch_kernel {
        char *symbol; /* owned; names its source: symbols carry a digest of it */
        uint8_t *source;
        uint32_t size;
        bool built, sync_all;
        af_twin_launch_fn launch; /* NULL until built, and where the compile failed */
};
struct batch {
        const struct af_toolchain *toolchain; /* borrowed */
        struct batch_kernel *kernels;
        uint32_t n_kernels, cap_kernels;
        void **handles;
        uint32_t n_handles, cap_handles;
        uint64_t n_compiles;
};

/* The host toolchain with these flags on top of those that kernels are served with; NULL: what compiles fastest. */
struct af_toolchain_config batch_toolchain(const char *flags);
void batch_init(struct batch *b, const struct af_toolchain *toolchain);
/* Unloads every kernel and forgets it. */
void batch_reset(struct batch *b);
/* Copies. A symbol seen before is the same kernel. 0 or -ENOMEM. */
int batch_add(struct batch *b, const char *symbol, const void *source, uint32_t size) AF_WARN_UNUSED;
/* Compiles and loads what was added since; a unit that does not compile is tried kernel by kernel, err gets the compiler's text. 0,
 * -errno, or AF_TOOLCHAIN_E_* of the last failure. */
int batch_build(struct batch *b, struct af_buf *err) AF_WARN_UNUSED;
/* NULL: not there, or it did not compile. */
af_twin_launch_fn batch_find(const struct batch *b, const char *symbol);
