/* SPDX-License-Identifier: Apache-2.0 */
/* HISTORY and WHY: questions that the ledger answers on its own thread, while their asker may leave. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "daemon/core.h"
#include "daemon/why.h"

struct af_question {
        struct af_list link;
        struct af_core *core;
        struct af_conn *conn; /* NULL: it left */
        uint64_t id;
        uint8_t type;
        struct af_buf json; /* WHY: what the answer begins with, without its closing brace */
};

void af_questions_leave(struct af_conn *conn) {
        af_list_each (q, &conn->core->questions, struct af_question, link)
                if (q->conn == conn)
                        q->conn = NULL;
}

static void question_free(struct af_question *q) {
        af_list_del(&q->link);
        af_buf_deinit(&q->json);
        free(q);
}

/* Appends what the ledger said and sends. */
static void on_answer(void *userdata, int r, const char *json, size_t n) {
        struct af_question *q = userdata;

        if (!q->conn || q->core->closing) {
                question_free(q);
                return;
        }
        if (q->type == AF_FRAME_WHY) {
                if (r == 0 && n > 2) {
                        af_json_key(&q->json, "nearest");
                        af_buf_put(&q->json, json, n);
                }
                af_buf_put_u8(&q->json, '}');
                r = af_buf_error(&q->json);
                json = (const char *)q->json.data;
                n = q->json.size;
        }
        if (r)
                af_reply_error(q->conn, q->id, AF_ERROR_STORAGE, true, "the ledger cannot be read");
        else
                af_reply_text(q->conn, q->type, q->id, json, n);
        question_free(q);
}

static struct af_question *question_new(struct af_conn *conn, uint8_t type, uint64_t id) {
        struct af_question *q = calloc(1, sizeof(*q));

        if (!q) {
                af_reply_error(conn, id, AF_ERROR_BUSY, true, "out of memory");
                return NULL;
        }
        q->core = conn->core;
        q->conn = conn;
        q->id = id;
        q->type = type;
        af_list_append(&conn->core->questions, &q->link);
        return q;
}

/* ---- HISTORY ---- */

static uint64_t number(const cJSON *o, const char *name, uint64_t otherwise, uint64_t max) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);

        return cJSON_IsNumber(item) && item->valuedouble >= 0 ? (uint64_t)AF_MIN(item->valuedouble, (double)max) : otherwise;
}

static const char *string(const cJSON *o, const char *name) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);

        return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* NULL, or what is wrong. */
static const char *read_query(const cJSON *o, struct af_ledger_query *ret) {
        static const char *const questions[] = {[AF_LEDGER_HISTORY] = "history", [AF_LEDGER_TOP] = "top", [AF_LEDGER_SUMMARY] = "summary"};
        const char *question = string(o, "question"), *kind = string(o, "kind"), *fragment = string(o, "fragment");
        size_t n = fragment ? strlen(fragment) : 0, i = 0;

        *ret = (struct af_ledger_query){.kind = -1, .uid = -1};
        while (i < AF_ARRAY_SIZE(questions) && (!question || strcmp(questions[i], question) != 0))
                i++;
        if (i == AF_ARRAY_SIZE(questions))
                return "the question is none of history, top, summary";
        ret->question = i;
        if (kind && (ret->kind = af_ledger_kind_from_name(kind)) < 0)
                return "the kind is none of request, plan, compile, miss, fallback, failure";
        if (n > 64 || n % 2 || (n && !af_unhex(fragment, n, ret->fragment, n / 2)))
                return "the fragment is not the beginning of a digest: an even number of hexadecimal digits, at most 64";
        ret->n_fragment = (uint32_t)(n / 2);
        ret->since_s = number(o, "since_s", 0, INT64_MAX / 2);
        if (cJSON_HasObjectItem(o, "uid"))
                ret->uid = (int64_t)number(o, "uid", 0, UINT32_MAX);
        ret->limit = (uint32_t)number(o, "limit", 100, AF_LEDGER_MAX_ROWS);
        return NULL;
}

void af_conn_on_history(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n) {
        struct af_ledger_query query;
        struct af_question *q;
        struct af_field f;
        cJSON *o = af_frame_find(body, n, AF_TAG_QUERY, 0, &f) ? cJSON_ParseWithLength((const char *)f.p, f.n) : NULL;
        const char *wrong = o ? read_query(o, &query) : "the query is no JSON object";

        cJSON_Delete(o);
        if (wrong) {
                af_reply_error(conn, id, AF_ERROR_INVALID, false, wrong);
                return;
        }
        q = question_new(conn, AF_FRAME_HISTORY, id);
        if (!q || af_ledger_ask(conn->core->ledger, &query, on_answer, q) == 0)
                return;
        question_free(q);
        af_reply_error(conn, id, AF_ERROR_BUSY, conn->core->ledger != NULL,
                       conn->core->ledger ? "the ledger has too many questions, or is off" : "this server has no ledger");
}

/* ---- WHY ---- */

/* The target that the asker names, else the stored fragment's, else the default. 0 or -ENOMEM. */
static int find_target(struct af_core *core, const struct af_digest *fragment, const uint8_t *body, size_t n, struct af_target *ret) {
        char soc[128] = "", toolchain[128] = "";
        struct af_blob *record, *canon = NULL;
        struct af_field f, twin;
        int r;

        if (af_frame_find(body, n, AF_TAG_TWIN, 1, &twin)) {
                if (af_frame_find(body, n, AF_TAG_SOC, 0, &f))
                        memcpy(soc, f.p, AF_MIN(f.n, sizeof(soc) - 1));
                if (af_frame_find(body, n, AF_TAG_TOOLCHAIN, 0, &f))
                        memcpy(toolchain, f.p, AF_MIN(f.n, sizeof(toolchain) - 1));
                return af_target_init(ret, soc, toolchain, twin.p[0]);
        }
        record = af_lookup_record(core, AF_TABLE_FRAGMENTS, fragment->bytes, sizeof(fragment->bytes));
        r = record ? af_record_fragment_read(record, ret, &canon) : AF_RECORD_E_DAMAGED;
        af_blob_unref(canon);
        af_blob_unref(record);
        return r > 0 ? af_target_init(ret, NULL, NULL, AF_TWIN_DEFAULT) : r;
}

static void answer_why(struct af_conn *conn, uint64_t id, struct af_environment *env, const struct af_digest *fragment,
                       const struct af_digest *first, const struct af_field *words) {
        struct af_ledger_query query = {.question = AF_LEDGER_NEAREST};
        struct af_question *q = question_new(conn, AF_FRAME_WHY, id);
        uint32_t n;

        if (!q)
                return;
        af_buf_put_u8(&q->json, '{');
        n = af_why_json(env, fragment, first, &q->json);
        memcpy(query.fragment, fragment->bytes, sizeof(query.fragment));
        memcpy(query.words, words->p, AF_MIN(words->n, sizeof(query.words) - 1));
        if (n > 0 || words->n == 0 || af_ledger_ask(conn->core->ledger, &query, on_answer, q))
                on_answer(q, 0, NULL, 0);
}

void af_conn_on_why(struct af_conn *conn, uint64_t id, const uint8_t *body, size_t n) {
        struct af_field key, words = {.p = (const uint8_t *)""};
        struct af_digest fragment, first;
        bool has_key = af_frame_find(body, n, AF_TAG_KEY, 64, &key);
        struct af_environment *env = NULL;
        struct af_target target;

        if (!has_key && !af_frame_find(body, n, AF_TAG_FRAGMENT, 32, &key)) {
                af_reply_error(conn, id, AF_ERROR_INVALID, false, "the question names no key");
                return;
        }
        memcpy(fragment.bytes, key.p, 32);
        if (has_key)
                memcpy(first.bytes, key.p + 32, 32);
        (void)af_frame_find(body, n, AF_TAG_TEXT, 0, &words);
        if (find_target(conn->core, &fragment, body, n, &target) == 0) {
                env = af_environment_get(conn->core, &target);
                af_target_deinit(&target);
        }
        if (!env)
                af_reply_error(conn, id, AF_ERROR_BUSY, true, "out of memory");
        else if (af_environment_check(env) == AF_ENVIRONMENT_READY)
                answer_why(conn, id, env, &fragment, has_key ? &first : NULL, &words);
        else if (env->state == AF_ENVIRONMENT_FAILED)
                af_reply_error(conn, id, env->failure.code, env->failure.retryable, env->failure.text);
        else
                af_reply_error(conn, id, AF_ERROR_BUSY, true, "rules and toolchain are being read");
}
