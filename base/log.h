/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines of the daemon and the tools: to stderr, `<N>` priority prefix where systemd reads it (JOURNAL_STREAM). Thread-safe. */
#pragma once

#include "base/macros.h"

enum af_log_level { AF_LOG_ERROR, AF_LOG_WARNING, AF_LOG_INFO, AF_LOG_DEBUG };

void af_log_set_level(enum af_log_level level);
void af_log(enum af_log_level level, const char *fmt, ...) AF_PRINTF(2, 3);
