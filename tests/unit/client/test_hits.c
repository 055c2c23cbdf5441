/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what is kept is in force, and what comes from the hot area: an area of this process, no server. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "client/hits.h"
#include "hot/area.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/sample.h"

struct place {
        struct autofuse_context *ctx;
        struct af_hot_area *area;
        struct af_prepared *prepared;
        struct af_buf bundle;
        struct af_bundle_key key;
        uint64_t silent_ns; /* the beat is so old */
};

static void place_init(struct place *p) {
        struct autofuse_options o = AUTOFUSE_OPTIONS_INIT;
        const char *why = "";
        *p = (struct place){0};
        o.socket = "/nonexistent/core.sock";
        cr_assert_eq(autofuse_context_open(&o, &p->ctx, NULL), AUTOFUSE_OK);
        cr_assert_eq(af_hot_area_new(1 << 20, &p->area), 0);
        cr_assert_eq(af_hot_view_open(af_hot_area_fd(p->area), af_hot_area_bytes(p->area), &p->ctx->hot, &why), 0, "%s", why);
        p->ctx->has_epoch = true;
        cr_assert_eq(af_prepared_new_text(sample_text, strlen(sample_text), NULL, &p->prepared), 0);
        fake_bundle(p->prepared->canon, p->prepared->n_canon, &p->bundle);
        p->key.fragment = p->prepared->digest;
        memset(&p->key.environment, 7, sizeof(p->key.environment));
}

static void place_deinit(struct place *p) {
        af_buf_deinit(&p->bundle);
        af_prepared_unref(p->prepared);
        autofuse_context_close(p->ctx);
        af_hot_area_free(p->area);
}

static void in_force(struct place *p, uint8_t number) {
        struct af_digest environment;
        memset(&environment, number, sizeof(environment));
        cr_assert_eq(af_hot_area_set_target(p->area, &p->prepared->target, number ? &environment : NULL), 0);
}

static void put_hot(struct place *p) {
        struct af_hot_key key = af_hot_key_bundle(&p->key.fragment, &p->key.environment);
        cr_assert_eq(af_hot_area_put(p->area, &key, p->bundle.data, p->bundle.size, false), 0);
}

static int find_once(struct place *p, bool *ret_unsure) {
        struct af_content *unsure = NULL;
        enum autofuse_hit hit = AUTOFUSE_HIT_STORE;
        struct af_content *content = af_hits_find(p->ctx, p->prepared, &hit, &unsure);
        cr_assert(!content || memcmp(&content->key, &p->key, sizeof(p->key)) == 0);
        cr_assert(!content || (content->size == p->bundle.size && memcmp(content->data, p->bundle.data, p->bundle.size) == 0));
        *ret_unsure = unsure != NULL;
        af_content_unref(unsure);
        int r = content ? (int)hit : -1;
        af_content_unref(content);
        return r;
}

/* What is found, dropped again; -1: nothing. Again where this process was stopped so long that the beat grew old meanwhile. */
static int find(struct place *p, bool *ret_unsure) {
        for (;;) {
                uint64_t begin_ns = af_clock_now_ns();
                if (p->silent_ns != UINT64_MAX)
                        af_hot_area_beat(p->area, begin_ns - p->silent_ns);
                int r = find_once(p, ret_unsure);
                if (r >= 0 || af_clock_now_ns() - begin_ns < AF_HOT_FRESH_NS / 2)
                        return r;
        }
}

Test(hits, the_area_then_the_memo_and_what_is_used_is_noted_once) {
        struct place p;
        bool unsure;
        place_init(&p);
        cr_assert(find(&p, &unsure) == -1 && !unsure, "an empty area");
        put_hot(&p);
        cr_assert(find(&p, &unsure) == -1 && !unsure, "nobody says what is in force");
        in_force(&p, 7);
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_HOT);
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_MEMO);
        cr_assert_eq(p.ctx->n_touches, 1);
        cr_assert_eq(memcmp(&p.ctx->touches[0], &p.key, sizeof(p.key)), 0);
        place_deinit(&p);
}

Test(hits, C25_another_environment_in_force_drops_what_is_kept) {
        struct place p;
        bool unsure;
        place_init(&p);
        put_hot(&p);
        in_force(&p, 7);
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_HOT);
        in_force(&p, 8);
        cr_assert(find(&p, &unsure) == -1 && !unsure);
        cr_assert_eq(p.ctx->memo.n_entries, 0);
        in_force(&p, 7);
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_HOT, "the first one again: its record was left");
        place_deinit(&p);
}

Test(hits, what_nobody_vouches_for_is_kept_but_asked_about) {
        struct place p;
        bool unsure;
        place_init(&p);
        put_hot(&p);
        in_force(&p, 7);
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_HOT);
        in_force(&p, 0);
        cr_assert(find(&p, &unsure) == -1 && unsure, "being loaded");
        in_force(&p, 7);
        p.silent_ns = 2 * AF_HOT_FRESH_NS;
        cr_assert(find(&p, &unsure) == -1 && unsure, "an old beat");
        af_hits_unconfirmed(p.ctx);
        cr_assert_eq(p.ctx->n_unsure, 1);
        p.ctx->unsure_until_ns = UINT64_MAX;
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_MEMO, "no server could be asked: it stands for a while");
        p.ctx->unsure_until_ns = 0;
        p.silent_ns = UINT64_MAX;
        af_hot_area_shut(p.area);
        cr_assert(find(&p, &unsure) == -1 && unsure, "the server is gone");
        p.ctx->has_epoch = false;
        cr_assert_eq(find(&p, &unsure), AUTOFUSE_HIT_MEMO, "an older server has no epochs");
        place_deinit(&p);
}

Test(hits, a_record_that_is_no_answer_is_a_miss) {
        struct place p;
        bool unsure;
        place_init(&p);
        struct af_hot_key key = af_hot_key_bundle(&p.key.fragment, &p.key.environment);
        in_force(&p, 7);
        cr_assert_eq(af_hot_area_put(p.area, &key, "not a bundle", 12, false), 0);
        cr_assert(find(&p, &unsure) == -1 && !unsure);
        p.bundle.data[0] ^= 1; /* whole for the area, which knows bytes alone */
        put_hot(&p);
        cr_assert(find(&p, &unsure) == -1 && !unsure);
        place_deinit(&p);
}
