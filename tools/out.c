/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

void af_table_init(struct af_table *t, const char *const *heads, uint32_t n_columns) {
        *t = (struct af_table){.n_columns = n_columns};
        for (uint32_t i = 0; i < n_columns; i++)
                af_table_add(t, "%s", heads[i]);
}

void af_table_deinit(struct af_table *t) {
        for (uint32_t i = 0; i < t->n_cells; i++)
                free(t->cells[i]);
        free(t->cells);
        *t = (struct af_table){0};
}

void af_table_add(struct af_table *t, const char *fmt, ...) {
        va_list ap;
        char *text = NULL;
        if (t->n_cells == t->cap_cells) {
                uint32_t cap = t->cap_cells ? t->cap_cells * 2 : 64;
                char **cells = realloc(t->cells, cap * sizeof(*cells));
                if (!cells) {
                        t->failed = true;
                        return;
                }
                t->cells = cells;
                t->cap_cells = cap;
        }
        va_start(ap, fmt);
        int n = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (n < 0)
                t->failed = true;
        else
                t->cells[t->n_cells++] = text;
}

/* Columns that a UTF-8 text takes. */
static int width(const char *s) {
        int n = 0;
        for (; *s; s++)
                n += ((unsigned char)*s & 0xc0) != 0x80;
        return n;
}

/* A number, perhaps with a unit. */
static bool is_numeric(const char *s) {
        char *end;
        strtod(s, &end);
        return end != s && strlen(end) <= 5;
}

/* A column stands right where every cell below the heading is a number or empty. */
static bool is_right(const struct af_table *t, uint32_t column) {
        bool any = false;
        for (uint32_t i = t->n_columns + column; i < t->n_cells; i += t->n_columns) {
                if (t->cells[i][0] && strcmp(t->cells[i], "-") != 0 && !is_numeric(t->cells[i]))
                        return false;
                any |= t->cells[i][0] != 0;
        }
        return any;
}

void af_table_print(const struct af_table *t, unsigned indent, FILE *out) {
        int widest[AF_TABLE_MAX_COLUMNS] = {0};
        bool right[AF_TABLE_MAX_COLUMNS];
        if (t->failed || t->n_columns == 0 || t->n_columns > AF_TABLE_MAX_COLUMNS)
                return;
        for (uint32_t i = 0; i < t->n_cells; i++)
                widest[i % t->n_columns] = AF_MAX(widest[i % t->n_columns], width(t->cells[i]));
        for (uint32_t c = 0; c < t->n_columns; c++)
                right[c] = is_right(t, c);
        for (uint32_t i = 0; i < t->n_cells; i += t->n_columns) {
                fprintf(out, "%*s", (int)indent, "");
                for (uint32_t c = 0; c < t->n_columns && i + c < t->n_cells; c++) {
                        const char *cell = t->cells[i + c];
                        int pad = widest[c] - width(cell);
                        bool last = c + 1 == t->n_columns;
                        fprintf(out, "%*s%s%*s", right[c] ? pad : 0, "", cell, right[c] || last ? 0 : pad, "");
                        fputs(last ? "" : "  ", out);
                }
                fputc('\n', out);
        }
}

const char *af_out_bytes(uint64_t n, char out[32]) {
        static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
        double v = (double)n;
        unsigned u = 0;
        for (; v >= 1024 && u + 1 < AF_ARRAY_SIZE(units); u++)
                v /= 1024;
        snprintf(out, 32, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
        return out;
}

const char *af_out_us(uint64_t us, char out[32]) {
        if (us < 1000)
                snprintf(out, 32, "%llu us", (unsigned long long)us);
        else if (us < 1000000)
                snprintf(out, 32, "%.1f ms", (double)us / 1000);
        else
                snprintf(out, 32, "%.2f s", (double)us / 1000000);
        return out;
}

void af_out_diags(const struct af_diags *diags) {
        struct af_buf buf = AF_BUF_INIT;
        af_diags_format(diags, &buf);
        if (buf.size)
                fwrite(buf.data, 1, buf.size, stderr);
        af_buf_deinit(&buf);
}

void af_out_json(cJSON *json) {
        char *text = cJSON_Print(json);
        if (text)
                puts(text);
        cJSON_free(text);
        cJSON_Delete(json);
}

void af_bar_start(struct af_bar *bar, const char *what, uint64_t total) {
        *bar = (struct af_bar){.what = what, .total = total, .started_us = af_clock_now_us(), .active = isatty(STDERR_FILENO)};
        af_bar_update(bar, 0, NULL);
}

static unsigned columns(void) {
        struct winsize ws = {0};
        return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 20 ? ws.ws_col : 80;
}

void af_bar_update(struct af_bar *bar, uint64_t done, const char *note) {
        uint64_t now = af_clock_now_us();
        bar->done = done;
        if (!bar->active || (bar->drawn_us && now - bar->drawn_us < 100000 && done < bar->total))
                return;
        bar->drawn_us = now;
        unsigned cols = columns(), n_bar = AF_MIN(cols / 3, 30u);
        unsigned filled = bar->total ? (unsigned)(done * n_bar / bar->total) : 0;
        char line[512], cells[4 * 32 + 1];
        size_t at = 0;
        for (unsigned i = 0; i < n_bar; i++) {
                const char *cell = i < filled ? "█" : "░";
                memcpy(cells + at, cell, strlen(cell));
                at += strlen(cell);
        }
        cells[at] = 0;
        int n = snprintf(line, sizeof(line), "%s %s %llu/%llu  %.1f s", bar->what, cells, (unsigned long long)done,
                         (unsigned long long)bar->total, (double)(now - bar->started_us) / 1e6);
        int room = (int)cols - 1 - (width(line) + 2);
        fprintf(stderr, "\r\033[K%.*s", n, line);
        if (note && room > 8)
                fprintf(stderr, "  %.*s", room, note);
        fflush(stderr);
}

void af_bar_end(struct af_bar *bar) {
        if (bar->active)
                fputs("\r\033[K", stderr);
        bar->active = false;
}

bool af_out_is_file(const char *command, const char *path) {
        bool ok = path[0] && strcmp(path, "-") != 0;

        if (!ok)
                fprintf(stderr, "autofusectl %s: '%s' is no name of a file to write\n", command, path);
        return ok;
}
