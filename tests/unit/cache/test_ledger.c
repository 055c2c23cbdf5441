/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cache/ledger.h"

static char *dir, path[4096];

static void setup(void) {
        cr_assert_eq(af_io_temp_dir(NULL, "af_ledger", &dir), 0);
        snprintf(path, sizeof(path), "%s/ledger.sqlite", dir);
}

static void teardown(void) {
        cr_assert_eq(af_io_remove_tree(dir), 0);
        free(dir);
}

static int count(const char *where) {
        sqlite3_stmt *st;
        sqlite3 *db;
        char sql[256];
        int n = -1;

        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM event WHERE %s", where);
        if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
                n = sqlite3_column_int(st, 0);
        sqlite3_finalize(st);
        sqlite3_close(db);
        return n;
}

static void add_some(struct af_ledger *l, int n) {
        struct af_ledger_event e = {.kind = AF_LEDGER_COMPILE, .wall_s = 17, .run_us = 5, .peer_uid = 1000, .text = "it's \"quoted\""};

        memset(e.kernel.bytes, 7, sizeof(e.kernel.bytes));
        for (int i = 0; i < n; i++)
                af_ledger_add(l, &e);
}

Test(ledger, close_writes_what_waits, .init = setup, .fini = teardown) {
        struct af_ledger *l;

        cr_assert_eq(af_ledger_open(path, &l), 0);
        add_some(l, 100);
        af_ledger_close(l);
        cr_assert_eq(count("kind='compile' AND wall_s=17 AND fragment IS NULL AND length(kernel)=32 AND text LIKE 'it''s%'"), 100);
}

Test(ledger, a_damaged_file_goes_aside, .init = setup, .fini = teardown) {
        struct af_ledger *l;
        FILE *f = fopen(path, "w");

        for (int i = 0; i < 10000; i++)
                fputs("not a database ", f);
        fclose(f);
        cr_assert_eq(af_ledger_open(path, &l), 0);
        add_some(l, 3);
        af_ledger_close(l);
        cr_assert_eq(count("1"), 3);
}

Test(ledger, a_path_that_cannot_be_opened_harms_nothing, .init = setup, .fini = teardown) {
        struct af_ledger *l;
        char bad[5000];

        snprintf(bad, sizeof(bad), "%s/none/ledger.sqlite", dir);
        cr_assert_eq(af_ledger_open(bad, &l), 0);
        add_some(l, 3);
        af_ledger_close(l);
}

Test(ledger, null_is_accepted) {
        af_ledger_add(NULL, &(struct af_ledger_event){0});
        af_ledger_close(NULL);
        cr_assert_eq(af_ledger_dropped(NULL), 0u);
}

/* ---- counts and questions ---- */

struct answer {
        bool called;
        int r;
        char *json; /* malloc'd */
};

static void on_answer(void *userdata, int r, const char *json, size_t n) {
        struct answer *a = userdata;

        a->called = true;
        a->r = r;
        a->json = strndup(json ? json : "", n);
}

static struct answer ask(struct af_ledger *l, const struct af_ledger_query *q) {
        struct answer a = {0};
        struct pollfd p = {.fd = af_ledger_fd(l), .events = POLLIN};

        cr_assert_eq(af_ledger_ask(l, q, on_answer, &a), 0);
        while (!a.called && poll(&p, 1, 60000) == 1)
                af_ledger_dispatch(l);
        cr_assert(a.called);
        cr_assert_eq(a.r, 0);
        return a;
}

static struct af_digest digest_of(uint8_t x) {
        struct af_digest d;

        memset(d.bytes, x, sizeof(d.bytes));
        return d;
}

static void hits(struct af_ledger *l, uint8_t fragment, uint8_t environment, unsigned n) {
        struct af_digest f = digest_of(fragment), e = digest_of(environment);

        for (unsigned i = 0; i < n; i++)
                af_ledger_count(l, &f, &e, &(struct af_ledger_use){.n_hits = 1});
}

static const char *at(const char *json, const char *what) {
        const char *p = strstr(json, what);

        cr_assert(p, "%s in %s", what, json);
        return p;
}

Test(ledger, hits_are_summed_and_ranked, .init = setup, .fini = teardown) {
        struct af_ledger *l;
        struct answer a;

        cr_assert_eq(af_ledger_open(path, &l), 0);
        hits(l, 1, 7, 1000);
        hits(l, 2, 7, 3000);
        hits(l, 2, 8, 5);
        a = ask(l, &(struct af_ledger_query){.question = AF_LEDGER_TOP, .limit = 10});
        cr_expect_lt(at(a.json, "\"hits\":3005"), at(a.json, "\"hits\":1000"));
        at(a.json, "\"environments\":2");
        free(a.json);
        hits(l, 1, 7, 4000);
        a = ask(l, &(struct af_ledger_query){.question = AF_LEDGER_TOP, .limit = 1});
        at(a.json, "\"hits\":5000");
        cr_expect_null(strstr(a.json, "3005"));
        free(a.json);
        af_ledger_close(l);
        cr_expect_eq(count("1"), 0);
}

Test(ledger, history_is_filtered, .init = setup, .fini = teardown) {
        struct af_ledger_event e = {.kind = AF_LEDGER_MISS, .fragment = digest_of(0xab), .wall_s = 100, .peer_uid = 5, .text = "because"};
        struct af_ledger_query q = {.question = AF_LEDGER_HISTORY, .kind = -1, .uid = -1, .limit = 10};
        struct af_ledger *l;
        struct answer a;

        cr_assert_eq(af_ledger_open(path, &l), 0);
        add_some(l, 3);
        af_ledger_add(l, &e);
        af_ledger_describe(l, &e.fragment, "abs relu");
        q.kind = AF_LEDGER_MISS;
        a = ask(l, &q);
        at(a.json, "\"text\":\"because\"");
        at(a.json, "\"words\":\"abs relu\"");
        cr_expect_null(strstr(a.json, "compile"));
        free(a.json);
        q.kind = -1;
        q.fragment[0] = 0xab;
        q.n_fragment = 1;
        a = ask(l, &q);
        at(a.json, "because");
        cr_expect_null(strstr(a.json, "compile"));
        free(a.json);
        q.n_fragment = 0;
        q.since_s = 101;
        a = ask(l, &q);
        cr_expect_str_eq(a.json, "{\"events\":[]}");
        free(a.json);
        q = (struct af_ledger_query){.question = AF_LEDGER_HISTORY, .kind = -1, .uid = 1000, .limit = 2};
        a = ask(l, &q);
        cr_expect_null(strstr(strstr(strstr(a.json, "\"id\"") + 1, "\"id\"") + 1, "\"id\""), "%s", a.json);
        free(a.json);
        af_ledger_close(l);
}

Test(ledger, the_nearest_fragment, .init = setup, .fini = teardown) {
        struct af_ledger_query q = {.question = AF_LEDGER_NEAREST, .words = "abs add relu float32[4,8]"};
        struct af_digest one = digest_of(1), two = digest_of(2), self = digest_of(3);
        struct af_ledger *l;
        struct answer a;

        memset(q.fragment, 3, sizeof(q.fragment));
        cr_assert_eq(af_ledger_open(path, &l), 0);
        a = ask(l, &q);
        cr_expect_str_eq(a.json, "{}");
        free(a.json);
        af_ledger_describe(l, &one, "softmax float16[7]");
        af_ledger_describe(l, &two, "abs add relu float32[4,16]");
        af_ledger_describe(l, &self, "abs add relu float32[4,8]");
        a = ask(l, &q);
        at(a.json, "\"fragment\":\"0202");
        at(a.json, "\"likeness\":750");
        free(a.json);
        af_ledger_close(l);
}

Test(ledger, a_summary, .init = setup, .fini = teardown) {
        struct af_digest f = digest_of(1), env = digest_of(2);
        struct af_ledger *l;
        struct answer a;

        cr_assert_eq(af_ledger_open(path, &l), 0);
        af_ledger_stage(l, &f, &env, NULL, "fuse", 100);
        af_ledger_stage(l, &f, &env, NULL, "fuse", 300);
        af_ledger_environment(l, &env, "Ascend910B2", "host", "g++ \"12\"");
        af_ledger_environment(l, &env, "Ascend910B2", "host", "g++ \"12\"");
        hits(l, 1, 2, 1);
        a = ask(l, &(struct af_ledger_query){.question = AF_LEDGER_SUMMARY});
        at(a.json, "{\"stage\":\"fuse\",\"n\":2,\"us\":400,\"mean_us\":200,\"max_us\":300}");
        at(a.json, "\"version\":\"g++ \\\"12\\\"\"");
        at(a.json, "\"fragments\":1}");
        free(a.json);
        af_ledger_close(l);
}

Test(ledger, an_older_file_is_read_on, .init = setup, .fini = teardown) {
        struct af_ledger *l;
        struct answer a;
        sqlite3 *db;

        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        cr_assert_eq(sqlite3_exec(db,
                                  "CREATE TABLE event(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, wall_s INTEGER NOT NULL, fragment BLOB,"
                                  "environment BLOB, kernel BLOB, queued_us INTEGER, run_us INTEGER, peer_uid INTEGER, peer_pid INTEGER,"
                                  "code INTEGER, text TEXT); INSERT INTO event(kind, wall_s, text) VALUES('hit', 5, 'old');",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
        sqlite3_close(db);
        cr_assert_eq(af_ledger_open(path, &l), 0);
        a = ask(l, &(struct af_ledger_query){.question = AF_LEDGER_HISTORY, .kind = -1, .uid = -1, .limit = 10});
        at(a.json, "\"text\":\"old\"");
        free(a.json);
        af_ledger_close(l);
}

Test(ledger, a_question_to_a_ledger_that_is_off, .init = setup, .fini = teardown) {
        struct answer a = {0};
        struct af_ledger *l;
        char bad[5000];
        int r;

        snprintf(bad, sizeof(bad), "%s/none/ledger.sqlite", dir);
        cr_assert_eq(af_ledger_open(bad, &l), 0);
        r = af_ledger_ask(l, &(struct af_ledger_query){.question = AF_LEDGER_SUMMARY}, on_answer, &a);
        cr_expect(r == 0 || r == -EIO);
        af_ledger_close(l);
        cr_expect_eq(a.called, r == 0);
        cr_expect(r || a.r < 0);
        free(a.json);
        cr_expect_eq(af_ledger_ask(NULL, &(struct af_ledger_query){0}, on_answer, &a), -EIO);
}
