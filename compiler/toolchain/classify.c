/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler's end means. Drivers exit 1 for a syntax error, a killed cc1plus and a full disk alike: the text tells. */
#include <errno.h>
#include <string.h>

#include "compiler/toolchain/internal.h"

static bool has(const void *text, size_t n, const char *const *words) {
        for (; *words; words++)
                if (memmem(text, n, *words, strlen(*words)))
                        return true;
        return false;
}

int af_tool_classify(const struct af_spawn_result *result, const void *err, size_t n_err) {
        static const char *const space[] = {"No space left on device", "Disk quota exceeded", "File too large", NULL};
        static const char *const killed[] = {"Killed signal",
                                             "fatal error: Killed",
                                             "Terminated signal",
                                             "signal terminated program",
                                             "terminated with signal",
                                             "Killed (program",
                                             "Killed\n",
                                             "out of memory",
                                             "virtual memory exhausted",
                                             "annot allocate memory",
                                             "std::bad_alloc",
                                             "Resource temporarily unavailable",
                                             "clang frontend command failed due to signal",
                                             "unable to execute command",
                                             NULL};

        if (result->lifeline_lost)
                return -ECANCELED;
        if (result->timed_out)
                return AF_TOOLCHAIN_E_TIMEOUT;
        if (result->signal == 0 && result->exit_code == 0)
                return 0;
        if (has(err, n_err, space))
                return AF_TOOLCHAIN_E_SPACE;
        if (result->signal || result->exit_code > 128 || has(err, n_err, killed))
                return AF_TOOLCHAIN_E_KILLED;
        return AF_TOOLCHAIN_E_REJECTED;
}
