/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/bundle.h"
#include "tools/autostart.h"
#include "tools/out.h"

struct af_session_env {
        struct af_session_env *next;
        struct af_arena arena;
        char *soc, *toolchain; /* NULL: default */
        enum af_twin twin;
        struct af_env env;
};

static bool has_option(const struct af_args *args, const char *name) {
        for (const struct af_option *o = args->command->options; o->name; o++)
                if (strcmp(o->name, name) == 0)
                        return true;
        return false;
}

static void log_line(void *userdata, enum autofuse_log_level level, const char *line) {
        const struct af_session *s = userdata;
        if (level == AUTOFUSE_LOG_ERROR)
                fprintf(stderr, "warning: %s\n", line);
        else if (level == AUTOFUSE_LOG_INFO && !s->silent_fallbacks)
                fprintf(stderr, "%s\n", line);
}

int af_session_open(const struct af_args *args, struct af_session *ret_session) {
        struct af_session *s = ret_session;
        *s = (struct af_session){.deadline_ms = 600000};
        s->offline = !has_option(args, "socket") || (has_option(args, "offline") && af_args_flag(args, "offline"));
        if (has_option(args, "timeout"))
                s->deadline_ms = (uint32_t)AF_MIN(af_args_seconds(args, "timeout", 600) * 1000, (uint64_t)UINT32_MAX);
        if (s->offline)
                return AF_EXIT_OK;
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        struct autofuse_error *error = NULL;
        o.socket = af_args_text(args, "socket");
        o.client_name = "autofusectl";
        o.log = log_line;
        o.userdata = s;
        enum autofuse_status status = autofuse_context_open(&o, &s->ctx, &error);
        if (status == AUTOFUSE_OK)
                status = af_autostart(s->ctx, &error);
        if (status == AUTOFUSE_E_UNAVAILABLE && s->ctx && s->ctx->packs.n > 0) {
                autofuse_error_free(error); /* what is in the packs needs no server */
                return AF_EXIT_OK;
        }
        if (status != AUTOFUSE_OK) {
                af_session_close(s);
                af_session_report(NULL, status, error);
                return AF_EXIT_FAILED;
        }
        return AF_EXIT_OK;
}

void af_session_open_offline(struct af_session *ret_session) {
        *ret_session = (struct af_session){.offline = true};
}

void af_session_close(struct af_session *s) {
        autofuse_context_close(s->ctx);
        while (s->envs) {
                struct af_session_env *next = s->envs->next;
                af_arena_deinit(&s->envs->arena);
                free(s->envs->soc);
                free(s->envs->toolchain);
                free(s->envs);
                s->envs = next;
        }
        *s = (struct af_session){0};
}

static bool same(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}

/* Precompiled headers of the host toolchain, kept between runs; NULL: nowhere. */
static const char *pch_dir(struct af_arena *arena) {
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        if (cache && cache[0] == '/')
                return af_arena_printf(arena, "%s/autofuse_pch_cache", cache);
        return home && home[0] == '/' && home[1] ? af_arena_printf(arena, "%s/.cache/autofuse_pch_cache", home) : NULL;
}

static int load_env(struct af_session_env *e, struct af_diags *diags) {
        af_arena_init(&e->arena, 0);
        struct af_toolchain_config toolchains[] = {{.id = "host", .kind = AF_TOOLCHAIN_HOST, .pch_dir = pch_dir(&e->arena)},
                                                   {.id = "ccec", .kind = AF_TOOLCHAIN_CCEC}};
        struct af_env_config config = {
                .toolchains = toolchains, .n_toolchains = AF_ARRAY_SIZE(toolchains), .salt = getenv("AUTOFUSE_CACHE_SALT")};
        return af_env_load(&e->env, &e->arena, &config, e->soc, e->toolchain, e->twin, diags);
}

int af_session_env(struct af_session *s, const char *soc, const char *toolchain, enum af_twin twin, const struct af_env **ret_env) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        for (struct af_session_env *e = s->envs; e; e = e->next)
                if (same(e->soc, soc) && same(e->toolchain, toolchain) && e->twin == twin) {
                        *ret_env = &e->env;
                        return AF_EXIT_OK;
                }
        struct af_session_env *e = calloc(1, sizeof(*e));
        if (!e)
                return AF_EXIT_FAILED;
        e->soc = soc ? strdup(soc) : NULL;
        e->toolchain = toolchain ? strdup(toolchain) : NULL;
        e->twin = twin;
        int r = load_env(e, &diags);
        af_out_diags(&diags);
        if (r != 0) {
                if (!diags.n_errors)
                        fprintf(stderr, "error: the environment for %s, %s cannot be loaded: %s\n", soc ? soc : "the default SoC",
                                toolchain ? toolchain : "the default toolchain",
                                r < 0               ? strerror(-r)
                                : r == AF_ENV_E_SOC ? "unknown SoC"
                                                    : "no such toolchain");
                af_arena_deinit(&e->arena);
                free(e->soc);
                free(e->toolchain);
                free(e);
                return AF_EXIT_FAILED;
        }
        e->next = s->envs;
        s->envs = e;
        *ret_env = &e->env;
        return AF_EXIT_OK;
}

static enum autofuse_status offline_error(int r, const struct af_diags *diags, const struct af_buf *err,
                                          struct autofuse_error **ret_error) {
        if (r == -ENOMEM)
                return af_error_set_memory(ret_error);
        if (r < 0)
                return af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "%s", strerror(-r));
        if (r == AF_DRIVER_E_COMPILE)
                return af_error_set(ret_error, AUTOFUSE_E_COMPILE, "%.*s", (int)err->size, err->size ? (const char *)err->data : "");
        return af_error_set_diags(ret_error, diags);
}

static enum autofuse_status compile_offline(struct af_session *s, const struct af_fragment *f, struct af_prepared *prepared,
                                            struct autofuse_bundle **ret_bundle, struct autofuse_error **ret_error) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bytes = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf err = AF_BUF_INIT;
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        const struct af_env *env;
        struct af_content *content;
        const char *why = "";
        if (af_session_env(s, f->soc, f->toolchain, f->twin, &env) != AF_EXIT_OK)
                return af_error_set(ret_error, AUTOFUSE_E_TARGET, "no environment to compile for");
        uint64_t started = af_clock_now_us();
        int r = af_driver_compile(env, prepared->canon, prepared->n_canon, &s->opts, &bytes, &err, &diags);
        if (r != 0)
                return offline_error(r, &diags, &err, ret_error);
        struct af_bundle_key key = {.fragment = prepared->digest, .environment = env->digest};
        r = af_content_from_bytes(bytes.data, bytes.size, &key, &content, &why);
        if (r == 0 && !af_content_suits(content, prepared, &why)) {
                af_content_unref(content);
                r = AF_CONTENT_E_DAMAGED;
        }
        if (r != 0)
                return r == -ENOMEM ? af_error_set_memory(ret_error)
                                    : af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "the compiler made a bad bundle: %s", why);
        *ret_bundle = af_bundle_handle_new(content, prepared, AUTOFUSE_HIT_COMPILED, af_clock_now_us() - started);
        af_content_unref(content);
        return *ret_bundle ? AUTOFUSE_OK : af_error_set_memory(ret_error);
}

static void show_progress(void *userdata, const struct autofuse_progress *p) {
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "\r\033[K%s, %.0f s, waited for by %u", p->text, (double)p->elapsed_ms / 1000, p->n_waiters);
        *(bool *)userdata = true;
}

static enum autofuse_status compile_online(struct af_session *s, struct af_prepared *prepared, struct autofuse_bundle **ret_bundle,
                                           struct autofuse_error **ret_error) {
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        bool shown = false;
        o.deadline_ms = s->deadline_ms;
        o.progress = s->quiet ? NULL : show_progress;
        o.userdata = &shown;
        enum autofuse_status status = af_compile_prepared(s->ctx, af_prepared_ref(prepared), &o, ret_bundle, ret_error);
        if (shown && isatty(STDERR_FILENO))
                fputs("\r\033[K", stderr);
        return status;
}

enum autofuse_status af_session_compile(struct af_session *s, const struct af_fragment *f, struct autofuse_bundle **ret_bundle,
                                        struct autofuse_error **ret_error) {
        AF_CLEANUP(af_diags_deinit) struct af_diags diags = {0};
        struct af_prepared *prepared = NULL;
        int r = af_prepared_new(f, &diags, &prepared);
        if (r != 0)
                return r < 0 ? af_error_set_memory(ret_error) : af_error_set_diags(ret_error, &diags);
        enum autofuse_status status =
                s->offline ? compile_offline(s, f, prepared, ret_bundle, ret_error) : compile_online(s, prepared, ret_bundle, ret_error);
        af_prepared_unref(prepared);
        return status;
}

void af_session_report(const char *path, enum autofuse_status status, struct autofuse_error *error) {
        const char *text = error ? autofuse_error_text(error) : autofuse_status_name(status);
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, "\n");
                bool labelled = strncmp(p, "error: ", 7) == 0 || strncmp(p, "warning: ", 9) == 0 || p != text;
                fprintf(stderr, "%s%s%s%.*s\n", labelled ? "" : "error: ", path && !labelled ? path : "", path && !labelled ? ": " : "",
                        (int)n, p);
                p += n + (p[n] == '\n');
        }
        autofuse_error_free(error);
}
