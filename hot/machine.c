/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's processor can do, by the system's own words for it. */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "hot/pack.h"

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "flags : fpu vme …" of x86, "Features : …" of arm64. NULL where there is no such line. */
static char *flags_line(char *text) {
        char *line = strstr(text, "\nflags"), *colon;

        if (!line)
                line = strstr(text, "\nFeatures");
        colon = line ? strchr(line, ':') : NULL;
        if (!colon)
                return NULL;
        colon[1 + strcspn(colon + 1, "\n")] = 0;
        return colon + 1;
}

void af_pack_machine(struct af_buf *buf) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        char *words[1024], *line, *state = NULL;
        size_t n = 0;

        if (af_io_read_file("/proc/cpuinfo", 16u << 20, &text) < 0)
                return;
        af_buf_put_u8(&text, 0);
        line = af_buf_error(&text) ? NULL : flags_line((char *)text.data);
        for (char *w = line ? strtok_r(line, " \t", &state) : NULL; w && n < AF_ARRAY_SIZE(words); w = strtok_r(NULL, " \t", &state))
                words[n++] = w;
        qsort(words, n, sizeof(*words), by_text);
        for (size_t i = 0; i < n; i++)
                af_buf_printf(buf, "%s%s", i ? " " : "", words[i]);
}
