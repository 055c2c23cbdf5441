/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/maintain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "compiler/graph/canon.h"
#include "daemon/records.h"
#include "hot/pack.h"
#include "proto/bundle.h"

#define SLICE_RECORDS 256u
#define SLICE_BYTES   (8u << 20)

/* The first 16 bytes of digests: a set that is filled, sorted once, then asked. */
struct mark {
        uint8_t bytes[16];
};
struct marks {
        struct mark *items;
        size_t n, room;
};

struct run {
        struct af_store *store;
        const struct af_maintain_opts *opts;
        struct af_maintain_progress *progress;
        struct af_maintain_result *result;
        struct marks kernels, fragments; /* GC: what bundles that stay need */
        const struct marks *keep;        /* GC: the set that the walk at hand asks */
        struct chosen {
                uint8_t key[AF_STORE_MAX_KEY];
                uint32_t key_size;
        } * chosen; /* of the slice at hand: to delete, or to export. SLICE_RECORDS of them */
        uint32_t n_chosen;
        uint64_t *n_deleted; /* GC: counter of the table at hand */
        uint32_t now_minute;
        struct af_pack_writer *pack; /* EXPORT */
        int error;
};

static int compare_marks(const void *a, const void *b) {
        return memcmp(a, b, sizeof(struct mark));
}

static int mark(struct marks *m, const void *digest) {
        if (m->n == m->room) {
                size_t room = m->room ? 2 * m->room : 1024;
                struct mark *more = realloc(m->items, room * sizeof(*more));

                if (!more)
                        return -ENOMEM;
                m->items = more;
                m->room = room;
        }
        memcpy(m->items[m->n++].bytes, digest, sizeof(struct mark));
        return 0;
}

static void marks_sort(struct marks *m) {
        if (m->n)
                qsort(m->items, m->n, sizeof(*m->items), compare_marks);
}

static bool marked(const struct marks *m, const void *digest) {
        return m->n && bsearch(digest, m->items, m->n, sizeof(*m->items), compare_marks);
}

/* Shows every sound record of a table; after each slice, with no transaction open, after (may be NULL) does what was chosen. 0, -ECANCELED,
 * what visit left in run->error, or the store's. */
static int walk(struct run *run, enum af_table table, bool (*visit)(void *userdata, const struct af_store_record *record, uint32_t minute),
                int (*after)(struct run *run, enum af_table table)) {
        struct af_store_walk w = {.table = table, .visit = visit, .userdata = run};
        int r = 0;

        while (r == 0) {
                uint64_t before = w.n_records;

                if (run->progress && atomic_load(&run->progress->stop))
                        return -ECANCELED;
                r = af_store_walk(run->store, &w, SLICE_RECORDS, SLICE_BYTES);
                if (run->error)
                        return run->error;
                if (run->n_chosen) {
                        int q = after(run, table);

                        if (q)
                                return q;
                        run->n_chosen = 0;
                }
                if (run->progress) {
                        atomic_fetch_add(&run->progress->n_done, w.n_records - before);
                        if (run->progress->tell)
                                run->progress->tell(run->progress->userdata);
                }
        }
        run->result->n_records += w.n_records;
        run->result->n_damaged += w.n_damaged;
        return r == AF_STORE_E_MISS ? 0 : r;
}

/* ---- verify ---- */

static int verify(struct run *run) {
        int r = 0;

        for (unsigned i = 0; i < AF_N_TABLES && r == 0; i++)
                r = walk(run, i, NULL, NULL);
        return r;
}

/* ---- garbage ---- */

static bool in_force(const struct run *run, const uint8_t environment[32]) {
        for (uint32_t i = 0; i < run->opts->n_environments; i++)
                if (memcmp(run->opts->environments[i].bytes, environment, 32) == 0)
                        return true;
        return false;
}

static void choose(struct run *run, const struct af_store_record *record) {
        struct chosen *c = &run->chosen[run->n_chosen++];

        memcpy(c->key, record->key, record->key_size);
        c->key_size = record->key_size;
}

static bool bundle_stays(const struct run *run, const struct af_store_record *record, uint32_t minute) {
        if (record->key_size != 64)
                return false;
        if (run->opts->current_only && !in_force(run, (const uint8_t *)record->key + 32))
                return false;
        return !run->opts->max_age_days || minute == 0 || minute > run->now_minute ||
               run->now_minute - minute <= (uint64_t)run->opts->max_age_days * 24 * 60;
}

static bool see_bundle(void *userdata, const struct af_store_record *record, uint32_t minute) {
        struct run *run = userdata;
        AF_CLEANUP(af_freep) void *copy = NULL;
        struct af_bundle b;

        if (!bundle_stays(run, record, minute)) {
                choose(run, record);
                return true;
        }
        copy = aligned_alloc(64, AF_ALIGN_UP(record->value_size + 1, 64));
        if (!copy) {
                run->error = -ENOMEM;
                return false;
        }
        memcpy(copy, record->value, record->value_size);
        if (af_bundle_open(copy, record->value_size, &b, NULL) != 0) {
                choose(run, record); /* of an older version of bundles: never answered again */
                return true;
        }
        run->error = mark(&run->fragments, record->key);
        for (uint32_t i = 0; i < af_bundle_count(&b, AF_SECTION_KERNELS) && run->error == 0; i++)
                run->error = mark(&run->kernels, ((const struct af_bundle_kernel *)af_bundle_at(&b, AF_SECTION_KERNELS, i))->key.bytes);
        return run->error == 0;
}

/* kernels, sources, fragments: by key. */
static bool see_keyed(void *userdata, const struct af_store_record *record, uint32_t minute) {
        struct run *run = userdata;

        if (record->key_size != 32 || !marked(run->keep, record->key))
                choose(run, record);
        return true;
}

/* texts: by the fragment that they name. */
static bool see_text(void *userdata, const struct af_store_record *record, uint32_t minute) {
        struct run *run = userdata;

        if (record->value_size < 32 || !marked(run->keep, record->value))
                choose(run, record);
        return true;
}

/* One small transaction. */
static int delete_chosen(struct run *run, enum af_table table) {
        struct af_store_record records[SLICE_RECORDS];
        int r;

        for (uint32_t i = 0; i < run->n_chosen; i++)
                records[i] = (struct af_store_record){.table = table, .key = run->chosen[i].key, .key_size = run->chosen[i].key_size};
        r = af_store_delete(run->store, records, run->n_chosen);
        *run->n_deleted += r == 0 ? run->n_chosen : 0;
        return r;
}

static int sweep(struct run *run, enum af_table table, const struct marks *keep,
                 bool (*visit)(void *userdata, const struct af_store_record *record, uint32_t minute), uint64_t *ret_n) {
        run->keep = keep;
        run->n_deleted = ret_n;
        return walk(run, table, visit, delete_chosen);
}

static int trim(struct run *run) {
        int r = 0;

        while (r == 0) {
                if (run->progress && atomic_load(&run->progress->stop))
                        return -ECANCELED;
                r = af_store_trim(run->store, run->opts->max_bytes);
        }
        return r == AF_STORE_E_MISS ? 0 : r;
}

/*
 * Bundles first, then what no bundle needs any more. A publish beside it may lose a kernel that it had found here: its bundle compiles
 * that kernel again when it is next asked for.
 */
static int gc(struct run *run) {
        struct af_maintain_result *res = run->result;
        uint64_t n_sources = 0;
        int r;

        r = sweep(run, AF_TABLE_BUNDLES, NULL, see_bundle, &res->n_bundles);
        marks_sort(&run->kernels);
        marks_sort(&run->fragments);
        if (r == 0)
                r = sweep(run, AF_TABLE_KERNELS, &run->kernels, see_keyed, &res->n_kernels);
        if (r == 0)
                r = sweep(run, AF_TABLE_SOURCES, &run->kernels, see_keyed, &n_sources);
        if (r == 0)
                r = sweep(run, AF_TABLE_FRAGMENTS, &run->fragments, see_keyed, &res->n_fragments);
        if (r == 0)
                r = sweep(run, AF_TABLE_TEXTS, &run->fragments, see_text, &res->n_texts);
        if (r == 0 && run->opts->max_bytes)
                r = trim(run);
        free(run->kernels.items);
        free(run->fragments.items);
        return r;
}

/* ---- export ---- */

/* Kernels of a skeleton from the store, and the whole bundle from both. 0, AF_STORE_E_MISS, -errno. */
static int whole_bundle(struct run *run, const struct af_bundle *skeleton, struct af_buf *out) {
        uint32_t n = af_bundle_count(skeleton, AF_SECTION_KERNELS);
        struct af_store_record *keys = calloc(n + 1, sizeof(*keys));
        struct af_store_value *values = calloc(n + 1, sizeof(*values));
        struct af_piece *pieces = calloc(n + 1, sizeof(*pieces));
        int r = keys && values && pieces ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                const struct af_bundle_kernel *k = af_bundle_at(skeleton, AF_SECTION_KERNELS, i);

                keys[i] = (struct af_store_record){.table = AF_TABLE_KERNELS, .key = k->key.bytes, .key_size = sizeof(k->key.bytes)};
        }
        if (r == 0)
                r = af_store_read(run->store, keys, n, values);
        for (uint32_t i = 0; i < n && r == 0; i++) {
                pieces[i] = (struct af_piece){values[i].data, values[i].size};
                r = values[i].data ? 0 : AF_STORE_E_MISS;
        }
        if (r == 0)
                r = af_bundle_attach(skeleton, pieces, n, out) ? AF_STORE_E_MISS : 0;
        for (uint32_t i = 0; values && i < n; i++)
                free(values[i].data);
        free(keys);
        free(values);
        free(pieces);
        return r;
}

/* The fragment's record: its target goes into the pack's table, its canonical bytes along. */
static int add_to_pack(struct run *run, const struct af_digest *fragment, const struct af_digest *environment,
                       const struct af_buf *bundle) {
        struct af_store_record key = {.table = AF_TABLE_FRAGMENTS, .key = fragment->bytes, .key_size = sizeof(fragment->bytes)};
        struct af_blob *record = NULL, *canon = NULL;
        struct af_store_value v = {0};
        struct af_target target;
        int r;

        r = af_store_read(run->store, &key, 1, &v);
        if (r == 0 && !v.data)
                return AF_STORE_E_MISS;
        record = r == 0 ? af_blob_take(v.data, v.size) : NULL;
        if (!record)
                return r ? r : -ENOMEM;
        r = af_record_fragment_read(record, &target, &canon);
        if (r == 0) {
                r = af_pack_writer_add(run->pack, fragment, environment, canon->data, canon->size, bundle->data, bundle->size);
                if (r == 0)
                        r = af_pack_writer_target(run->pack, target.soc, target.toolchain, target.twin, environment);
                af_target_deinit(&target);
                af_blob_unref(canon);
        } else if (r > 0) {
                r = AF_STORE_E_MISS;
        }
        af_blob_unref(record);
        return r;
}

static int export_one(struct run *run, const uint8_t key[64], const void *skeleton, size_t n) {
        AF_CLEANUP(af_buf_deinit) struct af_buf bundle = AF_BUF_INIT;
        struct af_digest fragment, environment;
        struct af_bundle view;
        int r;

        memcpy(fragment.bytes, key, 32);
        memcpy(environment.bytes, key + 32, 32);
        if (af_bundle_open(skeleton, n, &view, NULL) != 0)
                return AF_STORE_E_MISS;
        if (view.header->flags & AF_BUNDLE_SKELETON) {
                r = whole_bundle(run, &view, &bundle);
        } else {
                af_buf_put(&bundle, skeleton, n);
                r = af_buf_error(&bundle);
        }
        return r ? r : add_to_pack(run, &fragment, &environment, &bundle);
}

/* Only chosen here: kernels are read in another transaction, when this slice is over. */
static bool see_for_export(void *userdata, const struct af_store_record *record, uint32_t minute) {
        struct run *run = userdata;

        if (record->key_size == 64 && in_force(run, (const uint8_t *)record->key + 32))
                choose(run, record);
        return true;
}

static int export_chosen(struct run *run, enum af_table table) {
        for (uint32_t i = 0; i < run->n_chosen; i++) {
                const struct af_store_record key = {.table = table, .key = run->chosen[i].key, .key_size = run->chosen[i].key_size};
                struct af_store_value v = {0};
                int r;

                r = af_store_read(run->store, &key, 1, &v);
                if (r == 0)
                        r = v.data ? export_one(run, run->chosen[i].key, v.data, v.size) : AF_STORE_E_MISS;
                free(v.data);
                if (r < 0)
                        return r;
                run->result->n_exported += r == 0;
                run->result->n_incomplete += r != 0;
        }
        return 0;
}

static int export(struct run *run) {
        AF_CLEANUP(af_buf_deinit) struct af_buf machine = AF_BUF_INIT;
        int r;

        af_pack_machine(&machine);
        af_buf_put_u8(&machine, 0);
        r = af_buf_error(&machine);
        if (r == 0)
                r = af_pack_writer_new(run->opts->fd, AF_CANON_VERSION, (const char *)machine.data, &run->pack);
        if (r == 0)
                r = walk(run, AF_TABLE_BUNDLES, see_for_export, export_chosen);
        if (r == 0)
                r = af_pack_writer_finish(run->pack, NULL);
        af_pack_writer_free(run->pack);
        return r;
}

/* ---- all ---- */

int af_maintain_run(struct af_store *store, const struct af_maintain_opts *opts, struct af_maintain_progress *progress,
                    struct af_maintain_result *ret_result) {
        struct run run = {.store = store, .opts = opts, .progress = progress, .result = ret_result};
        struct af_store_stats st;
        int r;

        *ret_result = (struct af_maintain_result){0};
        run.chosen = calloc(SLICE_RECORDS, sizeof(*run.chosen));
        if (!run.chosen)
                return -ENOMEM;
        run.now_minute = (uint32_t)(af_clock_wall_s() / 60);
        af_store_stats(store, &st);
        ret_result->used_before = st.used_bytes;
        if (progress)
                for (unsigned i = 0; i < AF_N_TABLES; i++)
                        if (opts->kind != AF_MAINTAIN_EXPORT || i == AF_TABLE_BUNDLES)
                                atomic_fetch_add(&progress->n_total, st.n_records[i]);
        switch (opts->kind) {
        case AF_MAINTAIN_VERIFY:
                r = verify(&run);
                break;
        case AF_MAINTAIN_GC:
                r = gc(&run);
                break;
        default:
                r = export(&run);
        }
        free(run.chosen);
        af_store_stats(store, &st);
        ret_result->used_after = st.used_bytes;
        return r;
}

void af_maintain_result_json(enum af_maintain_kind kind, const struct af_maintain_result *r, struct af_buf *buf) {
        const struct {
                const char *name;
                uint64_t value;
                unsigned kinds;
        } all[] = {
                {"records", r->n_records, 7},
                {"damaged", r->n_damaged, 7},
                {"bundles_deleted", r->n_bundles, 2},
                {"kernels_deleted", r->n_kernels, 2},
                {"fragments_deleted", r->n_fragments, 2},
                {"texts_deleted", r->n_texts, 2},
                {"bundles", r->n_exported, 4},
                {"incomplete", r->n_incomplete, 4},
                {"used_before", r->used_before, 3},
                {"used_after", r->used_after, 3},
        };

        for (size_t i = 0; i < AF_ARRAY_SIZE(all); i++)
                if (all[i].kinds & 1u << kind)
                        af_buf_printf(buf, "%s\"%s\":%llu", i ? "," : "{", all[i].name, (unsigned long long)all[i].value);
        af_buf_put_str(buf, "}");
}
