/* SPDX-License-Identifier: Apache-2.0 */
/* plan: text or canonical bytes to a plan; the key is told before the planning, so that the core can answer from its store. */
#include <errno.h>
#include <string.h>

#include "compiler/driver/driver.h"
#include "compiler/graph/canon.h"
#include "compiler/graph/key.h"
#include "compiler/graph/words.h"
#include "daemon/job.h"

/* Canonical bytes of a text, with its slot map. 0, or 1 where the error is reported. */
static int canonicalise(const struct af_job_request *request, struct af_buf *ret_canon, struct af_buf *ret_map) {
        struct af_slot_map map = {0};
        struct af_diags diags = {0};
        int r = af_driver_canonicalise(request->bytes, request->n_bytes, ret_canon, &map, &diags);

        if (r == 0) {
                af_slot_map_write(&map, ret_map);
                r = af_buf_error(ret_map);
        }
        if (r)
                af_job_fail_diags(AF_ERROR_INVALID, &diags, r);
        af_slot_map_deinit(&map);
        af_diags_deinit(&diags);
        return r != 0;
}

/* What the fragment wants to run on. 0, or 1 where the error is reported. */
static int read_target(struct af_arena *arena, const struct af_buf *canon, struct af_graph *ret_graph) {
        struct af_diags diags = {0};
        int r = af_canon_read(ret_graph, arena, canon->data, canon->size, &diags);

        if (r == AF_CANON_E_VERSION)
                af_job_fail(AF_ERROR_INVALID, AF_JOB_FAULT_NONE, "the canonical form has another version than this server's");
        else if (r)
                af_job_fail_diags(AF_ERROR_INVALID, &diags, r);
        af_diags_deinit(&diags);
        return r != 0;
}

static void send_key(const struct af_graph *g, const struct af_env *env, const struct af_buf *canon, const struct af_buf *map) {
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;
        struct af_job_key key = {.environment = env->digest,
                                 .twin = (uint8_t)g->twin,
                                 .soc = g->soc,
                                 .toolchain = g->toolchain,
                                 .slot_map = map->data,
                                 .n_slot_map = (uint32_t)map->size};

        af_key_fragment(canon->data, canon->size, &key.fragment);
        if (map->size) {
                key.canon = canon->data;
                key.n_canon = (uint32_t)canon->size;
        }
        af_jobwire_write_key(&buf, &key);
        af_job_send(AF_JOB_MSG_KEY, buf.data, af_buf_error(&buf) ? 0 : buf.size);
}

/* ---- what the ledger keeps ---- */

struct stages {
        struct af_buf list;
        uint32_t n;
};

static void on_stage(void *userdata, const char *name, uint64_t us) {
        struct stages *s = userdata;

        if (strcmp(name, "emit") == 0)
                name = "codegen"; /* as people call it */
        af_buf_put_field(&s->list, name, strlen(name));
        af_buf_put_u64(&s->list, us);
        s->n++;
}

static void send_stages(const struct af_graph *g, const struct stages *s) {
        AF_CLEANUP(af_buf_deinit) struct af_buf words = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf buf = AF_BUF_INIT;

        af_graph_words(g, &words);
        af_buf_put_field(&buf, words.data, words.size);
        af_buf_put_u32(&buf, s->n);
        af_buf_put(&buf, s->list.data, s->list.size);
        if (af_buf_error(&words) == 0 && af_buf_error(&s->list) == 0 && af_buf_error(&buf) == 0)
                af_job_send(AF_JOB_MSG_STAGES, buf.data, buf.size);
}

int af_job_plan(struct af_arena *arena, const struct af_job_request *request) {
        AF_CLEANUP(af_buf_deinit) struct af_buf canon = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf map = AF_BUF_INIT;
        AF_CLEANUP(af_buf_deinit) struct af_buf plan = AF_BUF_INIT;
        struct stages stages = {0};
        struct af_driver_opts opts = {.stage = on_stage, .userdata = &stages};
        struct af_diags diags = {0};
        struct af_graph graph;
        struct af_env env;
        int r;

        if (request->is_text) {
                if (canonicalise(request, &canon, &map))
                        return 0;
        } else {
                af_buf_put(&canon, request->bytes, request->n_bytes);
                if (af_buf_error(&canon))
                        return 4;
        }
        if (read_target(arena, &canon, &graph) || af_job_load_env(arena, &request->config, graph.soc, graph.toolchain, graph.twin, &env))
                return 0;
        send_key(&graph, &env, &canon, &map);
        r = af_driver_plan(&env, canon.data, canon.size, &opts, &plan, &diags);
        send_stages(&graph, &stages);
        if (r)
                af_job_fail_diags(r > 0 ? AF_ERROR_INVALID : AF_ERROR_INTERNAL, &diags, r);
        else
                af_job_send(AF_JOB_MSG_PLAN, plan.data, plan.size);
        af_buf_deinit(&stages.list);
        af_diags_deinit(&diags);
        return 0;
}
