/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame from the server means for the request it belongs to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/bundle.h"
#include "client/request.h"

static struct autofuse_request *find(struct autofuse_context *ctx, uint64_t id) {
        for (struct autofuse_request *req = ctx->requests; req; req = req->next)
                if (req->id == id && req->state == AF_REQUEST_SENT)
                        return req;
        return NULL;
}

static void take_text(const struct af_incoming *in, char *out, size_t size) {
        struct af_field f;
        size_t n = af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f) ? AF_MIN((size_t)f.n, size - 1) : 0;
        if (n)
                memcpy(out, f.p, n);
        out[n] = 0;
}

static void on_progress(struct autofuse_context *ctx, struct autofuse_request *req, const struct af_incoming *in) {
        struct af_field f;
        take_text(in, req->progress_text, sizeof(req->progress_text));
        if (af_frame_find(in->body, in->n_body, AF_TAG_ELAPSED_MS, 8, &f))
                req->elapsed_ms = af_field_u64(&f);
        if (af_frame_find(in->body, in->n_body, AF_TAG_WAITERS, 4, &f))
                req->n_waiters = af_field_u32(&f);
        req->n_progress++;
        pthread_cond_broadcast(&ctx->cond);
}

/* Whether it is the first time that this kernel comes; after a connection that broke they come again. */
static bool is_new_kernel(struct autofuse_request *req, uint32_t kernel, uint32_t n_kernels) {
        if (!req->part_seen) {
                req->part_seen = calloc(n_kernels, 1);
                req->n_part_kernels = n_kernels;
        }
        if (!req->part_seen || n_kernels != req->n_part_kernels || req->part_seen[kernel])
                return false;
        req->part_seen[kernel] = 1;
        return true;
}

/* Only a help: one that does not fit, or for which memory is short, comes with the answer. */
static void on_part(struct autofuse_context *ctx, struct autofuse_request *req, const struct af_incoming *in) {
        struct af_field key, index, n_parts, bytes;
        if (!req->part || !af_frame_find(in->body, in->n_body, AF_TAG_KEY, 2 * sizeof(struct af_digest), &key) ||
            !af_frame_find(in->body, in->n_body, AF_TAG_PART, 4, &index) ||
            !af_frame_find(in->body, in->n_body, AF_TAG_N_PARTS, 4, &n_parts) ||
            !af_frame_find(in->body, in->n_body, AF_TAG_BUNDLE, 0, &bytes) || bytes.n == 0 ||
            memcmp(key.p, &req->prepared->digest, sizeof(req->prepared->digest)) != 0)
                return;
        uint32_t i = af_field_u32(&index), n = af_field_u32(&n_parts);
        if (i == 0 || i >= n || n > AF_REQUEST_MAX_KERNELS) /* 0 is the bundle's own tables */
                return;
        struct af_part *p = malloc(sizeof(*p) + bytes.n);
        if (!p || !is_new_kernel(req, i - 1, n - 1)) {
                free(p);
                return;
        }
        memcpy(p + 1, bytes.p, bytes.n);
        *p = (struct af_part){.info = {.kernel = i - 1, .n_kernels = n - 1, .binary = p + 1, .n_bytes = bytes.n}};
        *req->parts_tail = p;
        req->parts_tail = &p->next;
        pthread_cond_broadcast(&ctx->cond);
}

static enum autofuse_status status_of(enum af_error_code code) {
        switch (code) {
        case AF_ERROR_INVALID:
        case AF_ERROR_TOO_LARGE:
                return AUTOFUSE_E_INVALID;
        case AF_ERROR_COMPILE:
                return AUTOFUSE_E_COMPILE;
        case AF_ERROR_DEADLINE:
                return AUTOFUSE_E_DEADLINE;
        case AF_ERROR_CANCELED:
                return AUTOFUSE_E_CANCELED;
        case AF_ERROR_NOT_FOUND:
                return AUTOFUSE_E_NOT_FOUND;
        case AF_ERROR_TOOLCHAIN:
                return AUTOFUSE_E_TARGET;
        case AF_ERROR_PROTOCOL:
        case AF_ERROR_VERSION:
        case AF_ERROR_REFUSED:
        case AF_ERROR_DRAINING:
        case AF_ERROR_BUSY:
        case AF_ERROR_JOB_DIED:
        case AF_ERROR_INTERNAL:
        case AF_ERROR_STORAGE:
                return AUTOFUSE_E_UNAVAILABLE;
        }
        return AUTOFUSE_E_UNAVAILABLE;
}

static void on_error(struct autofuse_context *ctx, struct autofuse_request *req, const struct af_incoming *in) {
        struct af_field f;
        enum af_error_code code = af_frame_find(in->body, in->n_body, AF_TAG_CODE, 4, &f) ? af_field_u32(&f) : AF_ERROR_INTERNAL;
        bool retryable = af_frame_find(in->body, in->n_body, AF_TAG_RETRYABLE, 1, &f) && f.p[0];
        struct autofuse_error *error = NULL;
        bool has_text = af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f) && f.n > 0;
        int n = has_text ? (int)AF_MIN(f.n, 1u << 20) : 0;
        bool waits = code == AF_ERROR_BUSY || code == AF_ERROR_DRAINING;
        bool alone = req->fallback && status_of(code) == AUTOFUSE_E_UNAVAILABLE; /* not worth a wait */
        if (retryable && !alone && (waits || req->n_tries < AF_REQUEST_MAX_TRIES)) {
                free(req->last_reason);
                req->last_reason = has_text ? strndup((const char *)f.p, (size_t)n) : strdup(af_error_code_name(code));
                af_request_postpone(req, req->n_tries++);
                pthread_cond_broadcast(&ctx->cond);
                return;
        }
        if (!has_text)
                (void)(retryable ? af_error_set_retryable : af_error_set)(&error, status_of(code), "the server says: %s",
                                                                          af_error_code_name(code));
        else
                (void)(retryable ? af_error_set_retryable : af_error_set)(&error, status_of(code), "%.*s", n, (const char *)f.p);
        af_request_finish(ctx, req, error);
}

/* The bundle of a RESULT: inline, or a sealed memfd. */
static int take_content(const struct autofuse_request *req, const struct af_incoming *in, struct af_content **ret_content,
                        const char **ret_why) {
        struct af_field f;
        struct af_bundle_key key;
        if (!af_frame_find(in->body, in->n_body, AF_TAG_KEY, sizeof(key.fragment) + sizeof(key.environment), &f)) {
                *ret_why = "it has no key";
                return AF_CONTENT_E_DAMAGED;
        }
        memcpy(&key.fragment, f.p, sizeof(key.fragment));
        memcpy(&key.environment, f.p + sizeof(key.fragment), sizeof(key.environment));
        if (!af_digest_equal(&key.fragment, &req->prepared->digest)) {
                *ret_why = "its key is another fragment's";
                return AF_CONTENT_E_DAMAGED;
        }
        /* The same key is the same answer, and it was verified: whoever has loaded its kernels goes on with them. */
        struct af_content *known = req->fallback ? req->fallback : af_memo_peek(&req->ctx->memo, &key.fragment);
        if (known && memcmp(&known->key, &key, sizeof(key)) == 0) {
                *ret_content = af_content_ref(known);
                return 0;
        }
        if (in->fd >= 0) {
                if (af_frame_find(in->body, in->n_body, AF_TAG_BUNDLE_BYTES, 8, &f))
                        return af_content_from_memfd(in->fd, af_field_u64(&f), &key, ret_content, ret_why);
                *ret_why = "its size is missing";
                return AF_CONTENT_E_DAMAGED;
        }
        if (af_frame_find(in->body, in->n_body, AF_TAG_BUNDLE, 0, &f))
                return af_content_from_bytes(f.p, f.n, &key, ret_content, ret_why);
        *ret_why = "it has no bundle";
        return AF_CONTENT_E_DAMAGED;
}

/* Where the answer comes from. */
static void take_origin(struct autofuse_request *req, const struct af_content *content, const struct af_incoming *in) {
        struct af_field f;
        uint8_t hit = af_frame_find(in->body, in->n_body, AF_TAG_HIT, 1, &f) ? f.p[0] : AF_HIT_COMPILED;
        req->hit = content == req->fallback ? AUTOFUSE_HIT_MEMO
                   : hit == AF_HIT_JOINED   ? AUTOFUSE_HIT_JOINED
                   : hit == AF_HIT_STORE    ? AUTOFUSE_HIT_STORE
                                            : AUTOFUSE_HIT_COMPILED;
        if (content != req->fallback && af_frame_find(in->body, in->n_body, AF_TAG_COMPILE_US, 8, &f))
                req->compile_us = af_field_u64(&f);
}

static void on_result(struct autofuse_context *ctx, struct autofuse_request *req, const struct af_incoming *in) {
        struct autofuse_error *error = NULL;
        struct af_content *content = NULL;
        const char *why = "";
        int r = take_content(req, in, &content, &why);
        if (r == 0 && !af_content_suits(content, req->prepared, &why)) {
                af_content_unref(content);
                r = AF_CONTENT_E_DAMAGED;
        }
        if (r == 0) {
                content->confirmed_ns = content->touched_ns = af_clock_coarse_ns();
                ctx->n_unsure = 0;
                take_origin(req, content, in);
                req->content = content;
                af_context_memo_put(ctx, content);
        } else if (r == AF_CONTENT_E_DAMAGED) {
                (void)af_error_set(&error, AUTOFUSE_E_UNAVAILABLE, "the server's answer cannot be used: %s", why);
        } else if (r == -ENOMEM) {
                (void)af_error_set_memory(&error);
        } else {
                (void)af_error_set(&error, AUTOFUSE_E_UNAVAILABLE, "the server's answer cannot be mapped: %s", strerror(-r));
        }
        af_request_finish(ctx, req, error);
}

static void on_text(struct autofuse_context *ctx, struct autofuse_request *req, const struct af_incoming *in) {
        struct af_field f;
        struct autofuse_error *error = NULL;
        bool has = af_frame_find(in->body, in->n_body, AF_TAG_TEXT, 0, &f);
        req->text = strndup(has ? (const char *)f.p : "", has ? f.n : 0);
        if (!req->text)
                (void)af_error_set_memory(&error);
        af_request_finish(ctx, req, error);
}

int af_dispatch(struct autofuse_context *ctx, struct af_incoming *in, const char **ret_why) {
        struct autofuse_request *req = find(ctx, in->h.request_id);
        int r = 0;
        switch (in->h.type) {
        case AF_FRAME_PROGRESS:
                if (req)
                        on_progress(ctx, req, in);
                break;
        case AF_FRAME_RESULT:
                if (req && req->kind == AF_REQUEST_SUBMIT)
                        on_result(ctx, req, in);
                break;
        case AF_FRAME_ERROR:
                if (req) {
                        on_error(ctx, req, in);
                } else if (in->h.request_id == 0) {
                        *ret_why = "it reports an error of the connection";
                        r = AF_CONNECTION_E_PROTOCOL;
                }
                break;
        case AF_FRAME_STATS:
        case AF_FRAME_CLEAR:
        case AF_FRAME_SOURCE:
                if (req && req->kind != AF_REQUEST_SUBMIT)
                        on_text(ctx, req, in);
                break;
        case AF_FRAME_PART:
                if (req && req->kind == AF_REQUEST_SUBMIT)
                        on_part(ctx, req, in);
                break;
        case AF_FRAME_DRAIN: /* what is refused meanwhile comes back as a retryable error */
                break;
        default:
                *ret_why = "an unknown frame type";
                r = AF_CONNECTION_E_PROTOCOL;
        }
        if (in->fd >= 0)
                close(in->fd);
        in->fd = -1;
        return r;
}
