/* SPDX-License-Identifier: Apache-2.0 */
/* A fragment whose kernels are all there: assembled, stored in one transaction, then answered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "daemon/core.h"

int af_bundle_assemble(struct af_core *core, const struct af_blob *skeleton, struct af_blob *const *binaries, uint32_t n,
                       const struct af_digest *fragment, const struct af_digest *environment, struct af_ready_bundle **ret_bundle) {
        AF_CLEANUP(af_buf_deinit) struct af_buf out = AF_BUF_INIT;
        struct af_piece *pieces = calloc(n + 1, sizeof(*pieces));
        struct af_bundle view;
        int r, fd;

        if (!pieces)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                pieces[i] = (struct af_piece){binaries[i]->data, binaries[i]->size};
        r = af_bundle_open(skeleton->data, skeleton->size, &view, NULL);
        if (r == 0)
                r = af_bundle_attach(&view, pieces, n, &out);
        free(pieces);
        if (r)
                return r;
        if (out.size <= AF_INLINE_BUNDLE_BYTES) {
                size_t size = 0;
                uint8_t *p = af_buf_take(&out, &size);

                *ret_bundle = p ? af_ready_bundle_small(p, size) : NULL;
        } else {
                fd = af_io_memfd("autofused-bundle", out.data, out.size, true);
                if (fd < 0)
                        return fd;
                *ret_bundle = af_ready_bundle_new(fd, out.size);
        }
        if (!*ret_bundle)
                return -ENOMEM;
        (*ret_bundle)->environment = *environment;
        return 0;
}

/* ---- records ---- */

struct records {
        struct af_store_record *items;
        uint32_t n;
        struct af_buf *bufs; /* what items point to, where it was made here */
        uint32_t n_bufs;
        uint8_t bundle_key[64];
};

static void records_deinit(struct records *r) {
        for (uint32_t i = 0; i < r->n_bufs; i++)
                af_buf_deinit(&r->bufs[i]);
        free(r->bufs);
        free(r->items);
}

static void add(struct records *r, enum af_table table, const void *key, uint32_t key_size, const void *p, size_t n) {
        r->items[r->n++] = (struct af_store_record){table, key, key_size, p, n};
}

static void add_source(struct records *r, const struct af_build *k) {
        struct af_buf *buf = &r->bufs[r->n_bufs++];

        af_record_source_write(buf, k->toolchain, k->symbol, k->source->data, k->source->size);
        add(r, AF_TABLE_SOURCES, k->link.key.bytes, sizeof(k->link.key.bytes), buf->data, buf->size);
}

/* The first bundle of an environment takes along what that consists of. */
static bool records_environment(const struct af_flight *f) {
        return f->env && !f->env->recorded && f->env->ingredients && af_digest_equal(&f->environment, &f->env->digest);
}

/* Kernels that were in the store already stay as they are. */
static int collect(struct af_flight *f, struct records *r) {
        struct af_buf *buf;

        r->items = calloc(2 * (size_t)f->n_kernels + 3, sizeof(*r->items));
        r->bufs = calloc((size_t)f->n_kernels + 1, sizeof(*r->bufs));
        if (!r->items || !r->bufs)
                return -ENOMEM;
        memcpy(r->bundle_key, f->link.key.bytes, 32);
        memcpy(r->bundle_key + 32, f->environment.bytes, 32);
        buf = &r->bufs[r->n_bufs++];
        af_record_fragment_write(buf, &f->target, f->input->data, f->input->size);
        add(r, AF_TABLE_FRAGMENTS, f->link.key.bytes, sizeof(f->link.key.bytes), buf->data, buf->size);
        /* A small one is kept whole: one record is read for it. */
        if (f->bundle->heap)
                add(r, AF_TABLE_BUNDLES, r->bundle_key, sizeof(r->bundle_key), f->bundle->heap, f->bundle->size);
        else
                add(r, AF_TABLE_BUNDLES, r->bundle_key, sizeof(r->bundle_key), f->skeleton->data, f->skeleton->size);
        if (records_environment(f))
                add(r, AF_TABLE_ENV, f->environment.bytes, sizeof(f->environment.bytes), f->env->ingredients->data,
                    f->env->ingredients->size);
        for (uint32_t i = 0; i < f->n_kernels; i++) {
                const struct af_build *k = f->kernels[i].kernel;

                if (!k)
                        continue;
                add_source(r, k);
                add(r, AF_TABLE_KERNELS, k->link.key.bytes, sizeof(k->link.key.bytes), k->binary->data, k->binary->size);
        }
        for (uint32_t i = 0; i < r->n_bufs; i++)
                if (af_buf_error(&r->bufs[i]))
                        return af_buf_error(&r->bufs[i]);
        return 0;
}

/* A full disk costs the entry, never the answer. */
static void finish(struct af_flight *f, int r) {
        struct af_core *core = f->core;

        if (r) {
                core->stats.n_not_stored++;
                af_log(AF_LOG_WARNING, "a bundle could not be stored: %s", r == AF_STORE_E_FULL ? "disk or store full" : strerror(-r));
        }
        if (r == 0 && records_environment(f))
                f->env->recorded = true;
        if (r == 0)
                af_ledger_stage(core->ledger, &f->link.key, &f->environment, NULL, "publish", (af_clock_now_ns() - f->publish_ns) / 1000);
        for (uint32_t i = 0; i < f->n_kernels; i++)
                if (f->kernels[i].kernel)
                        f->kernels[i].kernel->stored = true;
        /* With no entry behind it the answer would be gone with the process: the same as a miss then. */
        af_bundle_cache_put(core, &f->link.key, f->env, &f->environment, f->bundle);
        af_flight_answer(f, f->bundle, false);
        af_flight_free(f);
}

static void on_stored(void *userdata, int r) {
        finish(userdata, r);
}

static int assemble(struct af_flight *f) {
        struct af_blob **binaries = calloc(f->n_kernels + 1, sizeof(struct af_blob *));
        int r;

        if (!binaries)
                return -ENOMEM;
        for (uint32_t i = 0; i < f->n_kernels; i++)
                binaries[i] = f->kernels[i].binary;
        r = af_bundle_assemble(f->core, f->skeleton, binaries, f->n_kernels, &f->link.key, &f->environment, &f->bundle);
        free(binaries);
        return r;
}

void af_flight_publish(struct af_flight *f) {
        struct records records = {0};
        int r = assemble(f);

        if (r) {
                struct af_failure failure =
                        af_failure_make(r == -ENOMEM ? AF_ERROR_BUSY
                                        : r < 0      ? AF_ERROR_STORAGE
                                                     : AF_ERROR_INTERNAL,
                                        r < 0, "cannot assemble the bundle: %s", r < 0 ? strerror(-r) : "it is damaged");

                af_flight_fail(f, &failure);
                af_failure_deinit(&failure);
                return;
        }
        f->state = AF_FLIGHT_COMMIT;
        f->publish_ns = af_clock_now_ns();
        r = collect(f, &records);
        if (r == 0)
                r = af_store_put(f->core->store, records.items, records.n, on_stored, f);
        records_deinit(&records);
        if (r)
                finish(f, r);
}
