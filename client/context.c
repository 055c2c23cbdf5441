/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/hits.h"
#include "client/request.h"

#define MEMO_DEFAULT_BYTES (64ull << 20)
#define RESTART_WINDOW_NS  5000000000ull
#define HELLO_NS           5000000000ull
#define HELLO_QUICK_NS     500000000ull

enum { GENERATION_WIPED = 0, GENERATION_BUSY = 1, GENERATION_READY = 2 };

static int init_sync(struct autofuse_context *ctx) {
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_mutex_init(&ctx->lock, NULL);
        pthread_cond_init(&ctx->cond, &attr);
        pthread_condattr_destroy(&attr);
        ctx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return ctx->wake_fd < 0 ? -errno : 0;
}

static void init_generation(struct autofuse_context *ctx) {
        ctx->fork_pid = getpid();
        void *page = mmap(NULL, sizeof(*ctx->generation), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return;
        if (madvise(page, sizeof(*ctx->generation), MADV_WIPEONFORK) < 0) {
                munmap(page, sizeof(*ctx->generation));
                return;
        }
        ctx->generation = page;
        atomic_store(ctx->generation, GENERATION_READY);
}

/* In a forked child, by one thread. What another thread of the parent may have held is neither locked nor freed. */
static void after_fork(struct autofuse_context *ctx) {
        if (ctx->conn)
                close(ctx->conn->fd);
        close(ctx->wake_fd);
        ctx->conn = NULL;
        ctx->requests = NULL;
        ctx->leading = false;
        ctx->fork_serial++;
        ctx->down = NULL;
        ctx->down_until_ns = 0;
        ctx->last_logged = NULL;
        ctx->fork_pid = getpid();
        if (ctx->memo_busy)
                af_memo_init(&ctx->memo, ctx->memo.max_bytes);
        ctx->memo_busy = false;
        ctx->n_touches = 0;   /* the area stays: it is the same memory, and as good as before */
        (void)init_sync(ctx); /* without a wake descriptor the leader looks again at its own pace */
}

void af_context_enter(struct autofuse_context *ctx) {
        if (!ctx->generation) {
                if (ctx->fork_pid != getpid())
                        after_fork(ctx);
                return;
        }
        while (atomic_load_explicit(ctx->generation, memory_order_acquire) != GENERATION_READY) {
                uint32_t wiped = GENERATION_WIPED;
                if (atomic_compare_exchange_strong(ctx->generation, &wiped, GENERATION_BUSY)) {
                        after_fork(ctx);
                        atomic_store_explicit(ctx->generation, GENERATION_READY, memory_order_release);
                        return;
                }
                sched_yield();
        }
}

static bool env_is(const char *name, const char *value) {
        const char *v = secure_getenv(name);
        return v && strcmp(v, value) == 0;
}

static int64_t env_uid(void) {
        const char *v = secure_getenv("AUTOFUSE_SERVER_UID");
        char *end;
        if (!v || !v[0])
                return -1;
        long long uid = strtoll(v, &end, 10);
        return *end == 0 && uid >= 0 && uid < UINT32_MAX ? uid : -1;
}

static void tell_pack(void *userdata, const char *line) {
        const struct autofuse_context *ctx = userdata;

        if (ctx->log)
                ctx->log(ctx->log_userdata, AUTOFUSE_LOG_ERROR, line);
}

static int configure(struct autofuse_context *ctx, const struct autofuse_options *o) {
        ctx->own_uid = geteuid();
        ctx->server_uid = o->server_uid >= 0 ? o->server_uid : env_uid();
        ctx->window_ns = o->connect_timeout_ms ? o->connect_timeout_ms * 1000000ull : UINT64_MAX;
        ctx->strict = o->strict < 0 ? env_is("AUTOFUSE_STRICT", "1") : o->strict > 0;
        ctx->no_memo = o->memo_bytes == UINT64_MAX;
        ctx->log = o->log;
        ctx->log_userdata = o->userdata;
        ctx->next_id = 1;
        ctx->name = strdup(o->client_name ? o->client_name : program_invocation_short_name);
        af_memo_init(&ctx->memo, ctx->no_memo ? 0 : o->memo_bytes ? o->memo_bytes : MEMO_DEFAULT_BYTES);
        if (!ctx->name || af_packs_open(o->packs ? o->packs : secure_getenv("AUTOFUSE_PACKS"), secure_getenv("AUTOFUSE_PACK_KEY"),
                                        tell_pack, ctx, &ctx->packs) < 0)
                return -ENOMEM;
        return af_socket_paths_make(o->socket, secure_getenv("AUTOFUSE_SOCKET"), secure_getenv("XDG_RUNTIME_DIR"), ctx->own_uid,
                                    &ctx->paths);
}

enum autofuse_status autofuse_context_open(const struct autofuse_options *options, struct autofuse_context **ret_context,
                                           struct autofuse_error **ret_error) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        if (!ret_context || (options && options->size < sizeof(size_t)))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT,
                                    "autofuse_context_open: no place for the context, or options not initialised");
        if (options)
                memcpy(&o, options, AF_MIN(options->size, sizeof(o)));
        struct autofuse_context *ctx = calloc(1, sizeof(*ctx));
        if (!ctx)
                return af_error_set_memory(ret_error);
        atomic_init(&ctx->refs, 1);
        int r = init_sync(ctx);
        if (r == 0)
                r = configure(ctx, &o);
        if (r < 0) {
                af_context_unref(ctx);
                return r == -ENOMEM ? af_error_set_memory(ret_error)
                                    : af_error_set(ret_error, AUTOFUSE_E_UNAVAILABLE, "cannot open a context: %s", strerror(-r));
        }
        init_generation(ctx);
        *ret_context = ctx;
        return AUTOFUSE_OK;
}

struct autofuse_context *af_context_ref(struct autofuse_context *ctx) {
        atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
        return ctx;
}

void af_context_unref(struct autofuse_context *ctx) {
        if (!ctx || atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1)
                return;
        af_connection_close(ctx->conn);
        af_hot_view_unref(ctx->hot);
        af_packs_close(&ctx->packs);
        if (ctx->wake_fd >= 0)
                close(ctx->wake_fd);
        if (ctx->generation)
                munmap((void *)ctx->generation, sizeof(*ctx->generation));
        pthread_cond_destroy(&ctx->cond);
        pthread_mutex_destroy(&ctx->lock);
        af_memo_deinit(&ctx->memo);
        af_socket_paths_deinit(&ctx->paths);
        autofuse_error_free(ctx->down);
        free(ctx->last_logged);
        free(ctx->name);
        free(ctx);
}

void autofuse_context_close(struct autofuse_context *context) {
        if (!context)
                return;
        af_context_enter(context);
        pthread_mutex_lock(&context->lock);
        af_hits_send_touches(context, af_clock_coarse_ns(), true);
        pthread_mutex_unlock(&context->lock);
        af_context_unref(context);
}

bool autofuse_context_is_strict(const struct autofuse_context *context) {
        return context->strict;
}

void autofuse_context_forget(struct autofuse_context *context) {
        af_context_enter(context);
        pthread_mutex_lock(&context->lock);
        context->memo_busy = true;
        af_memo_clear(&context->memo);
        context->memo_busy = false;
        pthread_mutex_unlock(&context->lock);
}

void autofuse_context_memo_stats(struct autofuse_context *context, struct autofuse_memo_stats *ret_stats) {
        af_context_enter(context);
        pthread_mutex_lock(&context->lock);
        const struct af_memo *m = &context->memo;
        *ret_stats = (struct autofuse_memo_stats){
                .hits = m->n_hits, .misses = m->n_misses, .entries = m->n_entries, .bytes = m->n_bytes, .evictions = m->n_evictions};
        pthread_mutex_unlock(&context->lock);
}

struct af_content *af_context_memo_get(struct autofuse_context *ctx, const struct af_digest *fragment) {
        ctx->memo_busy = true;
        struct af_content *content = af_memo_get(&ctx->memo, fragment);
        ctx->memo_busy = false;
        return content;
}

void af_context_memo_put(struct autofuse_context *ctx, struct af_content *content) {
        if (ctx->no_memo)
                return;
        ctx->memo_busy = true;
        af_memo_put(&ctx->memo, content);
        ctx->memo_busy = false;
}

void af_context_log(struct autofuse_context *ctx, enum autofuse_log_level level, const char *fmt, ...) {
        char line[1536];
        va_list ap;
        if (!ctx->log)
                return;
        va_start(ap, fmt);
        vsnprintf(line, sizeof(line), fmt, ap);
        va_end(ap);
        ctx->log(ctx->log_userdata, level, line);
}

void af_context_log_unavailable(struct autofuse_context *ctx, const struct autofuse_error *error) {
        if (!ctx->log || !error)
                return;
        pthread_mutex_lock(&ctx->lock);
        bool again = ctx->last_logged && strcmp(ctx->last_logged, error->text) == 0;
        if (!again) {
                free(ctx->last_logged);
                ctx->last_logged = strdup(error->text);
        }
        pthread_mutex_unlock(&ctx->lock);
        if (!again)
                af_context_log(ctx, ctx->strict ? AUTOFUSE_LOG_ERROR : AUTOFUSE_LOG_WARNING, "autofused is not used: %s", error->text);
}

void af_context_connect_params(const struct autofuse_context *ctx, struct af_connect *ret_how) {
        uint64_t window = ctx->window_ns;
        if (window == UINT64_MAX && ctx->connected_once)
                window = RESTART_WINDOW_NS;
        bool quick =
                af_requests_can_do_without(ctx); /* what they have is as good as before: no job stands still for a server that is gone */
        *ret_how = (struct af_connect){.paths = &ctx->paths,
                                       .own_uid = ctx->own_uid,
                                       .server_uid = ctx->server_uid,
                                       .name = ctx->name,
                                       .window_ns = quick ? 0 : window,
                                       .quick = quick,
                                       .hello_ns = quick ? HELLO_QUICK_NS : HELLO_NS};
}
