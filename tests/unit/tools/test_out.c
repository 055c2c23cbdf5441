/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/out.h"

static void render(const struct af_table *t, char *out, size_t size) {
        FILE *f = fmemopen(out, size, "w");
        af_table_print(t, 1, f);
        fclose(f);
}

Test(out, tables_align_words_left_and_numbers_right) {
        static const char *const cells[] = {"name",   "n",    "size", "why", "α", "1", "2.5 KiB", "1 reason is long",
                                            "longer", "1000", "12 B", ""};
        struct af_table t;
        char text[512] = "";
        af_table_init(&t, cells, 4);
        for (size_t i = 4; i < AF_ARRAY_SIZE(cells); i++)
                af_table_add(&t, "%s", cells[i]);
        render(&t, text, sizeof(text));
        cr_assert_str_eq(text, " name       n     size  why\n α          1  2.5 KiB  1 reason is long\n longer  1000     12 B  \n", "%s",
                         text);
        af_table_deinit(&t);
}

Test(out, units) {
        char s[32];
        cr_assert_str_eq(af_out_bytes(0, s), "0 B");
        cr_assert_str_eq(af_out_bytes(1023, s), "1023 B");
        cr_assert_str_eq(af_out_bytes(1536, s), "1.5 KiB");
        cr_assert_str_eq(af_out_bytes(UINT64_MAX, s), "16.0 EiB");
        cr_assert_str_eq(af_out_us(999, s), "999 us");
        cr_assert_str_eq(af_out_us(1500, s), "1.5 ms");
        cr_assert_str_eq(af_out_us(2500000, s), "2.50 s");
}

Test(out, bars_are_silent_where_no_terminal_is) {
        struct af_bar bar;
        af_bar_start(&bar, "working", 10);
        for (int i = 0; i <= 10; i++)
                af_bar_update(&bar, (uint64_t)i, "note");
        af_bar_end(&bar);
        cr_assert_eq(bar.done, 10);
}
