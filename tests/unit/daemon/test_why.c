/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/why.h"

/* "name=value …" as a record. */
static struct af_blob *record(const char *text) {
        struct af_buf buf = AF_BUF_INIT;
        char copy[4096], *save = NULL;

        snprintf(copy, sizeof(copy), "%s", text);
        for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
                char *value = strchr(word, '=');

                *value++ = 0;
                af_record_ingredient_write(&buf, word, value);
        }
        return af_blob_take_buf(&buf);
}

static void on_difference(void *userdata, const struct af_ingredient *here, const struct af_ingredient *there) {
        const struct af_ingredient *i = here ? here : there;
        char *out = userdata;

        sprintf(out + strlen(out), "%.*s:%.*s/%.*s ", (int)i->n_name, i->name, here ? (int)here->n_value : 1, here ? here->value : "-",
                there ? (int)there->n_value : 1, there ? there->value : "-");
}

static void expect(const char *here, const char *there, const char *differences, uint32_t n) {
        struct af_blob *a = record(here), *b = record(there);
        char out[4096] = "";

        cr_expect_eq(af_why_compare(a, b, on_difference, out), n, "%s | %s", here, there);
        cr_expect_str_eq(out, differences);
        cr_expect_eq(af_why_compare(a, b, NULL, NULL), n);
        af_blob_unref(a);
        af_blob_unref(b);
}

Test(why, ingredients_are_compared_by_name) {
        expect("a=1 b=2", "a=1 b=2", "", 0);
        expect("a=1 b=2", "b=2 a=1", "", 0);
        expect("a=1 b=2 c=3", "a=1 b=7 c=3", "b:2/7 ", 1);
        expect("a=1 new=2 c=3", "a=1 c=3", "new:2/- ", 1);
        expect("a=1 c=3", "a=1 old=2 c=4", "c:3/4 old:-/2 ", 2);
        expect("", "a=1", "a:-/1 ", 1);
        expect("ab=1 a=b1", "a=b1 ab=1", "", 0);
}

Test(why, a_long_list_is_compared_in_one_pass) {
        struct af_buf a = AF_BUF_INIT, b = AF_BUF_INIT;
        struct af_blob *here, *there;
        char name[32];

        for (int i = 0; i < 5000; i++) {
                snprintf(name, sizeof(name), "file %d", i);
                af_record_ingredient_write(&a, name, "x");
                af_record_ingredient_write(&b, name, i % 1000 == 999 ? "y" : "x");
        }
        here = af_blob_take_buf(&a);
        there = af_blob_take_buf(&b);
        cr_expect_eq(af_why_compare(here, there, NULL, NULL), 5u);
        af_blob_unref(here);
        af_blob_unref(there);
}

Test(why, damage_ends_the_list) {
        struct af_blob *a = record("a=1 b=2");

        for (size_t n = 0; n < a->size; n++) {
                struct af_blob *cut = af_blob_copy(a->data, n);

                cr_expect_leq(af_why_compare(a, cut, NULL, NULL), 4u);
                cr_expect_leq(af_why_compare(cut, a, NULL, NULL), 4u);
                af_blob_unref(cut);
        }
        af_blob_unref(a);
}
