/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the ledger: SQL in, one JSON object out. On the ledger's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "cache/ledger_internal.h"

#define MAX_WORDS 192

/* One member from a column: blobs as hex, texts, numbers; NULL is left out. */
static void put_column(sqlite3_stmt *st, int i, struct af_buf *json) {
        char hex[AF_DIGEST_HEX_SIZE];

        switch (sqlite3_column_type(st, i)) {
        case SQLITE_NULL:
                return;
        case SQLITE_BLOB:
                af_hex(sqlite3_column_blob(st, i), (size_t)AF_MIN(sqlite3_column_bytes(st, i), 32), hex);
                af_json_add_string(json, sqlite3_column_name(st, i), hex);
                return;
        case SQLITE_TEXT:
                af_json_key(json, sqlite3_column_name(st, i));
                af_json_string_n(json, sqlite3_column_text(st, i), (size_t)sqlite3_column_bytes(st, i));
                return;
        default:
                af_json_key(json, sqlite3_column_name(st, i));
                af_buf_printf(json, "%lld", (long long)sqlite3_column_int64(st, i));
        }
}

static void put_row(sqlite3_stmt *st, struct af_buf *json) {
        af_json_item(json);
        af_buf_put_u8(json, '{');
        for (int i = 0; i < sqlite3_column_count(st); i++)
                put_column(st, i, json);
        af_buf_put_u8(json, '}');
}

/* Member `name`: a list of all rows. Finalizes st. */
static int put_rows(sqlite3_stmt *st, const char *name, struct af_buf *json) {
        int r;

        af_json_key(json, name);
        af_buf_put_u8(json, '[');
        while ((r = sqlite3_step(st)) == SQLITE_ROW)
                put_row(st, json);
        af_buf_put_u8(json, ']');
        sqlite3_finalize(st);
        return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int put_sql(sqlite3 *db, const char *sql, sqlite3_int64 argument, const char *name, struct af_buf *json) {
        sqlite3_stmt *st;
        int r = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

        if (r != SQLITE_OK)
                return r;
        sqlite3_bind_int64(st, 1, argument);
        return put_rows(st, name, json);
}

static int history(sqlite3 *db, const struct af_ledger_query *q, struct af_buf *json) {
        static const char sql[] =
                "SELECT e.id AS id, e.kind AS kind, e.wall_s AS wall_s, e.fragment AS fragment, e.environment AS environment, e.kernel AS "
                "kernel,"
                " e.queued_us AS queued_us, e.run_us AS run_us, e.peer_uid AS uid, e.peer_pid AS pid, e.code AS code, e.text AS text,"
                " f.words AS words FROM event e LEFT JOIN fragment f ON f.digest = e.fragment"
                " WHERE (?1 IS NULL OR e.kind = ?1) AND (?2 IS NULL OR substr(e.fragment, 1, ?3) = ?2) AND e.wall_s >= ?4"
                " AND (?5 < 0 OR e.peer_uid = ?5) ORDER BY e.id DESC LIMIT ?6";
        sqlite3_stmt *st;
        int r = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

        if (r != SQLITE_OK)
                return r;
        if (q->kind >= 0 && q->kind < AF_LEDGER_N_KINDS)
                sqlite3_bind_text(st, 1, ledger_kind_names[q->kind], -1, SQLITE_STATIC);
        if (q->n_fragment)
                sqlite3_bind_blob(st, 2, q->fragment, (int)AF_MIN(q->n_fragment, 32u), SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, q->n_fragment);
        sqlite3_bind_int64(st, 4, (sqlite3_int64)q->since_s);
        sqlite3_bind_int64(st, 5, q->uid);
        sqlite3_bind_int64(st, 6, AF_MIN(q->limit, AF_LEDGER_MAX_ROWS));
        return put_rows(st, "events", json);
}

static int top(sqlite3 *db, const struct af_ledger_query *q, struct af_buf *json) {
        return put_sql(db,
                       "SELECT u.fragment AS fragment, sum(u.hits) AS hits, sum(u.joined) AS joined, sum(u.compiled) AS compiled,"
                       " min(u.first_s) AS first_s, max(u.last_s) AS last_s, count(*) AS environments, f.words AS words"
                       " FROM use u LEFT JOIN fragment f ON f.digest = u.fragment GROUP BY u.fragment"
                       " ORDER BY sum(u.hits + u.joined + u.compiled) DESC, max(u.last_s) DESC, u.fragment LIMIT ?1",
                       AF_MIN(q->limit, AF_LEDGER_MAX_ROWS), "fragments", json);
}

static int summary(sqlite3 *db, const struct af_ledger_query *q, struct af_buf *json) {
        static const struct {
                const char *name, *sql;
        } parts[] = {
                {"stages", "SELECT stage, count(*) AS n, sum(us) AS us, cast(avg(us) AS INTEGER) AS mean_us, max(us) AS max_us FROM stage"
                           " WHERE wall_s >= ?1 GROUP BY stage ORDER BY min(id)"},
                {"events", "SELECT kind, count(*) AS n, cast(avg(queued_us) AS INTEGER) AS mean_queued_us, cast(avg(run_us) AS INTEGER) AS "
                           "mean_run_us FROM event WHERE wall_s >= ?1 GROUP BY kind ORDER BY kind"},
                {"misses",
                 "SELECT text, count(*) AS n FROM event WHERE kind = 'miss' AND wall_s >= ?1 GROUP BY text ORDER BY n DESC LIMIT 20"},
                {"fallbacks",
                 "SELECT text, count(*) AS n FROM event WHERE kind = 'fallback' AND wall_s >= ?1 GROUP BY text ORDER BY n DESC LIMIT 20"},
                {"failures", "SELECT code, text, count(*) AS n FROM event WHERE kind = 'failure' AND wall_s >= ?1 GROUP BY code, text "
                             "ORDER BY n DESC LIMIT 20"},
                {"environments", "SELECT e.digest AS environment, soc, toolchain, version, e.first_s AS first_s, e.last_s AS last_s,"
                                 " (SELECT count(*) FROM use u WHERE u.environment = e.digest) AS fragments"
                                 " FROM environment e WHERE e.last_s >= ?1 ORDER BY e.last_s DESC LIMIT 100"},
        };
        int r = SQLITE_OK;

        for (size_t i = 0; i < AF_ARRAY_SIZE(parts) && r == SQLITE_OK; i++)
                r = put_sql(db, parts[i].sql, (sqlite3_int64)q->since_s, parts[i].name, json);
        return r;
}

/* ---- likeness ---- */

static int by_text(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Splits in place, sorted. */
static unsigned split(char *text, char *words[MAX_WORDS]) {
        unsigned n = 0;
        char *save = NULL;

        for (char *w = strtok_r(text, " ", &save); w && n < MAX_WORDS; w = strtok_r(NULL, " ", &save))
                words[n++] = w;
        qsort(words, n, sizeof(*words), by_text);
        return n;
}

/* Words in both of the words in either, in thousandths. */
static unsigned likeness(char *const *a, unsigned n_a, char *const *b, unsigned n_b) {
        unsigned i = 0, k = 0, both = 0;

        while (i < n_a && k < n_b) {
                int c = strcmp(a[i], b[k]);

                both += c == 0;
                i += c <= 0;
                k += c >= 0;
        }
        return n_a + n_b ? 1000 * 2 * both / (n_a + n_b) : 0;
}

static int nearest(sqlite3 *db, const struct af_ledger_query *q, struct af_buf *json) {
        char asked[sizeof(q->words)], text[sizeof(q->words)], best_text[sizeof(q->words)], *a[MAX_WORDS], *b[MAX_WORDS];
        struct af_digest best = {0};
        unsigned n_a, best_likeness = 0;
        sqlite3_stmt *st;
        int r = sqlite3_prepare_v2(db, "SELECT digest, words FROM fragment WHERE digest <> ?1 ORDER BY wall_s DESC LIMIT 100000", -1, &st,
                                   NULL);

        if (r != SQLITE_OK)
                return r;
        snprintf(asked, sizeof(asked), "%s", q->words);
        n_a = split(asked, a);
        sqlite3_bind_blob(st, 1, q->fragment, 32, SQLITE_STATIC);
        while ((r = sqlite3_step(st)) == SQLITE_ROW) {
                unsigned value;

                snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(st, 1));
                value = likeness(a, n_a, b, split(text, b));
                if (value <= best_likeness || sqlite3_column_bytes(st, 0) != 32)
                        continue;
                best_likeness = value;
                memcpy(best.bytes, sqlite3_column_blob(st, 0), 32);
                snprintf(best_text, sizeof(best_text), "%s", (const char *)sqlite3_column_text(st, 1));
        }
        sqlite3_finalize(st);
        if (best_likeness) {
                af_json_add_digest(json, "fragment", &best);
                af_json_add_u64(json, "likeness", best_likeness);
                af_json_add_string(json, "words", best_text);
        }
        return r == SQLITE_DONE ? SQLITE_OK : r;
}

int ledger_answer(sqlite3 *db, const struct af_ledger_query *q, struct af_buf *json) {
        static int (*const answers[])(sqlite3 *, const struct af_ledger_query *, struct af_buf *) = {
                [AF_LEDGER_HISTORY] = history, [AF_LEDGER_TOP] = top, [AF_LEDGER_SUMMARY] = summary, [AF_LEDGER_NEAREST] = nearest};
        int r;

        af_buf_put_u8(json, '{');
        r = answers[q->question](db, q, json);
        af_buf_put_u8(json, '}');
        return r;
}
