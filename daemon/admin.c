/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long work on the store for its owner: one at a time, on a thread of the loop's pool, with progress and an end as soon as its asker
 * leaves. And import: one bundle a frame.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"
#include "daemon/maintain.h"

#define PROGRESS_NS 200000000ull

struct af_maintenance {
        struct af_core *core;
        struct af_conn *conn; /* NULL: it left */
        uint64_t id, begin_ns;
        uv_work_t work;
        uv_async_t async;
        _Atomic uint64_t told_ns;
        struct af_maintain_opts opts;
        struct af_maintain_progress progress;
        struct af_maintain_result result;
        struct af_digest *environments;
        int error;
};

bool af_admin_stop(struct af_core *core, const struct af_conn *conn, uint64_t id) {
        struct af_maintenance *m = core->maintenance;

        if (!m || (conn && (m->conn != conn || (id && m->id != id))))
                return false;
        atomic_store(&m->progress.stop, true);
        if (m->conn && id)
                af_reply_error(m->conn, m->id, AF_ERROR_CANCELED, false, "canceled");
        else if (m->conn && !conn)
                af_reply_error(m->conn, m->id, AF_ERROR_DRAINING, true, "the server is going down");
        m->conn = NULL;
        return true;
}

/* ---- on the pool's thread ---- */

static void work(uv_work_t *w) {
        struct af_maintenance *m = w->data;

        m->error = af_maintain_run(m->core->store, &m->opts, &m->progress, &m->result);
}

static void tell(void *userdata) {
        struct af_maintenance *m = userdata;
        uint64_t now = af_clock_now_ns();

        if (now - atomic_load(&m->told_ns) < PROGRESS_NS)
                return;
        atomic_store(&m->told_ns, now);
        uv_async_send(&m->async);
}

/* ---- on the loop ---- */

static const char *const doing[] = {
        [AF_MAINTAIN_VERIFY] = "verifying records", [AF_MAINTAIN_GC] = "collecting garbage", [AF_MAINTAIN_EXPORT] = "exporting bundles"};

static void on_async(uv_async_t *async) {
        struct af_maintenance *m = async->data;
        struct af_buf buf = AF_BUF_INIT;
        size_t at;

        if (!m->conn || m->conn->out_head)
                return;
        at = af_frame_begin(&buf, &(struct af_frame_header){.type = AF_FRAME_PROGRESS, .request_id = m->id});
        af_frame_field_str(&buf, AF_TAG_TEXT, doing[m->opts.kind]);
        af_frame_field_u64(&buf, AF_TAG_ELAPSED_MS, (af_clock_now_ns() - m->begin_ns) / 1000000);
        af_frame_field_u64(&buf, AF_TAG_DONE, atomic_load(&m->progress.n_done));
        af_frame_field_u64(&buf, AF_TAG_TOTAL, atomic_load(&m->progress.n_total));
        af_frame_end(&buf, at);
        af_conn_send(m->conn, &buf);
}

static void on_closed(uv_handle_t *handle) {
        struct af_maintenance *m = handle->data;

        free(m->environments);
        free(m);
}

/* The file of an export goes along with the answer. */
static void send_done(struct af_maintenance *m) {
        struct af_buf text = AF_BUF_INIT, buf = AF_BUF_INIT;
        bool pass_fd = m->opts.kind == AF_MAINTAIN_EXPORT;
        struct af_ready_bundle *file = NULL;
        struct stat st;
        size_t at;

        if (pass_fd && fstat(m->opts.fd, &st) == 0) {
                file = af_ready_bundle_new(m->opts.fd, (size_t)st.st_size);
                m->opts.fd = -1;
        }
        if (pass_fd && !file) {
                af_reply_error(m->conn, m->id, AF_ERROR_BUSY, true, "out of memory");
                return;
        }
        af_maintain_result_json(m->opts.kind, &m->result, &text);
        at = af_frame_begin(&buf, &(struct af_frame_header){.type = AF_FRAME_MAINTAIN, .request_id = m->id, .n_fds = pass_fd});
        af_frame_field(&buf, AF_TAG_TEXT, text.data, text.size);
        if (pass_fd)
                af_frame_field_u64(&buf, AF_TAG_BUNDLE_BYTES, file->size);
        af_frame_end(&buf, at);
        if (pass_fd)
                af_conn_send_bundle(m->conn, &buf, file, true);
        else
                af_conn_send(m->conn, &buf);
        af_buf_deinit(&text);
}

static void on_done(uv_work_t *w, int status) {
        struct af_maintenance *m = w->data;
        struct af_core *core = m->core;

        core->maintenance = NULL;
        if (m->opts.kind == AF_MAINTAIN_GC)
                af_bundle_cache_clear(core); /* what is gone from the store is gone from memory */
        if (m->conn && m->error)
                af_reply_error(m->conn, m->id, AF_ERROR_STORAGE, true,
                               m->error == AF_STORE_E_FULL ? "disk or store full" : strerror(-m->error));
        else if (m->conn)
                send_done(m);
        if (m->opts.fd >= 0)
                close(m->opts.fd);
        uv_close((uv_handle_t *)&m->async, on_closed);
}

/* Environments in force, of every target that was asked for. */
static int take_environments(struct af_maintenance *m) {
        uint32_t n = 0;

        af_list_each (env, &m->core->environments, struct af_environment, link)
                n++;
        m->environments = calloc(n + 1, sizeof(*m->environments));
        if (!m->environments)
                return -ENOMEM;
        af_list_each (e, &m->core->environments, struct af_environment, link)
                if (e->state == AF_ENVIRONMENT_READY)
                        m->environments[m->opts.n_environments++] = e->digest;
        m->opts.environments = m->environments;
        return 0;
}

static double number(const cJSON *o, const char *name) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);

        return cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : 0;
}

/* {"action": "verify|gc|export", "max_bytes": n, "max_age_days": n, "current_only": bool}. NULL, or what is wrong. */
static const char *read_query(const uint8_t *p, size_t n, struct af_maintain_opts *ret_opts) {
        cJSON *o = cJSON_ParseWithLength((const char *)p, n);
        const cJSON *action = cJSON_GetObjectItemCaseSensitive(o, "action");
        const char *name = cJSON_IsString(action) ? action->valuestring : "", *wrong = NULL;

        *ret_opts = (struct af_maintain_opts){.fd = -1};
        if (strcmp(name, "verify") == 0)
                ret_opts->kind = AF_MAINTAIN_VERIFY;
        else if (strcmp(name, "gc") == 0)
                ret_opts->kind = AF_MAINTAIN_GC;
        else if (strcmp(name, "export") == 0)
                ret_opts->kind = AF_MAINTAIN_EXPORT;
        else
                wrong = "action: one of verify, gc, export is expected";
        ret_opts->max_bytes = (uint64_t)number(o, "max_bytes");
        ret_opts->max_age_days = (uint32_t)AF_MIN(number(o, "max_age_days"), 1e6);
        ret_opts->current_only = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "current_only"));
        cJSON_Delete(o);
        return wrong;
}

/* A file without a name in the state directory: gone with its last descriptor. */
static int export_file(struct af_core *core) {
        int fd = open(core->state_dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        return fd < 0 ? -errno : fd;
}

static int start(struct af_conn *conn, uint64_t id, const struct af_maintain_opts *opts) {
        struct af_maintenance *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        *m = (struct af_maintenance){.core = conn->core, .conn = conn, .id = id, .begin_ns = af_clock_now_ns(), .opts = *opts};
        m->progress.tell = tell;
        m->progress.userdata = m->work.data = m->async.data = m;
        r = take_environments(m);
        if (r == 0 && opts->kind == AF_MAINTAIN_EXPORT) {
                m->opts.fd = export_file(conn->core);
                r = AF_MIN(m->opts.fd, 0);
        }
        if (r == 0)
                r = uv_async_init(conn->core->loop, &m->async, on_async);
        if (r == 0) {
                conn->core->maintenance = m;
                (void)!uv_queue_work(conn->core->loop, &m->work, work, on_done); /* fails only without a function to call */
                return 0;
        }
        if (m->opts.fd >= 0)
                close(m->opts.fd);
        free(m->environments);
        free(m);
        return r;
}

void af_admin_maintain(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n) {
        struct af_maintain_opts opts;
        const char *wrong;
        struct af_field f;
        int r;

        if (!af_frame_find(body, n, AF_TAG_QUERY, 0, &f)) {
                af_reply_error(conn, id, AF_ERROR_INVALID, false, "the request has no query");
                return;
        }
        wrong = read_query(f.p, f.n, &opts);
        if (wrong) {
                af_reply_error(conn, id, AF_ERROR_INVALID, false, wrong);
                return;
        }
        if (conn->core->maintenance || conn->core->draining) {
                af_reply_error(conn, id, AF_ERROR_BUSY, true, "other work on the store is under way");
                return;
        }
        if (opts.kind != AF_MAINTAIN_VERIFY && af_store_read_only(conn->core->store)) {
                af_reply_error(conn, id, AF_ERROR_STORAGE, false, "the state directory is read-only");
                return;
        }
        if (opts.kind == AF_MAINTAIN_EXPORT && !conn->takes_fds) {
                af_reply_error(conn, id, AF_ERROR_INVALID, false, "an export needs a client that takes descriptors");
                return;
        }
        r = start(conn, id, &opts);
        if (r)
                af_reply_error(conn, id, AF_ERROR_STORAGE, true, strerror(-r));
        else
                af_log(AF_LOG_INFO, "%s for user %u, process %d", doing[opts.kind], (unsigned)conn->peer.uid, (int)conn->peer.pid);
}

/* ---- import ---- */

struct import {
        struct af_digest fragment, environment;
        struct af_target target;
        struct af_field canon, bundle;
        struct af_bundle view;
        struct af_buf record, skeleton;
        void *aligned; /* the bundle's bytes */
};

/* NULL, or what is wrong with the frame. */
static const char *read_import(const uint8_t *body, size_t n, struct import *im) {
        struct af_field key, soc, toolchain, twin;
        struct af_digest digest;
        char *names[2];
        const char *why = NULL;
        int r;

        if (!af_frame_find(body, n, AF_TAG_KEY, 64, &key) || !af_frame_find(body, n, AF_TAG_CANON, 0, &im->canon) ||
            !af_frame_find(body, n, AF_TAG_BUNDLE, 0, &im->bundle) || !af_frame_find(body, n, AF_TAG_SOC, 0, &soc) ||
            !af_frame_find(body, n, AF_TAG_TOOLCHAIN, 0, &toolchain) || !af_frame_find(body, n, AF_TAG_TWIN, 1, &twin))
                return "a field is missing";
        memcpy(im->fragment.bytes, key.p, 32);
        memcpy(im->environment.bytes, key.p + 32, 32);
        af_key_fragment(im->canon.p, im->canon.n, &digest);
        if (!af_digest_equal(&digest, &im->fragment))
                return "the canonical bytes are another fragment's";
        names[0] = strndup((const char *)soc.p, soc.n);
        names[1] = strndup((const char *)toolchain.p, toolchain.n);
        r = names[0] && names[1] ? af_target_init(&im->target, names[0], names[1], twin.p[0]) : -ENOMEM;
        free(names[0]);
        free(names[1]);
        im->aligned = aligned_alloc(64, AF_ALIGN_UP((size_t)im->bundle.n + 1, 64));
        if (r || !im->aligned)
                return "out of memory";
        memcpy(im->aligned, im->bundle.p, im->bundle.n);
        if (af_bundle_open(im->aligned, im->bundle.n, &im->view, &why) != 0)
                return why ? why : "the bundle is damaged";
        r = af_bundle_detach(&im->view, &im->skeleton);
        return r == 0 ? NULL : r < 0 ? "out of memory" : "it is not a whole bundle";
}

/* An import until it is stored; its asker may be gone by then. */
struct importing {
        struct af_core *core;
        uint64_t serial, id; /* of connection and request */
        bool current;
};

static void on_imported(void *userdata, int r) {
        struct importing *w = userdata;
        const char *text = w->current ? "{\"current\":true}" : "{\"current\":false}";

        af_list_each (conn, &w->core->conns, struct af_conn, link) {
                if (conn->serial != w->serial || r == -ECANCELED)
                        continue;
                if (r)
                        af_reply_error(conn, w->id, AF_ERROR_STORAGE, true, r == AF_STORE_E_FULL ? "disk or store full" : strerror(-r));
                else
                        af_reply_text(conn, AF_FRAME_IMPORT, w->id, text, strlen(text));
        }
        free(w);
}

static int put_import(struct af_core *core, struct import *im, struct importing *w) {
        uint32_t n = af_bundle_count(&im->view, AF_SECTION_KERNELS), at = 0;
        struct af_store_record *records = calloc((size_t)n + 2, sizeof(*records));
        uint8_t key[64];
        int r;

        if (!records)
                return -ENOMEM;
        memcpy(key, im->fragment.bytes, 32);
        memcpy(key + 32, im->environment.bytes, 32);
        af_record_fragment_write(&im->record, &im->target, im->canon.p, im->canon.n);
        records[at++] = (struct af_store_record){AF_TABLE_FRAGMENTS, im->fragment.bytes, 32, im->record.data, im->record.size};
        if (im->bundle.n <= AF_INLINE_BUNDLE_BYTES)
                records[at++] = (struct af_store_record){AF_TABLE_BUNDLES, key, 64, im->aligned, im->bundle.n};
        else
                records[at++] = (struct af_store_record){AF_TABLE_BUNDLES, key, 64, im->skeleton.data, im->skeleton.size};
        for (uint32_t i = 0; i < n; i++) {
                const struct af_bundle_kernel *k = af_bundle_at(&im->view, AF_SECTION_KERNELS, i);

                records[at++] =
                        (struct af_store_record){AF_TABLE_KERNELS, k->key.bytes, 32, af_bundle_blob(&im->view, k->binary), k->binary.size};
        }
        r = af_buf_error(&im->record);
        if (r == 0)
                r = af_store_put(core->store, records, at, on_imported, w);
        free(records);
        return r;
}

/* A bundle from elsewhere, by the server's own user: that it belongs to its key is believed, as a pack's reader believes a pack. */
void af_admin_import(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n) {
        struct import im = {0};
        const char *wrong = read_import(body, n, &im);
        struct importing *w = wrong ? NULL : malloc(sizeof(*w));
        int r = wrong || w ? 0 : -ENOMEM;

        if (w) {
                struct af_environment *env = af_environment_get(conn->core, &im.target);

                *w = (struct importing){.core = conn->core, .serial = conn->serial, .id = id};
                w->current = env && env->state == AF_ENVIRONMENT_READY && af_digest_equal(&env->digest, &im.environment);
                r = put_import(conn->core, &im, w);
        }
        if (wrong)
                af_reply_error(conn, id, AF_ERROR_INVALID, false, wrong);
        if (r) {
                af_reply_error(conn, id, AF_ERROR_STORAGE, true, r == AF_STORE_E_FULL ? "disk or store full" : strerror(-r));
                free(w);
        }
        af_target_deinit(&im.target);
        af_buf_deinit(&im.record);
        af_buf_deinit(&im.skeleton);
        free(im.aligned);
}
