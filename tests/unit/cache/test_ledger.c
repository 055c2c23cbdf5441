/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
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
