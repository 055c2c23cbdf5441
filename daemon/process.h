/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program without waiting for it to be executed: on a busy machine that takes as long as it takes to be scheduled. */
#pragma once

#include <sys/types.h>

#include "base/macros.h"

/*
 * A session of its own, in /, with default signals and nothing open but 0 (in), 1 (out), 2 (ours) and 3 (lifeline). A program that cannot
 * be executed ends with status 127. *ret_pidfd is readable when it has ended; who started it reaps it (af_process_reap). 0 or -errno.
 */
int af_process_start(char *const argv[], char *const envp[], int in, int out, int lifeline, pid_t *ret_pid, int *ret_pidfd) AF_WARN_UNUSED;
/* Exit status and signal of one that has ended; -EAGAIN while it runs. */
int af_process_reap(pid_t pid, int *ret_status, int *ret_signal) AF_WARN_UNUSED;
