/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gate_child.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"
#include "daemon/paths.h"

#define MAX_PATH        107u          /* nanomsg aborts on longer ones */
#define QUICK_NS        2000000000ull /* an end so soon after the start is one of a row */
#define PAUSE_MS        20u           /* before it is started again: doubled with each quick end */
#define MAX_PAUSE_MS    500u
#define LOGGED_RESTARTS 3u

static void on_timer(uv_timer_t *timer);

void af_gate_child_init(struct af_core *core) {
        struct af_gate_child *g = &core->gate;

        g->lifeline = -1;
        uv_timer_init(core->loop, &g->timer);
        g->timer.data = core;
}

static void drop_lifeline(struct af_gate_child *g) {
        if (g->lifeline >= 0)
                close(g->lifeline);
        g->lifeline = -1;
}

static void start_later(struct af_core *core) {
        struct af_gate_child *g = &core->gate;
        bool quick = af_clock_now_ns() - g->started_ns < QUICK_NS;
        unsigned pause = PAUSE_MS;

        g->n_quick = quick ? g->n_quick + 1 : 0;
        for (unsigned i = 1; i < g->n_quick && pause < MAX_PAUSE_MS; i++)
                pause *= 2;
        uv_timer_start(&g->timer, on_timer, AF_MIN(pause, MAX_PAUSE_MS), 0);
}

static void on_gone(uv_process_t *process, int64_t status, int sig) {
        struct af_core *core = process->data;
        struct af_gate_child *g = &core->gate;

        g->running = false;
        drop_lifeline(g);
        uv_close((uv_handle_t *)process, NULL);
        if (g->stopping || !g->on) {
                unlink(g->door);
                unlink(g->events);
                return;
        }
        if (g->n_quick <= LOGGED_RESTARTS)
                af_log(AF_LOG_WARNING, "the gate ended (%s %d); it is started again", sig ? "signal" : "status", sig ? sig : (int)status);
        start_later(core);
}

/* The arguments of the configuration at hand, one per line; malloc'd. */
static char *make_settings(const struct af_config *c) {
        struct af_buf buf = AF_BUF_INIT;
        size_t n;

        af_buf_printf(&buf, "--mode\n%s\n--message-bytes\n%llu\n--memory-bytes\n%llu\n--requests\n%llu", c->gate_mode,
                      (unsigned long long)c->gate_message_mib << 20, (unsigned long long)c->gate_memory_mib << 20,
                      (unsigned long long)c->gate_requests);
        for (uint32_t i = 0; i < c->allow_uid.n; i++)
                af_buf_printf(&buf, "%s%u", i ? "," : "\n--uids\n", c->allow_uid.items[i]);
        return (char *)af_buf_take(&buf, &n);
}

static int spawn(struct af_core *core, int lifeline) {
        struct af_gate_child *g = &core->gate;
        char *settings = strdup(g->settings), *save = NULL, *env[] = {(char *)"LC_ALL=C.UTF-8", NULL};
        char *args[24] = {g->program, (char *)"--core", g->core, (char *)"--door", g->door, (char *)"--events", g->events};
        unsigned n = 7;
        uv_stdio_container_t stdio[4] = {{.flags = UV_IGNORE},
                                         {.flags = UV_INHERIT_FD, .data.fd = 2},
                                         {.flags = UV_INHERIT_FD, .data.fd = 2},
                                         {.flags = UV_INHERIT_FD, .data.fd = lifeline}};
        uv_process_options_t o = {
                .exit_cb = on_gone, .file = g->program, .args = args, .env = env, .cwd = "/", .stdio_count = 4, .stdio = stdio};
        int r;

        if (!settings)
                return -ENOMEM;
        for (char *word = strtok_r(settings, "\n", &save); word && n + 1 < AF_ARRAY_SIZE(args); word = strtok_r(NULL, "\n", &save))
                args[n++] = word;
        g->process.data = core;
        r = uv_spawn(core->loop, &g->process, &o);
        if (r < 0)
                uv_close((uv_handle_t *)&g->process, NULL);
        free(settings);
        return r;
}

static void start(struct af_core *core) {
        struct af_gate_child *g = &core->gate;
        int r, ends[2];

        if (core->closing || g->running || !g->on)
                return;
        r = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
        if (r == 0) {
                r = spawn(core, ends[0]);
                close(ends[0]);
                g->lifeline = ends[1];
        }
        g->started_ns = af_clock_now_ns();
        if (r < 0) {
                drop_lifeline(g);
                af_log(AF_LOG_WARNING, "cannot start %s: %s; there is no gate", g->program, strerror(-r));
                return;
        }
        g->running = true;
        g->n_starts++;
}

static void on_timer(uv_timer_t *timer) {
        start(timer->data);
}

/* DIR/NAME, beside the core's socket. */
static char *beside(const char *socket, const char *name) {
        char *copy = strdup(socket), *path = NULL;

        if (copy && asprintf(&path, "%s/%s", dirname(copy), name) < 0)
                path = NULL;
        free(copy);
        return path;
}

/* Where its sockets are. False: nowhere; logged. */
static bool find_place(struct af_core *core) {
        struct af_gate_child *g = &core->gate;

        if (!g->core)
                g->core = af_listener_path(&core->listener);
        if (g->core && !g->door)
                g->door = beside(g->core, "gate.ipc");
        if (g->core && !g->events)
                g->events = beside(g->core, "events.ipc");
        if (!g->program)
                g->program = core->config->gate_path ? strdup(core->config->gate_path) : af_path_gate();
        if (!g->program || !g->door || !g->events) {
                af_log(AF_LOG_WARNING, "there is no gate: its sockets have no place");
                return false;
        }
        if (strlen(g->events) > MAX_PATH) {
                af_log(AF_LOG_WARNING, "there is no gate: the path %s has %zu bytes, at most %u can be used", g->events, strlen(g->events),
                       MAX_PATH);
                return false;
        }
        return true;
}

void af_gate_child_start(struct af_core *core) {
        struct af_gate_child *g = &core->gate;
        char *settings = make_settings(core->config);
        bool same = settings && g->settings && strcmp(settings, g->settings) == 0;

        free(g->settings);
        g->settings = settings;
        g->on = core->config->gate && settings && (g->on || find_place(core));
        /* A new one with the new settings comes when the old one is gone. */
        if (g->running && (!g->on || !same))
                uv_process_kill(&g->process, SIGKILL);
        start(core);
}

void af_gate_child_close(struct af_core *core) {
        struct af_gate_child *g = &core->gate;

        g->stopping = true;
        uv_close((uv_handle_t *)&g->timer, NULL);
        if (g->running)
                uv_process_kill(&g->process, SIGKILL);
}

void af_gate_child_deinit(struct af_core *core) {
        struct af_gate_child *g = &core->gate;

        drop_lifeline(g);
        free(g->program);
        free(g->core);
        free(g->door);
        free(g->events);
        free(g->settings);
}
