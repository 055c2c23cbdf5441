/* SPDX-License-Identifier: Apache-2.0 */
#include "client/hits.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/bundle.h"
#include "client/request.h"
#include "hot/link.h"

#define UNSURE_MIN_NS 1000000000ull
#define UNSURE_MAX_NS 30000000000ull

enum verdict { IN_FORCE, OUTDATED, UNSURE };

bool af_hits_area_is_fresh(const struct autofuse_context *ctx, uint64_t now_ns) {
        return ctx->hot && af_hot_view_is_fresh(ctx->hot, now_ns);
}

static enum verdict judge(const struct autofuse_context *ctx, const struct af_prepared *prepared, const struct af_content *content,
                          uint64_t now_ns) {
        struct af_digest environment;
        if (!ctx->has_epoch)
                return IN_FORCE; /* an older server: the memo lives as long as the connection's environment */
        if (af_hits_area_is_fresh(ctx, now_ns) && af_hot_view_target(ctx->hot, &prepared->target, &environment) == 0)
                return af_digest_equal(&environment, &content->key.environment) ? IN_FORCE : OUTDATED;
        return (int64_t)(now_ns - content->confirmed_ns) < (int64_t)AF_CONFIRMED_NS || now_ns < ctx->unsure_until_ns ? IN_FORCE : UNSURE;
}

/* ---- touches ---- */

static void touch(struct autofuse_context *ctx, struct af_content *content, uint64_t now_ns) {
        if (now_ns - content->touched_ns < AF_TOUCH_NS || ctx->n_touches == AF_MAX_TOUCHES)
                return;
        content->touched_ns = now_ns;
        if (ctx->n_touches == 0 && ctx->touch_at_ns < now_ns) /* never from the first hits of a process: they are in a hurry */
                ctx->touch_at_ns = now_ns + AF_TOUCH_GAP_NS;
        ctx->touches[ctx->n_touches++] = content->key;
}

/* One process in eight: those that never connected are many, and what they use is used often. */
static bool is_drawn(void) {
        return (((af_clock_now_ns() ^ (uint64_t)getpid() << 32) * 0x9e3779b97f4a7c15ull) >> 61) == 0;
}

void af_hits_send_touches(struct autofuse_context *ctx, uint64_t now_ns, bool at_once) {
        if (ctx->n_touches == 0 || (now_ns < ctx->touch_at_ns && !at_once))
                return;
        if (!ctx->conn && !ctx->leading && af_hits_area_is_fresh(ctx, now_ns) && (!at_once || is_drawn()))
                af_lead_connect(ctx);
        if (!ctx->conn)
                return;
        struct af_frame_header h = {.type = AF_FRAME_TOUCH};
        size_t start = af_frame_begin(&ctx->conn->out, &h);
        for (uint32_t i = 0; i < ctx->n_touches; i++)
                af_frame_field(&ctx->conn->out, AF_TAG_KEY, &ctx->touches[i], sizeof(ctx->touches[i]));
        af_frame_end(&ctx->conn->out, start);
        ctx->n_touches = 0;
        ctx->touch_at_ns = now_ns + AF_TOUCH_GAP_NS;
        af_lead_send(ctx);
}

/* ---- finding ---- */

static struct af_content *find_memo(struct autofuse_context *ctx, const struct af_prepared *prepared, uint64_t now_ns,
                                    struct af_content **ret_unsure) {
        struct af_content *content = ctx->no_memo ? NULL : af_context_memo_get(ctx, &prepared->digest);
        if (!content)
                return NULL;
        switch (judge(ctx, prepared, content, now_ns)) {
        case IN_FORCE:
                touch(ctx, content, now_ns);
                return content;
        case OUTDATED:
                ctx->memo_busy = true;
                af_memo_drop(&ctx->memo, &prepared->digest);
                ctx->memo_busy = false;
                af_content_unref(content);
                return NULL;
        case UNSURE:
                *ret_unsure = content;
                return NULL;
        }
        return NULL;
}

/* Where there is no connection yet and the area can be opened without one, a process need not wait for the server to run. */
static void look_beside_socket(struct autofuse_context *ctx, uint64_t now_ns) {
        struct af_hot_view *view = NULL;
        uint64_t number;
        const char *why;
        uid_t owner;
        off_t n;
        int fd, r = -ENOENT;

        ctx->looked = true;
        for (uint32_t i = 0; i < ctx->paths.n_items && r == -ENOENT; i++) {
                r = af_hot_link_open(ctx->paths.items[i].path, &number, &owner, &n, &fd);
                if (r == -ENOENT && access(ctx->paths.items[i].path, F_OK) == 0)
                        return; /* this server is the one, and it is asked */
        }
        if (r < 0)
                return;
        if (af_server_is_trusted(owner, ctx->own_uid, ctx->server_uid) && af_hot_view_open(fd, (uint64_t)n, &view, &why) == 0 &&
            af_hot_view_number(view) == number && af_hot_view_is_fresh(view, now_ns)) {
                ctx->hot = view;
                ctx->has_epoch = true;
        } else {
                af_hot_view_unref(view);
        }
        close(fd);
}

/* Not under the lock. NULL: a miss, or memory is short. */
static struct af_content *copy_hot(const struct af_hot_view *view, const struct af_prepared *prepared) {
        struct af_bundle_key key = {.fragment = prepared->digest};
        struct af_content *content = NULL;
        const char *why;
        void *p = NULL;
        size_t n = 0;
        if (af_hot_view_target(view, &prepared->target, &key.environment) != 0)
                return NULL;
        struct af_hot_key name = af_hot_key_bundle(&key.fragment, &key.environment);
        if (af_hot_view_get(view, &name, AF_CONTENT_MAX_BYTES, &p, &n) != 0 || af_content_from_verified(p, n, &key, &content, &why) != 0)
                return NULL;
        if (!af_content_suits(content, prepared, &why)) {
                af_content_unref(content);
                return NULL;
        }
        return content;
}

struct af_content *af_hits_hot(struct autofuse_context *ctx, const struct af_prepared *prepared) {
        uint64_t now_ns = af_clock_coarse_ns();
        if (!af_hits_area_is_fresh(ctx, now_ns))
                return NULL;
        struct af_hot_view *view = af_hot_view_ref(ctx->hot);
        pthread_mutex_unlock(&ctx->lock);
        struct af_content *content = copy_hot(view, prepared);
        af_hot_view_unref(view);
        pthread_mutex_lock(&ctx->lock);
        if (!content)
                return NULL;
        af_context_memo_put(ctx, content);
        touch(ctx, content, now_ns);
        return content;
}

/* Where a server says what is in force, a pack's bundle of that is an answer. Where none does, it is asked first; the pack is there instead
 * of one. Drops the lock while it reads. */
static struct af_content *find_packed(struct autofuse_context *ctx, const struct af_prepared *prepared, uint64_t now_ns,
                                      struct af_content **ret_unsure) {
        struct af_digest environment;
        bool told = af_hits_area_is_fresh(ctx, now_ns) && af_hot_view_target(ctx->hot, &prepared->target, &environment) == 0;
        pthread_mutex_unlock(&ctx->lock);
        struct af_content *content = af_packs_find(&ctx->packs, prepared, told ? &environment : NULL);
        pthread_mutex_lock(&ctx->lock);
        if (!content)
                return NULL;
        if (!told) {
                *ret_unsure = content;
                return NULL;
        }
        af_context_memo_put(ctx, content);
        return content;
}

struct af_content *af_hits_find(struct autofuse_context *ctx, const struct af_prepared *prepared, enum autofuse_hit *ret_hit,
                                struct af_content **ret_unsure) {
        uint64_t now_ns = af_clock_coarse_ns();
        *ret_unsure = NULL;
        pthread_mutex_lock(&ctx->lock);
        if (!ctx->looked && !ctx->hot && !ctx->conn)
                look_beside_socket(ctx, now_ns);
        struct af_content *content = find_memo(ctx, prepared, now_ns, ret_unsure);
        *ret_hit = AUTOFUSE_HIT_MEMO;
        if (!content && !*ret_unsure) {
                content = af_hits_hot(ctx, prepared);
                *ret_hit = AUTOFUSE_HIT_HOT;
        }
        if (!content && !*ret_unsure && ctx->packs.n > 0) {
                content = find_packed(ctx, prepared, now_ns, ret_unsure);
                *ret_hit = AUTOFUSE_HIT_PACK;
        }
        af_hits_send_touches(ctx, now_ns, false);
        pthread_mutex_unlock(&ctx->lock);
        return content;
}

/* ---- the server comes and goes ---- */

void af_hits_connected(struct autofuse_context *ctx, struct af_connection *conn) {
        struct af_hot_view *old = ctx->hot;
        ctx->hot = conn->hot;
        conn->hot = NULL;
        ctx->has_epoch = conn->has_epoch;
        ctx->unsure_until_ns = 0;
        ctx->n_unsure = 0;
        af_hot_view_unref(old);
}

void af_hits_unconfirmed(struct autofuse_context *ctx) {
        ctx->unsure_until_ns = af_clock_coarse_ns() + AF_MIN(UNSURE_MIN_NS << AF_MIN(ctx->n_unsure, 8u), UNSURE_MAX_NS);
        ctx->n_unsure++;
}
