/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/unit/proto/fragment_equal.h"
#include "tests/unit/proto/random.h"

#define HEAD "{\"schema\":\"autofuse.fragment/1\","
#define TAIL "\"nodes\":[],\"outputs\":[]}"

struct parsed {
        struct af_arena arena;
        struct af_fragment f;
        char *report;
        int r;
};

/* Parses a copy without a zero byte in a block of its own, so that a read beyond the end is seen. */
static struct parsed parse_n(const char *text, size_t n) {
        struct parsed p = {0};
        struct af_diags d = {0};
        struct af_buf b = AF_BUF_INIT;
        char *copy = malloc(n ? n : 1);

        memcpy(copy, text, n);
        af_arena_init(&p.arena, 0);
        cr_assert_eq(af_fragment_init(&p.f, &p.arena), 0);
        p.r = af_fragment_parse(&p.f, copy, n, &d);
        af_diags_format(&d, &b);
        p.report = (char *)af_buf_take(&b, NULL);
        cr_assert_eq(p.r != 0, d.n_errors > 0, "%s", p.report);
        af_diags_deinit(&d);
        free(copy);
        return p;
}

static void done(struct parsed *p) {
        free(p->report);
        af_arena_deinit(&p->arena);
}

static void expect(const char *text, const char *report) {
        struct parsed p = parse_n(text, strlen(text));

        cr_assert_str_eq(p.report, report, "%s gave:\n%s", text, p.report);
        done(&p);
}

static void expect_in(const char *text, const char *part) {
        struct parsed p = parse_n(text, strlen(text));

        cr_assert_not_null(strstr(p.report, part), "%s gave:\n%s", text, p.report);
        done(&p);
}

static void expect_full_header(const struct af_fragment *f) {
        cr_assert_str_eq(f->name, "full");
        cr_assert_str_eq(f->soc, "Ascend910B2");
        cr_assert_str_eq(f->toolchain, "host");
        cr_assert_eq(f->twin, AF_TWIN_CHECKED);
        cr_assert_eq(f->numerics, AF_NUMERICS_FAST);
        cr_assert_eq(f->n_symbols, 2);
        cr_assert_eq(f->symbols[0].max, 9007199254740993);
        cr_assert_eq(f->symbols[0].hint, 128);
        cr_assert_eq(f->symbols[0].multiple_of, 16);
        cr_assert_eq(f->symbols[1].min, 0);
        cr_assert_eq(f->symbols[1].max, INT64_MAX);
        cr_assert_eq(f->symbols[1].hint, -1);
}

static void expect_full_inputs(const struct af_fragment *f) {
        int64_t v;
        const struct af_fragment_input *x = &f->inputs[0];
        cr_assert_eq(x->t.dtype, AF_DTYPE_FLOAT16);
        cr_assert_eq(x->t.rank, 3);
        cr_assert(!af_expr_is_const(&f->exprs, x->t.dims[0], &v));
        cr_assert(af_expr_is_const(&f->exprs, x->t.dims[1], &v) && v == 50);
        cr_assert(af_expr_is_const(&f->exprs, x->t.dims[2], &v) && v == 9007199254740993);
        cr_assert(x->t.has_strides);
        cr_assert_eq(x->align, 32);
        cr_assert_str_eq(x->buffer, "pool");
        cr_assert(!x->host);
        cr_assert(f->inputs[1].host);
        cr_assert(!f->inputs[1].t.has_strides);
}

static void expect_full_constants(const struct af_fragment *f) {
        cr_assert_eq(f->n_constants, 5);
        cr_assert_arr_eq(f->constants[0].bytes, "\0\0\x80\x3f", 4);
        cr_assert_arr_eq(f->constants[1].bytes, "\1\0\2\0\3\0\4\0\5\0\6\0", 12);
        cr_assert_arr_eq(f->constants[2].bytes, f->constants[1].bytes, 12);
        cr_assert_arr_eq(f->constants[3].bytes, "\1\0\1", 3);
        cr_assert_arr_eq(f->constants[4].bytes, "\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x7f", 16);
}

static void expect_full_node(const struct af_fragment *f) {
        const struct af_fragment_node *n = &f->nodes[0];
        cr_assert_str_eq(n->origin, "aten.foo");
        cr_assert_eq(n->n_inputs, 2);
        cr_assert_eq(n->n_attrs, AF_N_ATTRS);
        cr_assert_eq(n->attrs[AF_ATTR_AXES].n, 2);
        cr_assert_eq(n->attrs[AF_ATTR_AXES].ints[1], -1);
        cr_assert_eq(n->attrs[AF_ATTR_KEEPDIMS].i, 1);
        cr_assert_eq(n->attrs[AF_ATTR_AXIS].i, -2);
        cr_assert(!n->attrs[AF_ATTR_ALPHA].is_int);
        cr_assert_eq(n->attrs[AF_ATTR_ALPHA].f, 0.5);
        cr_assert(n->attrs[AF_ATTR_MIN].is_int);
        cr_assert_eq(n->attrs[AF_ATTR_MIN].i, INT64_MAX);
        cr_assert_eq(n->attrs[AF_ATTR_MIN].f, 0x1p63);
        cr_assert(n->attrs[AF_ATTR_MAX].f != n->attrs[AF_ATTR_MAX].f);
        cr_assert_eq(n->attrs[AF_ATTR_SHAPE].n, 2);
        cr_assert_str_eq(n->attrs[AF_ATTR_APPROXIMATE].s, "tanh");
        cr_assert_eq(n->attrs[AF_ATTR_EFFECTS].i, 1);
        cr_assert_eq(n->attrs[AF_ATTR_PERM].ints[0], 1);
        cr_assert_eq(n->attrs[AF_ATTR_STOPS].n, 2);
        cr_assert_eq(n->attrs[AF_ATTR_STEPS].ints[1], -2);
        cr_assert_eq(n->attrs[AF_ATTR_SIZES].n, 2);
        cr_assert(n->attrs[AF_ATTR_STEP].is_int);
        cr_assert_eq(n->attrs[AF_ATTR_STEP].i, -1);
        cr_assert_eq(n->attrs[AF_ATTR_REVERSE].i, 0);
        cr_assert_eq(n->attrs[AF_ATTR_EPSILON].f, 1e-6);
        cr_assert_eq(n->attrs[AF_ATTR_DIAGONAL].i, -3);
        cr_assert(n->attrs[AF_ATTR_GAMMA].f != n->attrs[AF_ATTR_GAMMA].f);
        cr_assert_eq(n->n_outputs, 2);
        cr_assert(n->outputs[1].has_strides);
}

Test(fragment_parse, reads_every_field) {
        struct parsed p = parse_n(
#include "tests/unit/proto/full_fragment.inc"
                , sizeof(
#include "tests/unit/proto/full_fragment.inc"
                          ) -
                          1);
        cr_assert_eq(p.r, 0, "%s", p.report);
        expect_full_header(&p.f);
        expect_full_inputs(&p.f);
        expect_full_constants(&p.f);
        expect_full_node(&p.f);
        const struct af_fragment *f = &p.f;
        cr_assert_eq(f->n_outputs, 2);
        cr_assert(!f->outputs[0].has_strides);
        cr_assert_str_eq(f->outputs[1].alias_of, "x");
        cr_assert_eq(f->outputs[1].n_strides, 1);
        cr_assert_eq(f->n_values, 9);
        done(&p);
}

Test(fragment_parse, defaults) {
        struct parsed p = parse_n(HEAD TAIL, strlen(HEAD TAIL));

        cr_assert_eq(p.r, 0, "%s", p.report);
        cr_assert_str_eq(p.f.name, "");
        cr_assert_null(p.f.soc);
        cr_assert_null(p.f.toolchain);
        cr_assert_eq(p.f.numerics, AF_NUMERICS_STRICT);
        cr_assert_eq(p.f.twin, AF_TWIN_DEFAULT);
        cr_assert_eq(p.f.n_nodes, 0);
        done(&p);
        expect(HEAD "\"name\":\"\"," TAIL, "");
}

Test(fragment_parse, names_node_and_field_several_per_run) {
        expect(HEAD
               "\"inputs\":[{\"name\":\"x\",\"dtype\":\"floot32\",\"shape\":[-1,\"s9\"],\"strides\":[1],\"align\":3}],"
               "\"nodes\":[{\"name\":\"n0\",\"op\":\"add\",\"inputs\":[\"x\",\"\"],\"attrs\":{\"foo\":1,\"axes\":[1,\"z\"],\"min\":\"oo\"},"
               "\"outputs\":[{\"name\":\"t\",\"dtype\":5,\"shape\":[]}]},4],\"outputs\":[{\"alias\":\"x\"},7]}",
               "error: inputs[0] \"x\".dtype: floot32 is no dtype (bool int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64)\n"
               "error: inputs[0] \"x\".shape[0]: is -1: negative\n"
               "error: inputs[0] \"x\".shape[1]: \"s9\" uses a name that is not among the symbols\n"
               "error: inputs[0] \"x\".strides: 1 strides for 2 axes\n"
               "error: inputs[0] \"x\".align: is 3: no power of two\n"
               "error: nodes[0] \"n0\".inputs[1]: is empty\n"
               "error: nodes[0] \"n0\".attrs: unknown attribute \"foo\"\n"
               "error: nodes[0] \"n0\".attrs.axes[1]: is not an integer\n"
               "error: nodes[0] \"n0\".attrs.min: is not a finite number (infinities and NaN are \"inf\", \"-inf\" and \"nan\")\n"
               "error: nodes[0] \"n0\".outputs[0].dtype: this is no dtype (bool int8 uint8 int16 int32 int64 float16 bfloat16 float32 "
               "float64)\n"
               "error: nodes[1]: is not an object\n"
               "error: outputs[0]: unknown key \"alias\" (known: value strides alias_of)\n"
               "error: outputs[0].value: is missing\n"
               "error: outputs[1]: is not an object\n");
}

Test(fragment_parse, refuses_bad_heads) {
        expect("[]", "error: fragment: is not an object\n");
        expect("12", "error: fragment: is not an object\n");
        expect("{}", "error: schema: is missing\nerror: nodes: is missing\nerror: outputs: is missing\n");
        expect("{\"schema\":\"autofuse.fragment/2\"," TAIL, "error: schema: must be \"autofuse.fragment/1\"\n");
        expect_in(HEAD "\"nam\":1," TAIL, "error: fragment: unknown key \"nam\" (known: schema name target");
        expect(HEAD "\"numerics\":\"exact\"," TAIL, "error: numerics: must be \"strict\" or \"fast\"\n");
        expect(HEAD "\"numerics\":null," TAIL, "error: numerics: must be \"strict\" or \"fast\"\n");
        expect(HEAD "\"target\":7," TAIL, "error: target: is not an object\n");
        expect(HEAD "\"target\":{\"soc\":\"\",\"twin\":\"slow\",\"toolchain\":4}," TAIL,
               "error: target.soc: is empty\nerror: target.toolchain: is not a string\nerror: target.twin: must be \"fast\" or "
               "\"checked\"\n");
        expect(HEAD "\"name\":7," TAIL, "error: name: is not a string\n");
        expect(HEAD "\"inputs\":{}," TAIL, "error: inputs: is not a list\n");
        expect_in(HEAD TAIL "x", "bytes after the end of the text");
        expect_in(HEAD "\"name\":\"a\",\"name\":\"b\"," TAIL, "duplicate key");
        expect_in(HEAD "\"name\":\"a\\u0000\"," TAIL, "in a string");
}

Test(fragment_parse, refuses_bad_symbols) {
        expect(HEAD "\"symbols\":[{\"name\":\"max\"},{\"name\":\"a b\"},{\"name\":\"s0\",\"min\":-1},{\"name\":\"s1\",\"min\":5,\"max\":4},"
                    "{\"name\":\"s2\",\"multiple_of\":0},{\"name\":\"s3\",\"max\":\"9223372036854775808\"},{\"name\":\"s4\",\"hint\":"
                    "\"1e3\"}]," TAIL,
               "error: symbols[0] \"max\".name: is no identifier, or max or min\n"
               "error: symbols[0] \"a b\".name: is no identifier, or max or min\n"
               "error: symbols[2] \"s0\".min: is -1, must be 0 .. 9223372036854775807\n"
               "error: symbols[3] \"s1\".max: is 4, must be 5 .. 9223372036854775807\n"
               "error: symbols[4] \"s2\".multiple_of: is 0, must be 1 .. 9223372036854775807\n"
               "error: symbols[5] \"s3\".max: does not fit 64 bits\n"
               "error: symbols[6] \"s4\".hint: is not an integer\n");
        expect_in(HEAD "\"symbols\":[{\"name\":\"s0\"},{\"name\":\"s0\"}]," TAIL, "symbols[1] \"s0\".name: is that of symbols[0] too");
}

#define INPUT(fields) HEAD "\"inputs\":[{\"name\":\"x\",\"dtype\":\"int8\"," fields "}]," TAIL

Test(fragment_parse, refuses_bad_shapes) {
        expect(INPUT("\"shape\":5"), "error: inputs[0] \"x\".shape: is not a list\n");
        expect(INPUT("\"shape\":[true]"), "error: inputs[0] \"x\".shape[0]: is neither an integer nor an expression\n");
        expect(INPUT("\"shape\":[1.5]"), "error: inputs[0] \"x\".shape[0]: is not an integer\n");
        expect(INPUT("\"shape\":[1e300]"), "error: inputs[0] \"x\".shape[0]: does not fit 64 bits\n");
        expect(INPUT("\"shape\":[\"2*(3\"]"),
               "error: inputs[0] \"x\".shape[0]: \"2*(3\" is not an expression of integers, symbols, + - * // %, max and min\n");
        expect(INPUT("\"shape\":[\"1//0\"]"), "error: inputs[0] \"x\".shape[0]: \"1//0\" divides by zero\n");
        expect(INPUT("\"shape\":[\"3-4\"]"), "error: inputs[0] \"x\".shape[0]: is -1: negative\n");
        expect(INPUT("\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), "error: inputs[0] \"x\".shape: more than 16 axes\n");
        expect(INPUT("\"shape\":[2],\"strides\":[-1]"), "error: inputs[0] \"x\".strides[0]: is -1: negative\n");
        expect(INPUT("\"shape\":[2],\"offset\":-1"), "error: inputs[0] \"x\".offset: is -1: negative\n");
        expect(INPUT("\"shape\":[2],\"host\":true"), "error: inputs[0] \"x\".host: a host scalar has shape []\n");
        expect(INPUT("\"shape\":[],\"host\":1"), "error: inputs[0] \"x\".host: is neither true nor false\n");
        expect(INPUT("\"shape\":[],\"align\":8192"), "error: inputs[0] \"x\".align: is 8192, must be 1 .. 4096\n");
        expect(INPUT("\"shape\":[\"12\",128.0,1e2,\"2*3\"]"), "");
}

#define CONSTANT(fields) HEAD "\"constants\":[{\"name\":\"c\"," fields "}]," TAIL

Test(fragment_parse, refuses_bad_constants) {
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[]"),
               "error: constants[0] \"c\": has neither bits and value; it needs one of them\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[],\"bits\":\"00\",\"value\":0"),
               "error: constants[0] \"c\": has both bits and value; it needs one of them\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2],\"bits\":\"00\""),
               "error: constants[0] \"c\".bits: 2 hex digits where dtype and shape make 4\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[],\"bits\":\"0g\""),
               "error: constants[0] \"c\".bits: holds something else than hex digits\n");
        expect(CONSTANT("\"dtype\":\"bool\",\"shape\":[],\"bits\":\"02\""),
               "error: constants[0] \"c\".bits: byte 0 of a bool is neither 00 nor 01\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[],\"bits\":7"), "error: constants[0] \"c\".bits: is not a string\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[],\"value\":[1]"),
               "error: constants[0] \"c\".value: is a list; the shape has no axis\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2,2],\"value\":[[1,2],[3]]"),
               "error: constants[0] \"c\".value[1]: 1 elements where the shape has 2\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2,2],\"value\":[[1,2],3]"),
               "error: constants[0] \"c\".value[1]: is not a list; the shape has 2 axes\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2,2],\"value\":[1,2,3]"),
               "error: constants[0] \"c\".value: 3 elements where the shape has 4\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2],\"value\":[1,{}]"), "error: constants[0] \"c\".value[1]: is not a number\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2],\"value\":[200,1.5]"),
               "error: constants[0] \"c\".value[0]: does not fit int8\nerror: constants[0] \"c\".value[1]: is no int8 number\n");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[],\"value\":true"),
               "error: constants[0] \"c\".value: a bool where a number is expected\n");
        expect(CONSTANT("\"dtype\":\"float32\",\"shape\":[],\"value\":\"nan\""),
               "error: constants[0] \"c\".value: is no float32 number (infinities and NaN go into bits)\n");
        expect(CONSTANT("\"dtype\":\"float16\",\"shape\":[],\"value\":1e5"), "error: constants[0] \"c\".value: does not fit float16\n");
        expect_in(CONSTANT("\"dtype\":\"int8\",\"shape\":[33554433],\"value\":0"), "constants of more than 33554432 bytes together");
        expect_in(CONSTANT("\"dtype\":\"int8\",\"shape\":[\"9223372036854775807\",\"9223372036854775807\"],\"value\":0"),
                  "constants of more than");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[\"9223372036854775807\",\"9223372036854775807\",0],\"value\":[]"), "");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[0,2],\"value\":[]"), "");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[2,0],\"value\":[[],[]]"), "");
        expect(CONSTANT("\"dtype\":\"int8\",\"shape\":[0],\"value\":\"x\""), "error: constants[0] \"c\".value: is no int8 number\n");
        expect_in("{\"schema\":\"autofuse.fragment/"
                  "1\",\"symbols\":[{\"name\":\"s\"}],\"constants\":[{\"name\":\"c\",\"dtype\":\"int8\",\"shape\":[\"s\"],"
                  "\"value\":1}]," TAIL,
                  "constants[0] \"c\".shape: a constant's dimensions are integers");
}

Test(fragment_parse, names_may_hold_anything_but_too_much) {
        char text[4000], name[1100];
        struct parsed p;

        memset(name, 'n', sizeof(name));
        snprintf(text, sizeof(text), HEAD "\"nodes\":[],\"outputs\":[\"%.1024s\"]}", name);
        p = parse_n(text, strlen(text));
        cr_assert_eq(p.r, 0);
        done(&p);
        snprintf(text, sizeof(text), HEAD "\"nodes\":[],\"outputs\":[\"%.1025s\"]}", name);
        expect(text, "error: outputs[0]: is longer than 1024 bytes\n");
        p = parse_n(HEAD "\"nodes\":[],\"outputs\":[\"../a\\n\\\"\\u00e9 \"]}",
                    strlen(HEAD "\"nodes\":[],\"outputs\":[\"../a\\n\\\"\\u00e9 \"]}"));
        cr_assert_eq(p.r, 0);
        cr_assert_str_eq(p.f.outputs[0].value, "../a\n\"\xc3\xa9 ");
        done(&p);
}

Test(fragment_parse, floats_do_not_depend_on_the_locale) {
        /* Where such a locale is installed. */
        if (!setlocale(LC_ALL, "de_DE.UTF-8"))
                setlocale(LC_ALL, "fr_FR.UTF-8");
        const char *text = CONSTANT("\"dtype\":\"float32\",\"shape\":[],\"value\":0.5");
        struct parsed p = parse_n(text, strlen(text));
        cr_assert_eq(p.r, 0, "%s", p.report);
        cr_assert_arr_eq(p.f.constants[0].bytes, "\0\0\0\x3f", 4);
        done(&p);
}

/* A text of n bytes that `fill` writes must be refused with `part` in the message, within seconds. */
static void expect_quick(char *text, size_t n, const char *part) {
        uint64_t begin = af_clock_now_us();
        struct parsed p = parse_n(text, n);

        cr_assert_eq(p.r, AF_FRAGMENT_E_INVALID);
        cr_assert_not_null(strstr(p.report, part), "%.500s", p.report);
        cr_assert_lt(af_clock_now_us() - begin, 20000000);
        done(&p);
        free(text);
}

Test(fragment_parse, big_and_deep_texts_end_quickly) {
        size_t n = 50u << 20;
        char *text = malloc(n);

        memset(text, '[', n);
        expect_quick(text, n, "nested deeper than 32 levels");
        text = malloc(n);
        memset(text, ' ', n);
        expect_quick(text, n, "the text is empty");
        text = malloc(n);
        for (size_t i = 0; i < n; i++)
                text[i] = i == 0 ? '[' : i == n - 1 ? ']' : i % 2 ? '0' : ',';
        expect_quick(text, n, "more than 4000000 values");
        text = malloc(n);
        memset(text, 'x', n);
        memcpy(text, HEAD "\"name\":\"", sizeof(HEAD "\"name\":\"") - 1);
        memcpy(text + n - sizeof("\"," TAIL) + 1, "\"," TAIL, sizeof("\"," TAIL) - 1);
        expect_quick(text, n, "name: is longer than 1024 bytes");
        n = (size_t)AF_LIMIT_TEXT_BYTES + 1;
        text = calloc(1, n);
        expect_quick(text, n, "text of more than 67108864 bytes");
}

Test(fragment_parse, time_is_linear_in_the_number_of_nodes) {
        struct af_buf b = AF_BUF_INIT;
        uint32_t n = 100000;

        af_buf_put_str(&b, HEAD "\"inputs\":[{\"name\":\"t0\",\"dtype\":\"float32\",\"shape\":[8]}],\"nodes\":[");
        for (uint32_t i = 0; i < n; i++)
                af_buf_printf(&b,
                              "%s{\"name\":\"n%u\",\"op\":\"relu\",\"inputs\":[\"t%u\"],\"outputs\":[{\"name\":\"t%u\",\"dtype\":"
                              "\"float32\",\"shape\":[8]}]}",
                              i ? "," : "", i, i, i + 1);
        af_buf_put_str(&b, "],\"outputs\":[\"t1\"]}");
        uint64_t begin = af_clock_now_us();
        struct parsed p = parse_n((const char *)b.data, b.size);
        cr_assert_eq(p.r, 0, "%.300s", p.report);
        cr_assert_eq(p.f.n_nodes, n);
        cr_assert_lt(af_clock_now_us() - begin, 20000000);
        done(&p);
        af_buf_deinit(&b);
}

Test(fragment_parse, many_mistakes_are_counted) {
        struct af_buf b = AF_BUF_INIT;

        af_buf_put_str(&b, HEAD "\"nodes\":[");
        for (uint32_t i = 0; i < 1000; i++)
                af_buf_put_str(&b, i ? ",5" : "5");
        af_buf_put_str(&b, "],\"outputs\":[]}");
        struct parsed p = parse_n((const char *)b.data, b.size);
        cr_assert_not_null(strstr(p.report, "nodes[63]: is not an object\nnote: 936 more not shown\n"), "%s", p.report);
        done(&p);
        af_buf_deinit(&b);
}

Test(fragment_parse, without_a_sink_it_still_refuses) {
        struct af_arena arena;
        struct af_fragment f;

        af_arena_init(&arena, 0);
        cr_assert_eq(af_fragment_init(&f, &arena), 0);
        cr_assert_eq(af_fragment_parse(&f, "{}", 2, NULL), AF_FRAGMENT_E_INVALID);
        cr_assert_eq(af_fragment_parse(&f, "{", 1, NULL), AF_FRAGMENT_E_INVALID);
        af_arena_deinit(&arena);
}

Test(fragment_parse, survives_any_text) {
        static const char full[] =
#include "tests/unit/proto/full_fragment.inc"
                ;
        static const char *const tokens[] = {
                "{", "}", "[", "]", ",", ":", "\"", "0", "-1", "1e9", "null", "true", "\"s0\"", "\\u0000", "\"9223372036854775807\""};
        struct random r = random_make("fragment text");
        uint32_t n_valid = 0;

        for (int round = 0; round < 20000; round++) {
                char text[sizeof(full) + 64];
                size_t n = sizeof(full) - 1;
                memcpy(text, full, n);
                for (uint32_t i = 0; i < 1 + random_below(&r, 2); i++) {
                        const char *token = tokens[random_below(&r, AF_ARRAY_SIZE(tokens))];
                        size_t at = random_u64(&r) % n, cut = random_below(&r, 4), add = strlen(token);
                        cut = AF_MIN(cut, n - at);
                        memmove(text + at + add, text + at + cut, n - at - cut);
                        memcpy(text + at, token, add);
                        n += add - cut;
                }
                struct parsed p = parse_n(text, n);
                cr_assert(p.r == 0 || p.r == AF_FRAGMENT_E_INVALID);
                if (p.r == 0) {
                        struct af_buf printed = AF_BUF_INIT;
                        af_fragment_print(&p.f, 0, &printed);
                        struct parsed again = parse_n((const char *)printed.data, printed.size);
                        cr_assert_eq(again.r, 0, "seed %llu: %s", (unsigned long long)r.seed, again.report);
                        cr_assert(same_fragment(&p.f, &again.f), "seed %llu", (unsigned long long)r.seed);
                        done(&again);
                        af_buf_deinit(&printed);
                        n_valid++;
                }
                done(&p);
        }
        cr_assert_gt(n_valid, 0);
}
