/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/hot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/log.h"
#include "daemon/core.h"
#include "hot/link.h"

#define TICK_MS 250u
/* Unused for so long it is not looked after any more. Clients tell of what they use at least every AF_TOUCH_NS (client/hits.h). */
#define IDLE_NS 180000000000ull

/* ---- life ---- */

void af_hot_init(struct af_core *core) {
        struct af_hot *hot = &core->hot;
        int fd, r;

        uv_timer_init(core->loop, &hot->timer);
        hot->timer.data = core;
        if (core->config->hot_mib == 0)
                return;
        r = af_hot_area_new(core->config->hot_mib << 20, &hot->area);
        if (r == 0) {
                fd = fcntl(af_hot_area_fd(hot->area), F_DUPFD_CLOEXEC, 3);
                hot->carrier = fd >= 0 ? af_ready_bundle_new(fd, af_hot_area_bytes(hot->area)) : NULL;
        }
        if (!hot->carrier) {
                af_log(AF_LOG_WARNING, "there is no hot area: %s", r < 0 ? strerror(-r) : "out of descriptors");
                af_hot_area_free(hot->area);
                hot->area = NULL;
        }
}

void af_hot_show(struct af_core *core) {
        int r;

        if (!core->hot.area)
                return;
        core->hot.socket = af_listener_path(&core->listener);
        r = core->hot.socket ? af_hot_link_make(core->hot.socket, af_hot_area_fd(core->hot.area), af_hot_area_number(core->hot.area))
                             : -ENOENT;
        if (r < 0)
                af_log(AF_LOG_INFO, "there is no link to the hot area: %s", strerror(-r));
}

void af_hot_close(struct af_core *core) {
        if (core->hot.area)
                af_hot_area_shut(core->hot.area);
        if (core->hot.socket)
                af_hot_link_remove(core->hot.socket);
        free(core->hot.socket);
        core->hot.socket = NULL;
        uv_close((uv_handle_t *)&core->hot.timer, NULL);
}

void af_hot_deinit(struct af_core *core) {
        af_ready_bundle_unref(core->hot.carrier);
        af_hot_area_free(core->hot.area);
        core->hot.carrier = NULL;
        core->hot.area = NULL;
}

/* ---- what is in force ---- */

/*
 * Looks at the files of all that stand in the area. The beat is the oldest look; where nothing stands there it says that the core is alive.
 * False: nothing was wanted for long.
 */
static bool tick(struct af_core *core) {
        uint64_t now = af_clock_now_ns(), beat_ns = now;
        bool wanted = false;

        af_list_each (env, &core->environments, struct af_environment, link) {
                bool idle = now - env->hot.used_ns > IDLE_NS;

                wanted |= !idle;
                if (env->hot.n == 0)
                        continue;
                if (idle)
                        af_hot_environment_gone(env);
                else if (af_environment_check(env) == AF_ENVIRONMENT_READY) /* else it is gone from the area already */
                        beat_ns = AF_MIN(beat_ns, env->checked_ns);
        }
        af_hot_area_beat(core->hot.area, beat_ns);
        return wanted;
}

static void on_tick(uv_timer_t *timer) {
        struct af_core *core = timer->data;

        if (!tick(core)) { /* who has no connection may read as well */
                core->hot.ticking = false;
                uv_timer_stop(timer);
        }
}

void af_hot_wake(struct af_core *core) {
        if (!core->hot.area || core->hot.ticking || core->closing)
                return;
        core->hot.ticking = true;
        (void)tick(core);
        uv_timer_start(&core->hot.timer, on_tick, TICK_MS, TICK_MS);
}

static bool same(const char *name, const char *fallback) {
        return fallback && strcmp(name, fallback) == 0;
}

/* Every way in which a fragment may name this target: a part that is the default's may be left out. */
static void add_names(struct af_environment *env) {
        const struct af_config *c = env->core->config;
        const struct af_target *t = &env->target;

        for (unsigned i = 0; i < AF_HOT_MAX_NAMES; i++) {
                struct af_hot_target_id id;

                if (((i & 1) && !same(t->soc, c->default_soc)) || ((i & 2) && !same(t->toolchain, c->default_toolchain)) ||
                    ((i & 4) && t->twin != AF_TWIN_FAST))
                        continue;
                id = af_hot_target_make(i & 1 ? "" : t->soc, i & 2 ? "" : t->toolchain, i & 4 ? AF_TWIN_DEFAULT : t->twin);
                if (af_hot_area_set_target(env->core->hot.area, &id, &env->digest) == 0)
                        env->hot.ids[env->hot.n++] = id;
        }
}

void af_hot_environment_used(struct af_environment *env) {
        struct af_core *core = env->core;

        if (!core->hot.area || core->closing || env->state != AF_ENVIRONMENT_READY)
                return;
        env->hot.used_ns = af_clock_now_ns();
        if (env->hot.n > 0)
                return;
        add_names(env);
        if (env->hot.n == 0)
                return;
        core->hot.n_environments++;
        if (core->hot.ticking)
                (void)tick(core); /* the beat holds for this one as well */
        else
                af_hot_wake(core);
}

void af_hot_environment_gone(struct af_environment *env) {
        if (env->hot.n == 0)
                return;
        for (uint32_t i = 0; i < env->hot.n; i++)
                (void)!af_hot_area_set_target(env->core->hot.area, &env->hot.ids[i], NULL);
        env->hot.n = 0;
        env->core->hot.n_environments--;
}

/* ---- bundles ---- */

static void put(struct af_core *core, const struct af_hot_key *key, struct af_ready_bundle *bundle) {
        const uint8_t *p = af_ready_bundle_map(bundle);

        if (p)
                (void)!af_hot_area_put(core->hot.area, key, p, bundle->size, bundle->n_uses > 1);
}

void af_hot_answered(struct af_core *core, const struct af_digest *fragment, struct af_ready_bundle *bundle, enum af_hit hit) {
        struct af_hot_key key;

        if (!core->hot.area || !bundle->env || core->closing)
                return;
        af_hot_environment_used(bundle->env);
        bundle->n_uses += bundle->n_uses < UINT32_MAX;
        key = af_hot_key_bundle(fragment, &bundle->environment);
        if (hit == AF_HIT_COMPILED || af_hot_area_touch(core->hot.area, &key))
                return;
        /* Where there is no room it is tried again ever more seldom: a copy costs more than an answer. */
        if ((bundle->n_uses & (bundle->n_uses - 1)) == 0)
                put(core, &key, bundle);
}

/* The record and what it is made of stay in the store. */
static void touch_stored(struct af_core *core, const uint8_t key[64]) {
        struct af_blob *skeleton = af_lookup_record(core, AF_TABLE_BUNDLES, key, 64);
        struct af_bundle view;

        if (skeleton && af_bundle_open(skeleton->data, skeleton->size, &view, NULL) == 0) {
                af_store_touch(core->store, AF_TABLE_BUNDLES, key, 64);
                af_store_touch(core->store, AF_TABLE_FRAGMENTS, key, 32);
                for (uint32_t i = 0; i < af_bundle_count(&view, AF_SECTION_KERNELS); i++) {
                        const struct af_bundle_kernel *k = af_bundle_at(&view, AF_SECTION_KERNELS, i);

                        af_store_touch(core->store, AF_TABLE_KERNELS, k->key.bytes, sizeof(k->key.bytes));
                }
        }
        af_blob_unref(skeleton);
}

void af_hot_touched(struct af_core *core, const uint8_t key[64]) {
        struct af_hot_key k;

        core->hot.n_touches++;
        touch_stored(core, key);
        if (!core->hot.area)
                return;
        memcpy(k.bytes, key, sizeof(k.bytes));
        (void)af_hot_area_touch(core->hot.area, &k);
        af_list_each (env, &core->environments, struct af_environment, link)
                if (env->hot.n > 0 && memcmp(env->digest.bytes, key + 32, 32) == 0)
                        env->hot.used_ns = af_clock_now_ns();
}

void af_hot_clear(struct af_core *core) {
        if (core->hot.area)
                af_hot_area_clear(core->hot.area);
}

void af_hot_json(const struct af_core *core, struct af_buf *buf) {
        struct af_hot_stats s = {0};

        if (core->hot.area)
                af_hot_area_stats(core->hot.area, &s);
        af_buf_printf(buf,
                      ",\"hot\":{\"bytes\":%llu,\"used_bytes\":%llu,\"records\":%llu,\"puts\":%llu,\"evicted\":%llu,\"refused\":%llu,"
                      "\"touches\":%llu,\"environments\":%u}",
                      (unsigned long long)s.total_bytes, (unsigned long long)s.used_bytes, (unsigned long long)s.n_records,
                      (unsigned long long)s.n_puts, (unsigned long long)s.n_evicted, (unsigned long long)s.n_refused,
                      (unsigned long long)core->hot.n_touches, core->hot.n_environments);
}
