/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels under way: one compile each, however many flights wait for it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core.h"

static void start(struct af_build *k, bool alone);

/* Every flight that waits for it looks again; one that goes takes its place in the list along. */
static void tell(struct af_build *k) {
        struct af_list told;

        af_list_init(&told);
        k->refs++; /* the last flight may let go of it */
        while (!af_list_empty(&k->flights)) {
                struct af_list *first = k->flights.next;

                af_list_del(first);
                af_list_append(&told, first);
                af_flight_advance(af_list_entry(first, struct af_flight_kernel, in_kernel)->flight);
        }
        while (!af_list_empty(&told)) {
                struct af_list *first = told.next;

                af_list_del(first);
                af_list_append(&k->flights, first);
        }
        af_build_unref(k);
}

void af_build_wait(struct af_flight_kernel *fk) {
        af_list_append(&fk->kernel->flights, &fk->in_kernel);
        af_flight_want(fk->flight, fk->kernel->worker);
}

static void fail(struct af_build *k, enum af_error_code code, bool retryable, const char *what, const char *text) {
        af_failure_deinit(&k->failure);
        k->failure = af_failure_make(code, retryable, "%s%s", what, text);
        k->failed = true;
        tell(k);
}

static void on_message(void *owner, uint32_t type, const void *p, size_t n) {
        struct af_build *k = owner;
        struct af_cursor c = af_cursor_make(p, n);
        enum af_error_code code;

        switch (type) {
        case AF_JOB_MSG_BINARY:
                af_blob_clear(&k->binary_told);
                k->binary_told = af_blob_copy(p, n);
                break;
        case AF_JOB_MSG_ERROR:
                code = af_cursor_u32(&c);
                k->job_fault = af_cursor_u32(&c);
                af_failure_deinit(&k->failure);
                if (!c.error)
                        k->failure = af_failure_make(code, af_error_retryable(code), "%.*s", (int)(n - c.at), (const char *)p + c.at);
                break;
        case AF_JOB_MSG_TRACE:
                af_log(AF_LOG_DEBUG, "%.*s", (int)AF_MIN(n, (size_t)65536), (const char *)p);
                break;
        }
}

/* A killed compile is tried once more, with nothing beside it. True where it is. */
static bool retry(struct af_build *k) {
        if (k->retried_alone)
                return false;
        k->retried_alone = true;
        k->core->stats.n_retries++;
        start(k, true);
        return true;
}

static void job_lost(struct af_build *k, const struct af_worker_end *end) {
        char text[160];

        af_worker_end_text(end, text);
        af_log(AF_LOG_WARNING, "the compile of %s %s", k->symbol, text);
        if (end->start_error)
                fail(k, AF_ERROR_STORAGE, true, "the compile job ", text);
        else if (end->timed_out || !retry(k))
                fail(k, AF_ERROR_JOB_DIED, true, "the compile job ", text);
}

static void job_failed(struct af_build *k) {
        if (k->job_fault == AF_JOB_FAULT_CHANGED) {
                k->changed = true;
                tell(k);
        } else if (k->job_fault != AF_JOB_FAULT_KILLED || !retry(k)) {
                if (k->job_fault == AF_JOB_FAULT_NONE && k->failure.code == AF_ERROR_COMPILE)
                        af_negative_note(&k->core->negatives, &k->link.key, k->failure.text, k->alone, k->core->tmp_dir, af_clock_now_ns());
                k->failed = true;
                tell(k);
        }
}

static void on_end(void *owner, const struct af_worker_end *end) {
        struct af_build *k = owner;

        k->worker = NULL;
        af_core_ledger(k->core, AF_LEDGER_COMPILE, NULL, &k->fragment, &k->env->digest, &k->link.key,
                       af_clock_now_ns() - end->run_us * 1000 - end->queued_us * 1000, end->run_us * 1000,
                       end->finished ? (int)k->failure.code : AF_ERROR_JOB_DIED, k->symbol);
        if (!end->finished) {
                job_lost(k, end);
        } else if (k->failure.code) {
                job_failed(k);
        } else if (!k->binary_told || k->binary_told->size == 0) {
                fail(k, AF_ERROR_COMPILE, false, "the compiler left no binary", "");
        } else {
                k->binary = k->binary_told;
                k->binary_told = NULL;
                k->core->stats.n_kernel_compiles++;
                af_negative_forget(&k->core->negatives, &k->link.key);
                af_parts_kernel(k);
                af_ledger_stage(k->core->ledger, &k->fragment, &k->env->digest, &k->link.key, "compile", end->run_us);
                tell(k);
        }
}

static struct af_blob *make_input(void *owner) {
        struct af_build *k = owner;
        struct af_job_limits limits = af_core_job_limits(k->core, AF_JOB_COMPILE);
        struct af_buf buf = AF_BUF_INIT;
        struct af_blob *input;

        af_jobwire_write_compile(&buf, &limits, k->toolchain_bytes->data, k->toolchain_bytes->size, k->symbol, k->source->data,
                                 k->source->size);
        input = af_blob_take_buf(&buf);
        af_buf_deinit(&buf);
        return input;
}

static const struct af_worker_ops ops = {make_input, on_message, on_end};

static void start(struct af_build *k, bool alone) {
        af_failure_deinit(&k->failure);
        k->job_fault = 0;
        k->alone = alone;
        k->worker = af_worker_start(k->core, AF_JOB_COMPILE, alone, k, &ops);
        af_worker_set_label(k->worker, k->symbol);
        if (!k->worker) {
                fail(k, AF_ERROR_BUSY, true, "out of memory", "");
                return;
        }
        af_list_each (fk, &k->flights, struct af_flight_kernel, in_kernel)
                af_flight_want(fk->flight, k->worker);
}

struct af_build *af_build_get(struct af_core *core, const struct af_digest *key) {
        struct af_build *k = af_digest_table_get(&core->kernel_table, key);

        if (k)
                k->refs++;
        return k;
}

/* True where it failed twice already: then it has. One that failed once runs alone, so that it shows whose fault it is. */
static bool known_to_fail(struct af_build *k) {
        const char *text = af_negative_get(&k->core->negatives, &k->link.key, af_clock_now_ns());

        if (text) {
                k->core->stats.n_hits_negative++;
                k->failure = af_failure_make(AF_ERROR_COMPILE, false, "%s", text);
                k->failed = true;
        }
        k->alone = af_negative_suspected(&k->core->negatives, &k->link.key, af_clock_now_ns());
        return k->failed;
}

/* Of a failed or outdated one nobody new gets hold. */
static void unlist(struct af_build *k) {
        af_digest_table_del(&k->core->kernel_table, &k->link);
}

struct af_build *af_build_new(struct af_core *core, const struct af_digest *key, const char *toolchain, const char *symbol,
                              struct af_blob *source, struct af_environment *env, const struct af_digest *fragment) {
        struct af_build *k = calloc(1, sizeof(*k));

        if (!k)
                return NULL;
        *k = (struct af_build){.link.key = *key, .core = core, .refs = 1, .env = env, .fragment = *fragment};
        af_list_init(&k->flights);
        k->symbol = strdup(symbol);
        k->toolchain = strdup(toolchain);
        k->source = af_blob_ref(source);
        k->toolchain_bytes = af_blob_ref(env->toolchain);
        af_digest_table_add(&core->kernel_table, &k->link);
        if (k->symbol && k->toolchain && known_to_fail(k))
                return k;
        if (k->symbol && k->toolchain)
                k->worker = af_worker_start(core, AF_JOB_COMPILE, k->alone, k, &ops);
        af_worker_set_label(k->worker, k->symbol);
        if (!k->worker) {
                af_build_unref(k);
                return NULL;
        }
        return k;
}

/* Compiled, and then nobody was left to publish it with a bundle: kept all the same. */
static void keep(struct af_build *k) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        struct af_store_record records[2];

        af_record_source_write(&buf, k->toolchain, k->symbol, k->source->data, k->source->size);
        if (af_buf_error(&buf))
                return;
        records[0] = (struct af_store_record){AF_TABLE_SOURCES, k->link.key.bytes, sizeof(k->link.key.bytes), buf.data, buf.size};
        records[1] =
                (struct af_store_record){AF_TABLE_KERNELS, k->link.key.bytes, sizeof(k->link.key.bytes), k->binary->data, k->binary->size};
        if (af_store_put(k->core->store, records, 2, NULL, NULL))
                k->core->stats.n_not_stored++;
}

void af_build_unref(struct af_build *k) {
        if (!k)
                return;
        if (--k->refs > 0)
                return;
        if (k->binary && !k->stored && !k->core->closing)
                keep(k);
        af_worker_cancel(k->worker);
        unlist(k);
        af_failure_deinit(&k->failure);
        af_blob_unref(k->source);
        af_blob_unref(k->binary);
        af_blob_unref(k->binary_told);
        af_blob_unref(k->toolchain_bytes);
        free(k->symbol);
        free(k->toolchain);
        free(k);
}
