/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <string.h>

#include "tools/args.h"

static const struct af_option options[] = {
        AF_OPTIONS_COMMON,
        {'v', "verbose", AF_OPTION_FLAG, NULL, "say more"},
        {'n', "number", AF_OPTION_NUMBER, "N", "a number"},
        {'o', "output", AF_OPTION_TEXT, "FILE", "a file"},
        {'i', "input", AF_OPTION_LIST, "NAME=FILE", "inputs"},
        {0},
};
static const struct af_command command = {
        .name = "test", .operands = "A [B]", .summary = "tests", .options = options, .min_operands = 1, .max_operands = 2};

static int parse(struct af_args *args, int n, const char *const *words) {
        return af_args_parse(&command, n, (char **)words, args);
}

Test(args, options_and_operands_in_any_order) {
        const char *words[] = {"a", "-vn", "12", "--output=x y", "-iq=1", "--input", "r=2", "--", "-b"};
        struct af_args args;
        cr_assert_eq(parse(&args, AF_ARRAY_SIZE(words), words), 0);
        cr_assert_eq(args.n_operands, 2);
        cr_assert_str_eq(args.operands[0], "a");
        cr_assert_str_eq(args.operands[1], "-b");
        cr_assert(af_args_flag(&args, "verbose"));
        cr_assert(!af_args_flag(&args, "json"));
        cr_assert_eq(af_args_number(&args, "number", 5), 12);
        cr_assert_str_eq(af_args_text(&args, "output"), "x y");
        cr_assert_str_eq(af_args_list(&args, "input", 0), "q=1");
        cr_assert_str_eq(af_args_list(&args, "input", 1), "r=2");
        cr_assert_null(af_args_list(&args, "input", 2));
        af_args_deinit(&args);
}

Test(args, defaults) {
        const char *words[] = {"-"};
        struct af_args args;
        cr_assert_eq(parse(&args, 1, words), 0);
        cr_assert_str_eq(args.operands[0], "-");
        cr_assert_eq(af_args_number(&args, "number", 5), 5);
        cr_assert_null(af_args_text(&args, "output"));
        af_args_deinit(&args);
}

Test(args, mistakes, .init = cr_redirect_stderr) {
        static const char *const lines[][4] = {
                {"--bogus", "a"},     {"a", "-x"},       {"a", "-n"}, {"a", "-n", "1x"}, {"a", "-n", "-1"},
                {"a", "--verbose=1"}, {"a", "--output"}, {NULL},      {"a", "b", "c"},   {"a", "-n", "99999999999999999999"}};
        for (size_t i = 0; i < AF_ARRAY_SIZE(lines); i++) {
                struct af_args args;
                int n = 0;
                while (n < 4 && lines[i][n])
                        n++;
                cr_assert_eq(parse(&args, n, lines[i]), 1, "line %zu", i);
        }
}

Test(args, help, .init = cr_redirect_stdout) {
        const char *words[] = {"--bogus-is-not-reached", "--help"};
        struct af_args args;
        cr_assert_eq(parse(&args, 1, words + 1), 2);
        fflush(stdout);
}
