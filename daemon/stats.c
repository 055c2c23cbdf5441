/* SPDX-License-Identifier: Apache-2.0 */
/* The STATS reply and the ledger's events. Names of the JSON are stable; docs/operations.md lists them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_text.h"
#include "daemon/core.h"

#define MAX_FLIGHTS 32u

struct count {
        const char *name;
        uint64_t value;
};

static void put_counts(struct af_buf *buf, const struct count *counts, size_t n) {
        for (size_t i = 0; i < n; i++)
                af_buf_printf(buf, "%s\"%s\":%llu", i ? "," : "", counts[i].name, (unsigned long long)counts[i].value);
}

static const char *const table_names[AF_N_TABLES] = {"fragments", "bundles", "sources", "kernels", "texts", "env"};

static void put_store(struct af_core *core, struct af_buf *buf) {
        struct af_store_stats st;

        af_store_stats(core->store, &st);
        af_buf_put_str(buf, "\"store\":{\"records\":{");
        for (unsigned i = 0; i < AF_N_TABLES; i++)
                af_buf_printf(buf, "%s\"%s\":%llu", i ? "," : "", table_names[i], (unsigned long long)st.n_records[i]);
        af_buf_put_str(buf, "},\"bytes\":{");
        for (unsigned i = 0; i < AF_N_TABLES; i++)
                af_buf_printf(buf, "%s\"%s\":%llu", i ? "," : "", table_names[i], (unsigned long long)st.bytes[i]);
        af_buf_printf(buf,
                      "},\"map_bytes\":%llu,\"used_bytes\":%llu,\"damaged\":%llu,\"evicted\":%llu,\"puts\":%llu,\"put_failed\":%llu,"
                      "\"not_stored\":%llu,\"read_only\":%s}",
                      (unsigned long long)st.map_bytes, (unsigned long long)st.used_bytes, (unsigned long long)st.n_damaged,
                      (unsigned long long)st.n_evicted, (unsigned long long)st.n_puts, (unsigned long long)st.n_put_failed,
                      (unsigned long long)core->stats.n_not_stored, af_store_read_only(core->store) ? "true" : "false");
}

static const char *const state_names[] = {[AF_ENVIRONMENT_NEW] = "new",
                                          [AF_ENVIRONMENT_LOADING] = "loading",
                                          [AF_ENVIRONMENT_READY] = "ready",
                                          [AF_ENVIRONMENT_FAILED] = "failed"};

static void put_environments(struct af_core *core, struct af_buf *buf) {
        bool first = true;

        af_buf_put_str(buf, "\"environments\":[");
        af_list_each (env, &core->environments, struct af_environment, link) {
                char hex[AF_DIGEST_HEX_SIZE] = "";

                if (env->state == AF_ENVIRONMENT_READY)
                        af_digest_hex(&env->digest, hex);
                af_buf_printf(buf, "%s{\"soc\":", first ? "" : ",");
                af_json_string(buf, env->target.soc);
                af_buf_put_str(buf, ",\"toolchain\":");
                af_json_string(buf, env->target.toolchain);
                af_buf_printf(buf, ",\"twin\":%u,\"state\":\"%s\",\"digest\":\"%s\",\"version\":", env->target.twin,
                              state_names[env->state], hex);
                af_json_string(buf, env->version ? env->version : "");
                af_buf_put_u8(buf, '}');
                first = false;
        }
        af_buf_put_u8(buf, ']');
}

/* Fragments under way: the first few. */
static void put_flights(struct af_core *core, struct af_buf *buf) {
        uint64_t now = af_clock_now_ns();
        uint32_t n = 0;

        af_buf_put_u8(buf, '[');
        af_list_each (f, &core->flights, struct af_flight, all) {
                if (f->n_waiters == 0 || n == MAX_FLIGHTS)
                        continue;
                n++;
                af_json_item(buf);
                af_buf_put_u8(buf, '{');
                af_json_add_digest(buf, "fragment", &f->link.key);
                af_json_add_string(buf, "doing", af_flight_doing(f));
                af_json_add_u64(buf, "waiters", f->n_waiters);
                af_json_add_u64(buf, "ms", (now - f->begin_ns) / 1000000);
                af_buf_put_u8(buf, '}');
        }
        af_buf_put_u8(buf, ']');
}

static void put_jobs(const struct af_core *core, struct af_buf *buf) {
        const struct af_workers *w = &core->workers;

        af_buf_printf(
                buf,
                ",\"jobs\":{\"running\":%u,\"queued\":%u,\"slots\":%llu,\"busy_us\":%llu,\"plan_peak_mib\":%llu,\"compile_peak_mib\":%llu}",
                w->n_running, w->sched.n_jobs, (unsigned long long)core->config->jobs,
                (unsigned long long)af_workers_busy_us(w, af_clock_now_ns()), (unsigned long long)w->peak_mib[AF_JOB_PLAN],
                (unsigned long long)w->peak_mib[AF_JOB_COMPILE]);
}

void af_core_stats_json(struct af_core *core, struct af_buf *buf) {
        const struct af_core_stats *s = &core->stats;

        af_buf_printf(buf, "{\"version\":\"%s\",\"pid\":%d,\"uptime_s\":%llu,\"draining\":%s,", AF_VERSION, (int)getpid(),
                      (unsigned long long)((af_clock_now_ns() - core->start_ns) / 1000000000), core->draining ? "true" : "false");
        const struct count counts[] = {
                {"requests", s->n_requests},
                {"hits", s->n_hits_memory + s->n_hits_store},
                {"hits_memory", s->n_hits_memory},
                {"hits_store", s->n_hits_store},
                {"joined", s->n_joined},
                {"hits_negative", s->n_hits_negative},
                {"fragment_compiles", s->n_fragment_compiles},
                {"kernel_compiles", s->n_kernel_compiles},
                {"environment_loads", s->n_environment_loads},
                {"failures", s->n_failures},
                {"canceled", s->n_canceled},
                {"deadlines", s->n_deadlines},
                {"retries", s->n_retries},
                {"jobs_died", s->n_jobs_died},
                {"jobs_timed_out", s->n_jobs_timed_out},
                {"orphans_ended", s->n_orphans},
                {"connections_total", s->n_connections},
                {"connections_refused", s->n_refused},
                {"protocol_errors", s->n_protocol_errors},
                {"ledger_dropped", af_ledger_dropped(core->ledger)},
        };
        put_counts(buf, counts, AF_ARRAY_SIZE(counts));
        af_buf_printf(buf, ",\"in_flight\":{\"connections\":%u,\"requests\":%u,\"fragments\":%u,\"kernels\":%u}", core->n_conns,
                      core->n_requests, core->flight_table.n, core->kernel_table.n);
        put_jobs(core, buf);
        af_buf_printf(buf, ",\"watchers\":{\"now\":%u,\"events\":%llu,\"lost\":%llu},\"running\":", core->events.n_watchers,
                      (unsigned long long)core->events.n_made, (unsigned long long)core->events.n_lost);
        af_workers_json(&core->workers, buf);
        af_buf_put_str(buf, ",\"waiting\":");
        put_flights(core, buf);
        af_buf_printf(buf, ",\"gate\":{\"running\":%s,\"starts\":%llu}", core->gate.running ? "true" : "false",
                      (unsigned long long)core->gate.n_starts);
        af_buf_printf(buf, ",\"memory\":{\"bundles\":%u,\"bundle_bytes\":%zu,\"receive_bytes\":%zu,\"held_bytes\":%zu},",
                      core->bundle_table.n, core->bundle_bytes, core->rx_bytes, core->held_bytes);
        put_store(core, buf);
        af_hot_json(core, buf);
        af_buf_put_u8(buf, ',');
        put_environments(core, buf);
        af_buf_put_u8(buf, '}');
}

void af_core_ledger(struct af_core *core, enum af_ledger_kind kind, const struct af_request *req, const struct af_digest *fragment,
                    const struct af_digest *environment, const struct af_digest *kernel, uint64_t begin_ns, uint64_t run_ns, int code,
                    const char *text) {
        struct af_ledger_event e = {.kind = kind, .wall_s = af_clock_wall_s(), .run_us = run_ns / 1000, .code = code};
        uint64_t total = af_clock_now_ns() - begin_ns;

        if (!core->ledger)
                return;
        e.queued_us = total > run_ns ? (total - run_ns) / 1000 : 0;
        if (fragment)
                e.fragment = *fragment;
        if (environment)
                e.environment = *environment;
        if (kernel)
                e.kernel = *kernel;
        if (req) {
                e.peer_uid = req->conn->peer.uid;
                e.peer_pid = (uint32_t)req->conn->peer.pid;
        }
        snprintf(e.text, sizeof(e.text), "%s", text ? text : "");
        af_ledger_add(core->ledger, &e);
}
