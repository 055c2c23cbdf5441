/* SPDX-License-Identifier: Apache-2.0 */
/* Answers kept as sealed memfds, the newest environment's of each fragment, least recently used out first. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/core.h"

#define MAX_BUNDLES 16384u /* each is a descriptor; also held below half of RLIMIT_NOFILE, see core.c */

struct af_ready_bundle *af_ready_bundle_new(int fd, size_t size) {
        struct af_ready_bundle *b = calloc(1, sizeof(*b));

        if (!b) {
                close(fd);
                return NULL;
        }
        b->refs = 1;
        b->fd = fd;
        b->size = size;
        af_list_init(&b->lru);
        return b;
}

struct af_ready_bundle *af_ready_bundle_ref(struct af_ready_bundle *b) {
        b->refs++;
        return b;
}

void af_ready_bundle_unref(struct af_ready_bundle *b) {
        if (!b || --b->refs > 0)
                return;
        if (b->heap)
                free(b->heap);
        else if (b->map)
                af_io_unmap(b->map, b->size);
        if (b->fd >= 0)
                close(b->fd);
        free(b);
}

struct af_ready_bundle *af_ready_bundle_small(void *p, size_t size) {
        struct af_ready_bundle *b = calloc(1, sizeof(*b));

        if (!b) {
                free(p);
                return NULL;
        }
        b->refs = 1;
        b->fd = -1;
        b->size = size;
        b->heap = p;
        b->map = p;
        af_list_init(&b->lru);
        return b;
}

const uint8_t *af_ready_bundle_map(struct af_ready_bundle *b) {
        const void *p;
        size_t n;

        if (!b->map && af_io_map_fd(b->fd, &p, &n) == 0)
                b->map = p;
        return b->map;
}

static void drop(struct af_core *core, struct af_ready_bundle *b) {
        af_digest_table_del(&core->bundle_table, &b->link);
        af_list_del(&b->lru);
        core->bundle_bytes -= b->size;
        b->cached = false;
        af_ready_bundle_unref(b);
}

void af_bundle_cache_put(struct af_core *core, const struct af_digest *fragment, struct af_environment *env,
                         const struct af_digest *environment, struct af_ready_bundle *b) {
        struct af_ready_bundle *old = af_digest_table_get(&core->bundle_table, fragment);
        size_t limit = core->config->bundle_cache_mib << 20;

        if (b->cached)
                return;
        if (old)
                drop(core, old);
        b->link.key = *fragment;
        b->env = env;
        b->environment = *environment;
        b->cached = true;
        af_ready_bundle_ref(b);
        af_digest_table_add(&core->bundle_table, &b->link);
        af_list_append(&core->bundle_lru, &b->lru);
        core->bundle_bytes += b->size;
        while (core->bundle_bytes > limit || core->bundle_table.n > AF_MIN(MAX_BUNDLES, core->max_bundles))
                drop(core, af_list_entry(core->bundle_lru.next, struct af_ready_bundle, lru));
}

struct af_ready_bundle *af_bundle_cache_get(struct af_core *core, const struct af_digest *fragment) {
        struct af_ready_bundle *b = af_digest_table_get(&core->bundle_table, fragment);

        if (!b)
                return NULL;
        if (!af_environment_current(core, b->env, &b->environment)) {
                if (b->env->state == AF_ENVIRONMENT_READY)
                        drop(core, b);
                return NULL;
        }
        af_list_del(&b->lru);
        af_list_append(&core->bundle_lru, &b->lru);
        return b;
}

void af_bundle_cache_clear(struct af_core *core) {
        while (!af_list_empty(&core->bundle_lru))
                drop(core, af_list_entry(core->bundle_lru.next, struct af_ready_bundle, lru));
}
