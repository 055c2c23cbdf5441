/* SPDX-License-Identifier: Apache-2.0 */
/* watch: the server's events as they come, one line each. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/admin.h"
#include "tools/commands.h"
#include "tools/event_line.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {'e', "event", AF_OPTION_LIST, "PREFIX", "only events whose names begin so, as job. or request.miss; may be given many times"},
        {'n', "count", AF_OPTION_NUMBER, "N", "end after N events"},
        {0, "color", AF_OPTION_TEXT, "WHEN", "auto (on a terminal), always or never"},
        AF_OPTIONS_SERVER,
        {0},
};

struct watch {
        const struct af_args *args;
        bool json, color;
        uint64_t left; /* events; UINT64_MAX: no end */
};

static bool wanted(const struct watch *w, const char *name) {
        const char *prefix = af_args_list(w->args, "event", 0);
        if (!prefix)
                return true;
        for (uint32_t i = 0; (prefix = af_args_list(w->args, "event", i)); i++)
                if (strncmp(name, prefix, strlen(prefix)) == 0)
                        return true;
        return false;
}

static void show(struct watch *w, const struct af_field *f) {
        cJSON *o = cJSON_ParseWithLength((const char *)f->p, f->n);
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(o, "event");
        if (cJSON_IsString(name) && wanted(w, name->valuestring) && w->left > 0) {
                if (w->json)
                        printf("%.*s\n", (int)f->n, (const char *)f->p);
                else
                        af_event_line(o, w->color, stdout);
                w->left -= w->left != UINT64_MAX;
        }
        cJSON_Delete(o);
}

static void on_frame(struct watch *w, const struct af_incoming *in) {
        struct af_cursor c = af_cursor_make(in->body, in->n_body);
        struct af_field f;
        while (in->h.type == AF_FRAME_EVENT && af_frame_next(&c, &f)) {
                if (f.tag == AF_TAG_EVENT)
                        show(w, &f);
                else if (f.tag == AF_TAG_LOST && f.n == 8)
                        fprintf(stderr, "%llu events were lost: this end did not keep up\n", (unsigned long long)af_field_u64(&f));
        }
        if (fflush(stdout) != 0)
                w->left = 0; /* nobody reads */
}

static int follow(struct watch *w, struct af_connection *conn) {
        while (w->left > 0) {
                struct pollfd p = {.fd = conn->fd, .events = POLLIN};
                struct af_incoming in;
                const char *why;
                int r = af_connection_read(conn, &in, &why);
                if (r == -EAGAIN) {
                        (void)poll(&p, 1, -1);
                        continue;
                }
                if (r != 0) {
                        fputs("the server is gone\n", stderr);
                        return AF_EXIT_FAILED;
                }
                on_frame(w, &in);
                if (in.fd >= 0)
                        close(in.fd);
        }
        return AF_EXIT_OK;
}

static int run(const struct af_args *args) {
        const char *color = af_args_text(args, "color") ? af_args_text(args, "color") : "auto";
        bool always = strcmp(color, "always") == 0, automatic = strcmp(color, "auto") == 0;
        struct watch w = {.args = args,
                          .json = af_args_flag(args, "json"),
                          .color = always || (automatic && isatty(STDOUT_FILENO)),
                          .left = af_args_number(args, "count", UINT64_MAX)};
        struct af_admin a;
        struct af_buf none = AF_BUF_INIT;
        char *text = NULL;
        if (!always && !automatic && strcmp(color, "never") != 0) {
                fprintf(stderr, "autofusectl watch: --color %s: auto, always or never\n", color);
                return AF_EXIT_USAGE;
        }
        int r = af_admin_open(args, &a);
        if (r != AF_EXIT_OK)
                return r;
        r = af_admin_ask(&a, AF_FRAME_WATCH, &none, NULL, &text, NULL, NULL);
        free(text);
        if (r == AF_EXIT_OK)
                r = follow(&w, a.conn);
        af_admin_close(&a);
        return r;
}

const struct af_command af_command_watch = {
        .name = "watch",
        .operands = "",
        .summary = "show what the server does, live",
        .details = "One line per event; docs/gate.md lists them. --json prints each as a JSON object on a line. Ends with the server, or "
                   "on Ctrl-C.",
        .options = options,
        .run = run,
};
