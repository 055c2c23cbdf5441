/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static _Atomic int log_level = AF_LOG_INFO;

void af_log_set_level(enum af_log_level level) {
        atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

/* The syslog priority that systemd reads from "<N>" at the start of a line, or the word for people. */
static const char *prefix(enum af_log_level level, bool journal) {
        switch (level) {
        case AF_LOG_ERROR:
                return journal ? "<3>" : "error: ";
        case AF_LOG_WARNING:
                return journal ? "<4>" : "warning: ";
        case AF_LOG_INFO:
                return journal ? "<6>" : "";
        case AF_LOG_DEBUG:
                return journal ? "<7>" : "debug: ";
        }
        return "";
}

void af_log(enum af_log_level level, const char *fmt, ...) {
        char line[LINE_MAX_BYTES];
        int saved = errno;
        va_list args;

        if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
                return;
        int n_prefix = snprintf(line, sizeof(line), "%s", prefix(level, getenv("JOURNAL_STREAM") != NULL));
        errno = saved; /* fmt may hold %m */
        va_start(args, fmt);
        int n = vsnprintf(line + n_prefix, sizeof(line) - (size_t)n_prefix - 1, fmt, args);
        va_end(args);
        if (n < 0)
                n = 0;
        size_t end = AF_MIN((size_t)(n_prefix + n), sizeof(line) - 2);
        /* One record stays one line, whatever a peer put into the text. */
        for (size_t i = 0; i < end; i++)
                if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
                        line[i] = ' ';
        line[end++] = '\n';
        /* One write: lines of several threads and processes do not mix. A log that cannot be written is nobody's error. */
        while (write(STDERR_FILENO, line, end) < 0 && errno == EINTR)
                ;
        errno = saved;
}
