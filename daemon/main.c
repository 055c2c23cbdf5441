/* SPDX-License-Identifier: Apache-2.0 */
/* autofused: reads the configuration, opens state and socket, runs the loop until it is told to stop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/core.h"
#include "daemon/paths.h"

struct server {
        struct af_core core;
        struct af_config config;
        uv_loop_t loop;
        uv_signal_t signals[3];
        int argc;
        char **argv;
};

/* For the crash handler alone. */
static struct af_store *crash_store;

static void on_crash(int sig) {
        af_store_mark_suspect(crash_store);
        signal(sig, SIG_DFL);
        raise(sig);
}

static void handle_crashes(struct af_store *store) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

        crash_store = store;
        for (size_t i = 0; i < AF_ARRAY_SIZE(signals); i++)
                sigaction(signals[i], &(struct sigaction){.sa_handler = on_crash, .sa_flags = SA_NODEFER | SA_RESETHAND}, NULL);
}

static void print_diags(const struct af_diags *diags) {
        for (uint32_t i = 0; i < diags->n_items; i++) {
                const struct af_diag *d = &diags->items[i];

                af_log(d->severity == AF_SEVERITY_ERROR ? AF_LOG_ERROR : AF_LOG_WARNING, "%s: %s", d->where, d->what);
        }
}

static void set_log_level(const struct af_config *config) {
        static const char *const names[] = {"error", "warning", "info", "debug"};

        for (unsigned i = 0; i < AF_ARRAY_SIZE(names); i++)
                if (config->log_level && strcmp(config->log_level, names[i]) == 0)
                        af_log_set_level(i);
}

/* ---- signals ---- */

static void stop(struct server *s) {
        if (s->core.closing)
                return;
        af_core_close(&s->core);
        for (size_t i = 0; i < AF_ARRAY_SIZE(s->signals); i++)
                uv_close((uv_handle_t *)&s->signals[i], NULL);
}

static void on_drained(struct af_core *core) {
        stop(core->loop->data);
}

static void on_stop(uv_signal_t *handle, int signum) {
        struct server *s = handle->data;

        if (s->core.draining) {
                af_log(AF_LOG_INFO, "told twice: going at once");
                stop(s);
                return;
        }
        af_log(AF_LOG_INFO, "going down when %u requests are done", s->core.n_requests);
        sd_notify(0, "STOPPING=1");
        af_core_drain(&s->core);
}

static void on_reload(uv_signal_t *handle, int signum) {
        struct server *s = handle->data;
        struct af_config fresh, old = s->config;
        struct af_diags diags = {0};
        int r;

        sd_notify(0, "RELOADING=1");
        r = af_config_load(&fresh, s->argc, s->argv, &diags);
        print_diags(&diags);
        af_diags_deinit(&diags);
        if (r) {
                af_log(AF_LOG_ERROR, "the configuration stays as it was");
                af_config_deinit(&fresh);
        } else {
                s->config = fresh;
                set_log_level(&s->config);
                af_core_reload(&s->core, &s->config);
                af_config_deinit(&old);
                af_log(AF_LOG_INFO, "configuration read again");
        }
        sd_notify(0, "READY=1");
}

static void watch_signals(struct server *s) {
        static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

        for (size_t i = 0; i < AF_ARRAY_SIZE(numbers); i++) {
                uv_signal_init(&s->loop, &s->signals[i]);
                s->signals[i].data = s;
                uv_signal_start(&s->signals[i], numbers[i] == SIGHUP ? on_reload : on_stop, numbers[i]);
        }
}

/* ---- start ---- */

static int complain(const char *why, int r) {
        af_log(AF_LOG_ERROR, "%s", why ? why : r < 0 ? strerror(-r) : "failed");
        return 1;
}

static int open_all(struct server *s) {
        struct af_core *core = &s->core;
        AF_CLEANUP(af_freep) char *why = NULL;
        AF_CLEANUP(af_freep) char *path = NULL;
        char ledger[4096];
        int r;

        if (core->state_dir == NULL)
                return complain("there is no state directory: set HOME, AUTOFUSE_STATE_DIR or state_dir", 0);
        r = af_store_open(&(struct af_store_config){.dir = core->state_dir,
                                                    .map_bytes = s->config.store_map_mib << 20,
                                                    .max_bytes = s->config.store_max_mib << 20},
                          &core->store, &why);
        if (r)
                return complain(why, r);
        handle_crashes(core->store);
        if (af_store_read_only(core->store)) {
                af_log(AF_LOG_WARNING, "%s cannot be written: what it has is served, nothing is added", core->state_dir);
        } else {
                snprintf(ledger, sizeof(ledger), "%s/ledger.sqlite", core->state_dir);
                if (af_ledger_open(ledger, &core->ledger) < 0)
                        core->ledger = NULL;
        }
        path = s->config.socket ? strdup(s->config.socket) : af_path_socket();
        if (!path)
                return complain(NULL, -ENOMEM);
        r = af_listener_open(&core->listener, path, &why);
        if (r)
                return complain(why, r);
        r = af_core_start(core);
        if (r)
                return complain(NULL, r);
        af_log(AF_LOG_INFO, "autofused " AF_VERSION " on %s, state in %s, %llu jobs", core->listener.activated ? "systemd's socket" : path,
               core->state_dir, (unsigned long long)s->config.jobs);
        return 0;
}

static int run(struct server *s) {
        int r;

        uv_loop_init(&s->loop);
        s->loop.data = s;
        r = af_core_init(&s->core, &s->loop, &s->config);
        s->core.on_drained = on_drained;
        if (r == 0 || !s->core.state_dir)
                r = open_all(s);
        else
                r = complain(NULL, r);
        if (r == 0) {
                watch_signals(s);
                sd_notify(0, "READY=1");
                uv_run(&s->loop, UV_RUN_DEFAULT);
        } else {
                af_core_close(&s->core);
                uv_run(&s->loop, UV_RUN_DEFAULT);
        }
        crash_store = NULL;
        af_store_close(s->core.store);
        af_ledger_close(s->core.ledger);
        af_core_deinit(&s->core);
        uv_loop_close(&s->loop);
        return r;
}

/* Nothing but standard streams and systemd's sockets is taken over from whoever started us. */
static void drop_inherited(void) {
        int keep = 3 + AF_MAX(sd_listen_fds(0), 0), fd;

        close_range((unsigned)keep, ~0u, 0);
        while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd < 3)
                ;
        if (fd >= 3)
                close(fd);
}

int main(int argc, char **argv) {
        static struct server server;
        struct af_diags diags = {0};
        int r;

        drop_inherited();
        umask(077); /* one policy for every file: its owner's alone (the socket is the exception, listen.c) */
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
        server.argc = argc;
        server.argv = argv;
        r = af_config_load(&server.config, argc, argv, &diags);
        if (server.config.help || server.config.version) {
                AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;

                if (server.config.help)
                        af_config_help(&buf);
                else
                        af_buf_put_str(&buf, "autofused " AF_VERSION "\n");
                r = fwrite(buf.data, 1, buf.size, stdout) == buf.size && fflush(stdout) == 0 ? 0 : 1;
        } else {
                print_diags(&diags);
                set_log_level(&server.config);
                r = r ? 2 : run(&server);
        }
        af_diags_deinit(&diags);
        af_config_deinit(&server.config);
        return r;
}
