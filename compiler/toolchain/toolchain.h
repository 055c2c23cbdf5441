/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Toolchains: `host` (g++ or clang++ against twin/) and `ccec` (CANN's ccec or bisheng). A probed toolchain is a snapshot: driver,
 * flags and the closure digest over everything that can change its output.
 */
#pragma once

#include "base/arena.h"
#include "base/digest.h"
#include "compiler/toolchain/closure.h"
#include "proto/fragment.h"
#include "runtime/soc.h"

enum af_toolchain_kind { AF_TOOLCHAIN_HOST, AF_TOOLCHAIN_CCEC, AF_TOOLCHAIN_BISHENG };
struct af_toolchain_config {
        const char *id; /* "host", "ccec" or the operator's */
        enum af_toolchain_kind kind;
        const char *driver;                  /* path or name (g++, clang++); NULL: found ($ASCEND_HOME_PATH for ccec) */
        const char *extra_flags;             /* operator's, split at blanks; NULL: none */
        const char *twin_dir, *include_root; /* host: directory of twin/ headers and the root that has numeric/ */
        const char *pch_dir;                 /* host: where precompiled headers are kept; NULL: none */
        const char *ascend_home;             /* ccec; NULL: $ASCEND_HOME_PATH */
        const char *tmp_dir;                 /* where compiles work; NULL: TMPDIR or /tmp */
};
struct af_toolchain {
        const char *id;
        enum af_toolchain_kind kind;
        const char *driver;         /* absolute path */
        const char *version;        /* first line of --version */
        const char *const *argv;    /* NULL-terminated compile command without source, output and PCH options */
        const char *flags;          /* the same joined without driver and include directories, as it enters keys */
        const char *const *closure; /* files digested: driver, cc1plus, as, ld, their libraries, headers */
        uint32_t n_closure;
        struct af_digest closure_digest;
        struct af_toolchain_config config;
        enum af_twin twin;                     /* host */
        const char *npu_arch, *ccec_arch;      /* ccec, bisheng: the SoC's "dav-2201", "dav-c220-vec" */
        const char *linker;                    /* ccec, bisheng: ld.lld; NULL: none found */
        struct af_closure_file *closure_files; /* n_closure, with memoised digests (closure.h): recheck refreshes them */
};
enum {
        AF_TOOLCHAIN_E_MISSING = 1 /* no such program or CANN */,
        AF_TOOLCHAIN_E_REJECTED = 2 /* compile error: text in err */,
        AF_TOOLCHAIN_E_KILLED = 3 /* signal, memory */,
        AF_TOOLCHAIN_E_TIMEOUT = 4,
        AF_TOOLCHAIN_E_SPACE = 5 /* disk full */,
        AF_TOOLCHAIN_E_NO_OUTPUT = 6 /* said 0, left nothing usable */,
        AF_TOOLCHAIN_E_CHANGED = 7 /* closure differs from the snapshot */
};

/* Finds the programs, resolves -march, digests the closure. Blocks (runs the driver a few times). 0, -errno, MISSING; KILLED where one of
 * them was ended while it was asked: nothing is known then, try again. */
int af_toolchain_probe(struct af_arena *arena, const struct af_toolchain_config *config, const struct af_soc *soc, enum af_twin twin,
                       struct af_toolchain *ret, struct af_diags *diags) AF_WARN_UNUSED;
/*
 * Compares the closure with the snapshot: by stat, and by content where stat differs (closure.h). 0 unchanged, CHANGED, -errno. One thread
 * at a time per toolchain.
 */
int af_toolchain_recheck(const struct af_toolchain *t) AF_WARN_UNUSED;
/* The command line for a source file and an output file: argv in arena, NULL-terminated. Pure; golden-tested for ccec and bisheng. */
int af_toolchain_command(struct af_arena *arena, const struct af_toolchain *t, const char *source_path, const char *output_path,
                         const char *const **ret_argv) AF_WARN_UNUSED;
/*
 * Compiles one source to a loadable binary: host: a shared object exporting AF_TWIN_LAUNCH_SYMBOL (twin/ and runtime/host_kernel.h); ccec:
 * a device ELF. Works in a private temporary directory that is gone afterwards. err gets the compiler's text with paths made relative.
 * lifeline_fd as in base/spawn.h. trace (may be NULL) gets `[CompileTrace] …` lines. 0, -errno, or AF_TOOLCHAIN_E_*.
 */
int af_toolchain_compile(const struct af_toolchain *t, const char *symbol, const void *source, size_t n, uint64_t timeout_ms,
                         int lifeline_fd, struct af_buf *ret_binary, struct af_buf *err, struct af_buf *trace) AF_WARN_UNUSED;
