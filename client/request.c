/* SPDX-License-Identifier: Apache-2.0 */
#include "client/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "client/bundle.h"
#include "client/fragment.h"
#include "client/hits.h"

#define DEADLINE_DEFAULT_MS 600000u
#define FALLBACK_NS         3000000000ull /* between two looks whether the server is alive */

static void request_delete(struct autofuse_request *req) {
        struct autofuse_context *ctx = req->ctx;
        for (struct af_part *p = req->parts, *next; p; p = next) {
                next = p->next;
                free(p);
        }
        free(req->part_seen);
        af_prepared_unref(req->prepared);
        af_content_unref(req->content);
        af_content_unref(req->fallback);
        autofuse_error_free(req->error);
        free(req->last_reason);
        free(req->text);
        free(req);
        af_context_unref(ctx);
}

static struct autofuse_request *request_new(struct autofuse_context *ctx, enum af_request_kind kind,
                                            const struct autofuse_submit_options *o) {
        struct autofuse_request *req = calloc(1, sizeof(*req));
        if (!req)
                return NULL;
        uint32_t deadline_ms = o->deadline_ms ? o->deadline_ms : DEADLINE_DEFAULT_MS;
        *req = (struct autofuse_request){.ctx = af_context_ref(ctx),
                                         .kind = kind,
                                         .deadline_ns = af_clock_now_ns() + deadline_ms * 1000000ull,
                                         .priority = o->priority,
                                         .lookup_only = o->lookup_only,
                                         .progress = o->progress,
                                         .part = o->part,
                                         .userdata = o->userdata};
        req->parts_tail = &req->parts;
        return req;
}

static bool take_options(const struct autofuse_submit_options *options, struct autofuse_submit_options *ret_o) {
        *ret_o = (struct autofuse_submit_options)AUTOFUSE_SUBMIT_INIT;
        if (options && options->size < sizeof(size_t))
                return false;
        if (options)
                memcpy(ret_o, options, AF_MIN(options->size, sizeof(*ret_o)));
        return true;
}

/* A new reference to what a text was prepared to, from the memo or by parsing. */
static enum autofuse_status prepare_text(struct autofuse_context *ctx, const char *text, size_t n, struct af_prepared **ret_prepared,
                                         struct autofuse_error **ret_error) {
        uint64_t hash = 0;
        if (!ctx->no_memo) {
                hash = af_memo_hash_text(text, n);
                pthread_mutex_lock(&ctx->lock);
                ctx->memo_busy = true;
                struct af_prepared *known = af_memo_get_text(&ctx->memo, hash, text, n);
                ctx->memo_busy = false;
                pthread_mutex_unlock(&ctx->lock);
                if (known) {
                        *ret_prepared = known;
                        return AUTOFUSE_OK;
                }
        }
        struct af_diags diags = {0};
        int r = af_prepared_new_text(text, n, &diags, ret_prepared);
        enum autofuse_status status = r == 0 ? AUTOFUSE_OK : r < 0 ? af_error_set_memory(ret_error) : af_error_set_diags(ret_error, &diags);
        af_diags_deinit(&diags);
        if (r == 0 && !ctx->no_memo) {
                pthread_mutex_lock(&ctx->lock);
                ctx->memo_busy = true;
                af_memo_put_text(&ctx->memo, hash, text, n, *ret_prepared);
                ctx->memo_busy = false;
                pthread_mutex_unlock(&ctx->lock);
        }
        return status;
}

/* Connects, and then looks into the area that came with the connection before anything is sent. Under the lock. */
static void connect_for(struct autofuse_context *ctx, struct autofuse_request *req) {
        bool looks = req->kind == AF_REQUEST_SUBMIT && !req->no_hot;
        req->send_at_ns = looks ? UINT64_MAX : 0;
        af_lead_connect(ctx);
        struct af_content *content = looks && ctx->conn && req->state != AF_REQUEST_DONE ? af_hits_hot(ctx, req->prepared) : NULL;
        req->send_at_ns = 0;
        if (content && req->state != AF_REQUEST_DONE) {
                req->content = content;
                req->hit = AUTOFUSE_HIT_HOT;
                af_request_finish(ctx, req, NULL);
        } else {
                af_content_unref(content);
        }
}

/* Starts a request; where no server can be had, takes it back and says so. */
static enum autofuse_status start(struct autofuse_context *ctx, struct autofuse_request *req, struct autofuse_error **ret_error) {
        struct autofuse_error *error = NULL;
        enum autofuse_status status = AUTOFUSE_OK;
        pthread_mutex_lock(&ctx->lock);
        af_request_link(ctx, req);
        if (!ctx->conn && !ctx->leading)
                connect_for(ctx, req);
        if (req->state != AF_REQUEST_DONE)
                af_lead_send(ctx);
        else if (req->error)
                status = af_error_copy(&error, req->error);
        pthread_mutex_unlock(&ctx->lock);
        if (status == AUTOFUSE_E_UNAVAILABLE)
                af_context_log_unavailable(ctx, error);
        if (status != AUTOFUSE_OK && ret_error)
                *ret_error = error;
        else
                autofuse_error_free(error);
        return status;
}

/* Asks the server; takes the references to prepared and unsure, also on failure. */
static enum autofuse_status ask_server(struct autofuse_context *ctx, struct af_prepared *prepared, struct af_content *unsure,
                                       const struct autofuse_submit_options *o, struct autofuse_request **ret_request,
                                       struct autofuse_error **ret_error) {
        struct autofuse_request *req = request_new(ctx, AF_REQUEST_SUBMIT, o);
        if (!req) {
                af_prepared_unref(prepared);
                af_content_unref(unsure);
                return af_error_set_memory(ret_error);
        }
        req->prepared = prepared;
        req->fallback = unsure;
        req->fallback_ns = af_clock_now_ns() + FALLBACK_NS;
        req->no_hot = o->bypass_memo;
        enum autofuse_status status = start(ctx, req, ret_error);
        if (status != AUTOFUSE_OK)
                request_delete(req);
        else
                *ret_request = req;
        return status;
}

enum autofuse_status af_submit_prepared(struct autofuse_context *ctx, struct af_prepared *prepared, const struct autofuse_submit_options *o,
                                        struct autofuse_request **ret_request, struct autofuse_error **ret_error) {
        struct af_content *unsure = NULL, *content = NULL;
        enum autofuse_hit hit = AUTOFUSE_HIT_MEMO;
        if (!o->bypass_memo)
                content = af_hits_find(ctx, prepared, &hit, &unsure);
        if (!content)
                return ask_server(ctx, prepared, unsure, o, ret_request, ret_error);
        struct autofuse_request *req = request_new(ctx, AF_REQUEST_SUBMIT, o);
        if (!req) {
                af_prepared_unref(prepared);
                af_content_unref(content);
                return af_error_set_memory(ret_error);
        }
        req->prepared = prepared;
        req->content = content;
        req->hit = hit;
        req->state = AF_REQUEST_DONE;
        *ret_request = req;
        return AUTOFUSE_OK;
}

enum autofuse_status autofuse_submit(struct autofuse_context *context, struct autofuse_fragment *fragment,
                                     const struct autofuse_submit_options *options, struct autofuse_request **ret_request,
                                     struct autofuse_error **ret_error) {
        struct autofuse_submit_options o;
        struct af_prepared *prepared = NULL;
        if (!context || !fragment || !ret_request || !take_options(options, &o))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_submit: an argument is NULL, or options not initialised");
        af_context_enter(context);
        enum autofuse_status status = af_fragment_prepare(fragment, &prepared, ret_error);
        return status == AUTOFUSE_OK ? af_submit_prepared(context, prepared, &o, ret_request, ret_error) : status;
}

enum autofuse_status autofuse_submit_text(struct autofuse_context *context, const char *text, size_t n,
                                          const struct autofuse_submit_options *options, struct autofuse_request **ret_request,
                                          struct autofuse_error **ret_error) {
        struct autofuse_submit_options o;
        struct af_prepared *prepared = NULL;
        if (!context || !text || !ret_request || !take_options(options, &o))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT,
                                    "autofuse_submit_text: an argument is NULL, or options not initialised");
        af_context_enter(context);
        enum autofuse_status status = prepare_text(context, text, n, &prepared, ret_error);
        return status == AUTOFUSE_OK ? af_submit_prepared(context, prepared, &o, ret_request, ret_error) : status;
}

/* Blocks on the condition until until_ns at most; somebody else leads. */
static void wait_cond(struct autofuse_context *ctx, uint64_t until_ns) {
        struct timespec ts = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
        (void)pthread_cond_timedwait(&ctx->cond, &ctx->lock, &ts);
}

/* Calls the callback with what the server last said, outside the lock. */
static void tell_progress(struct autofuse_context *ctx, struct autofuse_request *req) {
        char text[sizeof(req->progress_text)];
        memcpy(text, req->progress_text, sizeof(text));
        struct autofuse_progress p = {.text = text, .elapsed_ms = req->elapsed_ms, .n_waiters = req->n_waiters};
        pthread_mutex_unlock(&ctx->lock);
        req->progress(req->userdata, &p);
        pthread_mutex_lock(&ctx->lock);
}

/* Calls the callback with the kernels that came, outside the lock. */
static void tell_parts(struct autofuse_context *ctx, struct autofuse_request *req) {
        while (req->parts) {
                struct af_part *p = req->parts;
                req->parts = p->next;
                if (!req->parts)
                        req->parts_tail = &req->parts;
                pthread_mutex_unlock(&ctx->lock);
                req->part(req->userdata, &p->info);
                free(p);
                pthread_mutex_lock(&ctx->lock);
        }
}

static void expire(struct autofuse_context *ctx, struct autofuse_request *req) {
        struct autofuse_error *error = NULL;
        if (req->last_reason)
                (void)af_error_set_retryable(&error, AUTOFUSE_E_DEADLINE, "the deadline passed; the last reason: %s", req->last_reason);
        else
                (void)af_error_set_retryable(&error, AUTOFUSE_E_DEADLINE, "the deadline passed");
        af_request_send_cancel(ctx, req);
        af_request_finish(ctx, req, error);
        af_lead_send(ctx);
}

/* Under the lock: a server that neither tells what is in force nor says that it works on it is not waited for. */
static void use_fallback(struct autofuse_context *ctx, struct autofuse_request *req, uint64_t now) {
        struct autofuse_error *error = NULL;
        if (af_hits_area_is_fresh(ctx, now) || req->n_progress != req->fallback_progress) {
                req->fallback_progress = req->n_progress;
                req->fallback_ns = now + FALLBACK_NS;
                return;
        }
        (void)af_error_set(&error, AUTOFUSE_E_UNAVAILABLE, "the server does not answer");
        af_request_send_cancel(ctx, req);
        af_request_finish(ctx, req, error);
        af_lead_send(ctx);
}

/* Under the lock: until it is done or until_ns. False: not done. */
static bool wait_done(struct autofuse_context *ctx, struct autofuse_request *req, uint64_t until_ns) {
        uint32_t seen = 0;
        while (req->state != AF_REQUEST_DONE) {
                tell_parts(ctx, req);
                if (req->state == AF_REQUEST_DONE)
                        break;
                uint64_t now = af_clock_now_ns();
                if (req->progress && req->n_progress != seen) {
                        seen = req->n_progress;
                        tell_progress(ctx, req);
                } else if (now >= req->deadline_ns) {
                        expire(ctx, req);
                } else if (req->fallback && now >= req->fallback_ns) {
                        use_fallback(ctx, req, now);
                } else if (now >= until_ns) {
                        return false;
                } else {
                        uint64_t next_ns = AF_MIN(until_ns, req->deadline_ns);
                        if (req->fallback)
                                next_ns = AF_MIN(next_ns, req->fallback_ns);
                        if (ctx->leading)
                                wait_cond(ctx, next_ns);
                        else
                                af_lead_turn(ctx, next_ns);
                }
        }
        tell_parts(ctx, req); /* those that came with the answer */
        return true;
}

/* Waits; status of the request, its error copied. */
static enum autofuse_status request_complete(struct autofuse_request *req, int timeout_ms, struct autofuse_error **ret_error) {
        struct autofuse_context *ctx = req->ctx;
        struct autofuse_error *error = NULL;
        uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX : af_clock_now_ns() + (uint64_t)timeout_ms * 1000000;
        enum autofuse_status status;
        pthread_mutex_lock(&ctx->lock);
        if (req->state != AF_REQUEST_DONE && req->fork_serial != ctx->fork_serial)
                af_request_link(ctx, req); /* the parent's: this process asks for itself */
        if (!wait_done(ctx, req, until_ns))
                status = af_error_set_retryable(&error, AUTOFUSE_E_TIMEOUT, "no answer within %d ms%s%s", timeout_ms,
                                                req->n_progress ? ": " : "", req->n_progress ? req->progress_text : "");
        else
                status = req->error ? af_error_copy(&error, req->error) : AUTOFUSE_OK;
        pthread_mutex_unlock(&ctx->lock);
        if (status == AUTOFUSE_E_UNAVAILABLE)
                af_context_log_unavailable(ctx, error);
        if (status != AUTOFUSE_OK && ret_error)
                *ret_error = error;
        else
                autofuse_error_free(error);
        return status;
}

/* `Fallback <origin> $reason: <why>`, once per fragment. */
static void announce(struct autofuse_context *ctx, struct autofuse_bundle *bundle) {
        if (!ctx->log || bundle->hit == AUTOFUSE_HIT_MEMO || atomic_exchange(&bundle->prepared->announced, true))
                return;
        struct autofuse_step_info step;
        for (uint32_t i = 0; autofuse_bundle_step(bundle, i, &step); i++)
                if (step.kind == AUTOFUSE_STEP_FRAMEWORK)
                        af_context_log(ctx, AUTOFUSE_LOG_INFO, "Fallback %s $reason: %s", step.origin ? step.origin : step.op, step.reason);
}

static enum autofuse_status make_handle(struct autofuse_context *ctx, struct af_content *content, struct af_prepared *prepared,
                                        enum autofuse_hit hit, uint64_t compile_us, struct autofuse_bundle **ret_bundle,
                                        struct autofuse_error **ret_error) {
        struct autofuse_bundle *bundle = af_bundle_handle_new(content, prepared, hit, compile_us);
        if (!bundle)
                return af_error_set_memory(ret_error);
        announce(ctx, bundle);
        *ret_bundle = bundle;
        return AUTOFUSE_OK;
}

enum autofuse_status autofuse_request_wait(struct autofuse_request *request, int timeout_ms, struct autofuse_bundle **ret_bundle,
                                           struct autofuse_error **ret_error) {
        if (!request || !ret_bundle)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_request_wait: an argument is NULL");
        af_context_enter(request->ctx);
        enum autofuse_status status = request_complete(request, timeout_ms, ret_error);
        return status == AUTOFUSE_OK ? make_handle(request->ctx, request->content, request->prepared, request->hit, request->compile_us,
                                                   ret_bundle, ret_error)
                                     : status;
}

void autofuse_request_cancel(struct autofuse_request *request) {
        if (!request)
                return;
        struct autofuse_context *ctx = request->ctx;
        af_context_enter(ctx);
        pthread_mutex_lock(&ctx->lock);
        if (request->state != AF_REQUEST_DONE) {
                struct autofuse_error *error = NULL;
                (void)af_error_set(&error, AUTOFUSE_E_CANCELED, "canceled");
                af_request_send_cancel(ctx, request);
                af_request_finish(ctx, request, error);
                af_lead_send(ctx);
        }
        pthread_mutex_unlock(&ctx->lock);
}

void autofuse_request_free(struct autofuse_request *request) {
        if (!request)
                return;
        autofuse_request_cancel(request);
        request_delete(request);
}

enum autofuse_status af_compile_prepared(struct autofuse_context *ctx, struct af_prepared *prepared,
                                         const struct autofuse_submit_options *o, struct autofuse_bundle **ret_bundle,
                                         struct autofuse_error **ret_error) {
        struct autofuse_request *req = NULL;
        struct af_content *unsure = NULL, *content = NULL;
        enum autofuse_hit hit = AUTOFUSE_HIT_MEMO;
        if (!o->bypass_memo)
                content = af_hits_find(ctx, prepared, &hit, &unsure);
        if (content) {
                enum autofuse_status status = make_handle(ctx, content, prepared, hit, 0, ret_bundle, ret_error);
                af_content_unref(content);
                af_prepared_unref(prepared);
                return status;
        }
        enum autofuse_status status = ask_server(ctx, prepared, unsure, o, &req, ret_error);
        if (status == AUTOFUSE_OK)
                status = autofuse_request_wait(req, -1, ret_bundle, ret_error);
        autofuse_request_free(req);
        return status;
}

enum autofuse_status autofuse_compile(struct autofuse_context *context, struct autofuse_fragment *fragment,
                                      const struct autofuse_submit_options *options, struct autofuse_bundle **ret_bundle,
                                      struct autofuse_error **ret_error) {
        struct autofuse_submit_options o;
        struct af_prepared *prepared = NULL;
        if (!context || !fragment || !ret_bundle || !take_options(options, &o))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_compile: an argument is NULL, or options not initialised");
        af_context_enter(context);
        enum autofuse_status status = af_fragment_prepare(fragment, &prepared, ret_error);
        return status == AUTOFUSE_OK ? af_compile_prepared(context, prepared, &o, ret_bundle, ret_error) : status;
}

enum autofuse_status autofuse_compile_text(struct autofuse_context *context, const char *text, size_t n,
                                           const struct autofuse_submit_options *options, struct autofuse_bundle **ret_bundle,
                                           struct autofuse_error **ret_error) {
        struct autofuse_submit_options o;
        struct af_prepared *prepared = NULL;
        if (!context || !text || !ret_bundle || !take_options(options, &o))
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT,
                                    "autofuse_compile_text: an argument is NULL, or options not initialised");
        af_context_enter(context);
        enum autofuse_status status = prepare_text(context, text, n, &prepared, ret_error);
        return status == AUTOFUSE_OK ? af_compile_prepared(context, prepared, &o, ret_bundle, ret_error) : status;
}

/* A question with a text as answer. kernel: SOURCE; else NULL. */
static enum autofuse_status ask(struct autofuse_context *ctx, enum af_request_kind kind, const struct af_digest *kernel, char **ret_text,
                                struct autofuse_error **ret_error) {
        struct autofuse_submit_options o = AUTOFUSE_SUBMIT_INIT;
        if (!ctx)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "no context");
        af_context_enter(ctx);
        o.deadline_ms = 30000;
        struct autofuse_request *req = request_new(ctx, kind, &o);
        if (!req)
                return af_error_set_memory(ret_error);
        if (kernel)
                req->kernel = *kernel;
        enum autofuse_status status = start(ctx, req, ret_error);
        if (status == AUTOFUSE_OK)
                status = request_complete(req, -1, ret_error);
        if (status == AUTOFUSE_OK && ret_text) {
                *ret_text = req->text;
                req->text = NULL;
        }
        autofuse_request_free(req);
        return status;
}

enum autofuse_status autofuse_server_stats(struct autofuse_context *context, char **ret_json, struct autofuse_error **ret_error) {
        return ask(context, AF_REQUEST_STATS, NULL, ret_json, ret_error);
}

enum autofuse_status autofuse_server_clear(struct autofuse_context *context, char **ret_json, struct autofuse_error **ret_error) {
        return ask(context, AF_REQUEST_CLEAR, NULL, ret_json, ret_error);
}

enum autofuse_status autofuse_kernel_source(struct autofuse_context *context, const struct autofuse_bundle *bundle, uint32_t kernel,
                                            char **ret_source, struct autofuse_error **ret_error) {
        const struct af_bundle_kernel *k = bundle ? af_bundle_at(af_bundle_tables(bundle), AF_SECTION_KERNELS, kernel) : NULL;
        if (!k || !ret_source)
                return af_error_set(ret_error, AUTOFUSE_E_ARGUMENT, "autofuse_kernel_source: no such kernel, or no place for its source");
        return ask(context, AF_REQUEST_SOURCE, &k->key, ret_source, ret_error);
}
