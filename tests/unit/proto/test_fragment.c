/* SPDX-License-Identifier: Apache-2.0 */
/* Builder and printer: what is built prints, and what is printed parses to the same. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/io.h"
#include "tests/unit/proto/fragment_equal.h"
#include "tests/unit/proto/random.h"

static struct af_arena arena;
static struct af_fragment f;
static struct af_diags diags;

static void set_up(void) {
        af_arena_init(&arena, 0);
        cr_assert_eq(af_fragment_init(&f, &arena), 0);
}

static void tear_down(void) {
        af_diags_deinit(&diags);
        af_arena_deinit(&arena);
}

TestSuite(fragment, .init = set_up, .fini = tear_down);

/* Prints `from`, parses that, compares. */
static void expect_round_trip(const struct af_fragment *from, unsigned indent, const char *what) {
        struct af_buf text = AF_BUF_INIT, report = AF_BUF_INIT;
        struct af_arena other;
        struct af_fragment again;
        struct af_diags d = {0};

        af_arena_init(&other, 0);
        cr_assert_eq(af_fragment_init(&again, &other), 0);
        af_fragment_print(from, indent, &text);
        cr_assert_eq(af_buf_error(&text), 0);
        int r = af_fragment_parse(&again, (const char *)text.data, text.size, &d);
        af_diags_format(&d, &report);
        af_buf_put_u8(&report, 0);
        cr_assert_eq(r, 0, "%s: %s", what, (const char *)report.data);
        cr_assert(same_fragment(from, &again), "%s:\n%.*s", what, (int)text.size, (const char *)text.data);
        af_diags_deinit(&d);
        af_buf_deinit(&text);
        af_buf_deinit(&report);
        af_arena_deinit(&other);
}

static uint32_t number(int64_t v) {
        uint32_t id;

        cr_assert_eq(af_expr_const(&f.exprs, v, &id), 0);
        return id;
}

Test(fragment, samples_round_trip) {
        char path[1024];
        const char *root = getenv("AF_SOURCE_ROOT");
        struct dirent *entry;
        int n = 0;

        snprintf(path, sizeof(path), "%s/examples/fragments", root ? root : ".");
        DIR *dir = opendir(path);
        cr_assert_not_null(dir, "%s", path);
        while ((entry = readdir(dir))) {
                struct af_buf text = AF_BUF_INIT;
                if (!strstr(entry->d_name, ".json"))
                        continue;
                snprintf(path, sizeof(path), "%s/examples/fragments/%s", root ? root : ".", entry->d_name);
                cr_assert_eq(af_io_read_file(path, AF_LIMIT_TEXT_BYTES, &text), 0);
                cr_assert_eq(af_fragment_init(&f, &arena), 0);
                cr_assert_eq(af_fragment_parse(&f, (const char *)text.data, text.size, &diags), 0, "%s", path);
                cr_assert_eq(diags.n_items, 0);
                expect_round_trip(&f, 0, entry->d_name);
                expect_round_trip(&f, 2, entry->d_name);
                af_buf_deinit(&text);
                n++;
        }
        closedir(dir);
        cr_assert_geq(n, 6);
}

static struct af_fragment_tensor tensor(const char *name, enum af_dtype dtype, const uint32_t *dims, uint32_t rank) {
        return (struct af_fragment_tensor){.name = name, .dtype = dtype, .dims = dims, .rank = rank};
}

/* A node with every kind of attribute. dims, strides: of its first output. */
static void add_node(const uint32_t dims[2], const uint32_t strides[2]) {
        const int64_t axes[] = {-1, INT64_MIN, INT64_MAX};
        const char *const inputs[] = {"x", "x", "c"};
        const struct af_attr attrs[] = {
                {.key = AF_ATTR_EFFECTS, .i = 1},
                {.key = AF_ATTR_APPROXIMATE, .s = "tanh"},
                {.key = AF_ATTR_SHAPE, .dims = dims, .n = 2},
                {.key = AF_ATTR_MAX, .f = INFINITY},
                {.key = AF_ATTR_MIN, .f = NAN},
                {.key = AF_ATTR_ALPHA, .f = -0.0},
                {.key = AF_ATTR_AXIS, .i = INT64_MIN},
                {.key = AF_ATTR_KEEPDIMS, .i = 0},
                {.key = AF_ATTR_AXES, .ints = axes, .n = 3},
        };
        struct af_fragment_tensor outputs[2] = {tensor("y", AF_DTYPE_BOOL, dims, 2),
                                                tensor("z\x7f\x01\xc3\xa9", AF_DTYPE_BFLOAT16, NULL, 0)};
        outputs[0].has_strides = true;
        outputs[0].strides = strides;
        const struct af_fragment_node node = {.name = "n/../0",
                                              .op = "opaque",
                                              .origin = "aten::weird",
                                              .inputs = inputs,
                                              .n_inputs = 3,
                                              .attrs = attrs,
                                              .n_attrs = 9,
                                              .outputs = outputs,
                                              .n_outputs = 2};
        cr_assert_eq(af_fragment_add_node(&f, &node, &diags), 0);
}

/* One of everything. */
static void build_all(void) {
        uint32_t s0, twice, dims[2], strides[2];

        f.name = "all";
        f.soc = "Ascend910B2";
        f.toolchain = "host";
        f.twin = AF_TWIN_CHECKED;
        f.numerics = AF_NUMERICS_FAST;
        cr_assert_eq(af_fragment_add_symbol(&f, &(struct af_fragment_symbol){"s0", 1, INT64_MAX, 7, 2}, &diags), 0);
        cr_assert_eq(af_expr_symbol(&f.exprs, 0, &s0), 0);
        cr_assert_eq(af_expr_binary(&f.exprs, AF_EXPR_ADD, s0, s0, &twice), 0);
        dims[0] = twice;
        dims[1] = number(50);
        strides[0] = number(INT64_MAX);
        strides[1] = number(1);
        struct af_fragment_input in = {.t = tensor("x", AF_DTYPE_FLOAT16, dims, 2), .offset = s0, .align = 32, .buffer = "pool \"1\"\n"};
        in.t.has_strides = true;
        in.t.strides = strides;
        cr_assert_eq(af_fragment_add_input(&f, &in, &diags), 0);
        in = (struct af_fragment_input){.t = tensor("lr", AF_DTYPE_FLOAT64, NULL, 0), .offset = number(0), .host = true};
        cr_assert_eq(af_fragment_add_input(&f, &in, &diags), 0);
        dims[0] = number(2);
        struct af_fragment_constant c = {
                .t = tensor("c", AF_DTYPE_INT32, dims, 1), .bytes = (const uint8_t *)"\1\2\3\4\xff\xfe\xfd\xfc", .n_bytes = 8};
        cr_assert_eq(af_fragment_add_constant(&f, &c, &diags), 0);
        add_node(dims, strides);
        cr_assert_eq(af_fragment_add_output(&f, &(struct af_fragment_output){.value = "y"}, &diags), 0);
        const struct af_fragment_output in_place = {.value = "y", .has_strides = true, .strides = strides, .n_strides = 2, .alias_of = "x"};
        cr_assert_eq(af_fragment_add_output(&f, &in_place, &diags), 0);
        cr_assert_eq(diags.n_items, 0);
}

Test(fragment, everything_round_trips) {
        build_all();
        for (uint32_t i = 1; i < f.nodes[0].n_attrs; i++)
                cr_assert_lt(f.nodes[0].attrs[i - 1].key, f.nodes[0].attrs[i].key, "sorted");
        expect_round_trip(&f, 0, "one line");
        expect_round_trip(&f, 4, "indented");
}

Test(fragment, printing_does_not_depend_on_the_locale) {
        struct af_buf plain = AF_BUF_INIT, local = AF_BUF_INIT;
        const struct af_attr attr = {.key = AF_ATTR_ALPHA, .f = 0.1};
        const struct af_fragment_node node = {.name = "n", .op = "leaky_relu", .attrs = &attr, .n_attrs = 1};

        cr_assert_eq(af_fragment_add_node(&f, &node, &diags), 0);
        af_fragment_print(&f, 0, &plain);
        cr_assert_not_null(memmem(plain.data, plain.size, "\"alpha\":0.1}", 12));
        /* Where such a locale is installed. */
        if (setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8")) {
                af_fragment_print(&f, 0, &local);
                cr_assert_eq(plain.size, local.size);
                cr_assert_arr_eq(plain.data, local.data, plain.size);
                expect_round_trip(&f, 0, "locale");
        }
        af_buf_deinit(&plain);
        af_buf_deinit(&local);
}

Test(fragment, copies_what_it_is_given) {
        char name[] = "x";
        uint32_t dims[1] = {number(3)};
        struct af_fragment_input in = {.t = tensor(name, AF_DTYPE_INT8, dims, 1), .offset = number(0)};

        cr_assert_eq(af_fragment_add_input(&f, &in, &diags), 0);
        name[0] = 'q';
        dims[0] = 99;
        cr_assert_str_eq(f.inputs[0].t.name, "x");
        cr_assert_eq(f.inputs[0].t.dims[0], number(3));
}

static void expect_refusal(int r, const char *report) {
        struct af_buf b = AF_BUF_INIT;

        cr_assert_eq(r, AF_FRAGMENT_E_INVALID);
        af_diags_format(&diags, &b);
        af_buf_put_u8(&b, 0);
        cr_assert_str_eq((const char *)b.data, report);
        af_diags_deinit(&diags);
        af_buf_deinit(&b);
}

Test(fragment, builder_refuses_bad_values) {
        const uint32_t dims[17] = {number(2)}, beyond[1] = {12345}, negative[1] = {number(-1)};
        struct af_fragment_input in = {.t = tensor("x", AF_DTYPE_INT8, dims, 17), .offset = number(0)};
        static char name[AF_LIMIT_NAME_BYTES + 2];

        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"x\".shape: rank 17, at most 16\n");
        in.t = tensor("x", AF_DTYPE_INT8, beyond, 1);
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"x\".shape: expression 12345 does not exist\n");
        in.t = tensor("x", AF_DTYPE_INVALID, dims, 1);
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"x\".dtype: is none\n");
        in.t = tensor("", AF_DTYPE_INT8, dims, 1);
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"\".name: is empty\n");
        in.t = tensor("\xff", AF_DTYPE_INT8, dims, 1);
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"\\xff\".name: is not UTF-8\n");
        memset(name, 'n', sizeof(name) - 1);
        in.t = tensor(name, AF_DTYPE_INT8, dims, 1);
        cr_assert_eq(af_fragment_add_input(&f, &in, NULL), AF_FRAGMENT_E_INVALID);
        in = (struct af_fragment_input){.t = tensor("x", AF_DTYPE_INT8, dims, 1), .align = 3};
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"x\".align: must be a power of two up to 4096\n");
        in = (struct af_fragment_input){.t = tensor("x", AF_DTYPE_INT8, dims, 1), .host = true};
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"x\".host: a host scalar has shape []\n");
        in.offset = 12345;
        expect_refusal(af_fragment_add_input(&f, &in, &diags), "error: inputs[0] \"x\".offset: expression 12345 does not exist\n");
        struct af_fragment_constant c = {.t = tensor("c", AF_DTYPE_BOOL, dims, 1), .bytes = (const uint8_t *)"\1\2", .n_bytes = 2};
        expect_refusal(af_fragment_add_constant(&f, &c, &diags), "error: constants[0] \"c\".bits: byte 1 of a bool is neither 00 nor 01\n");
        c.n_bytes = 1;
        expect_refusal(af_fragment_add_constant(&f, &c, &diags), "error: constants[0] \"c\".bits: 1 bytes where dtype and shape make 2\n");
        c.t.dims = negative;
        expect_refusal(af_fragment_add_constant(&f, &c, &diags),
                       "error: constants[0] \"c\".shape: a constant's dimensions are integers of 0 or more\n");
        cr_assert_eq(f.n_inputs + f.n_constants, 0);
}

Test(fragment, builder_refuses_bad_symbols_and_nodes) {
        struct af_fragment_symbol s = {"s0", 0, 5, -1, 1};
        const struct af_attr twice[] = {{.key = AF_ATTR_AXIS}, {.key = AF_ATTR_AXIS}}, unknown = {.key = AF_N_ATTRS};
        struct af_fragment_node n = {.name = "n", .op = "add", .attrs = twice, .n_attrs = 2};

        cr_assert_eq(af_fragment_add_symbol(&f, &s, &diags), 0);
        expect_refusal(af_fragment_add_symbol(&f, &s, &diags), "error: symbols[1] \"s0\".name: is that of symbols[0] too\n");
        s.name = "max";
        expect_refusal(af_fragment_add_symbol(&f, &s, &diags), "error: symbols[1] \"max\".name: is no identifier, or max or min\n");
        s = (struct af_fragment_symbol){"s1", 6, 5, -1, 1};
        expect_refusal(af_fragment_add_symbol(&f, &s, &diags), "error: symbols[1] \"s1\".min: the range must be within 0 .. max\n");
        s = (struct af_fragment_symbol){"s1", 0, 5, -1, 0};
        expect_refusal(af_fragment_add_symbol(&f, &s, &diags), "error: symbols[1] \"s1\".multiple_of: must be positive\n");
        s = (struct af_fragment_symbol){"s1", 0, 5, -2, 1};
        expect_refusal(af_fragment_add_symbol(&f, &s, &diags), "error: symbols[1] \"s1\".hint: is negative\n");
        expect_refusal(af_fragment_add_node(&f, &n, &diags), "error: nodes[0] \"n\".attrs: axis is there twice\n");
        n.attrs = &unknown;
        n.n_attrs = 1;
        cr_assert_eq(af_fragment_add_node(&f, &n, NULL), AF_FRAGMENT_E_INVALID);
        n = (struct af_fragment_node){.name = "n", .op = NULL};
        expect_refusal(af_fragment_add_node(&f, &n, &diags), "error: nodes[0] \"n\".op: is empty\n");
        n = (struct af_fragment_node){.name = "n", .op = "add", .n_inputs = AF_LIMIT_NODE_INPUTS + 1};
        expect_refusal(af_fragment_add_node(&f, &n, &diags), "error: nodes[0] \"n\".inputs: more than 4096\n");
        expect_refusal(af_fragment_add_output(&f, &(struct af_fragment_output){.value = ""}, &diags),
                       "error: outputs[0] \"\".value: is empty\n");
}

Test(fragment, memory_that_runs_out_is_an_error) {
        /* Wherever the arena ends, the builder says so. */
        for (size_t max = 64; max < 4096; max += 16) {
                struct af_arena small;
                struct af_fragment g;
                const int64_t dims[] = {4, 5};
                const uint32_t *ids;
                af_arena_init(&small, max);
                int r = af_fragment_init(&g, &small);
                if (r == 0)
                        r = af_fragment_dims_const(&g, dims, 2, &ids);
                for (int i = 0; i < 100 && r == 0; i++) {
                        const struct af_fragment_input in = {.t = tensor("input", AF_DTYPE_INT8, ids, 2), .offset = ids[0]};
                        r = af_fragment_add_input(&g, &in, &diags);
                }
                cr_assert_eq(r, -ENOMEM, "%zu", max);
                af_arena_deinit(&small);
        }
}

static void random_name(struct random *r, char *name) {
        static const char *const pieces[] = {
                "a", "Z", "0", "/", "..", "\"", "\\", "\n", "\t", "\x01", "\x7f", "\xc3\xa9", "\xf0\x9f\x98\x80", " ", "{", "]"};
        uint32_t n = 1 + random_below(r, 6);

        name[0] = 0;
        for (uint32_t i = 0; i < n; i++)
                strcat(name, pieces[random_below(r, AF_ARRAY_SIZE(pieces))]);
}

static uint32_t random_dim(struct random *r) {
        uint32_t id = number(random_below(r, 4) ? random_below(r, 100) : (int64_t)(random_u64(r) >> 1)), symbol, sum;

        if (f.n_symbols == 0 || random_below(r, 2))
                return id;
        cr_assert_eq(af_expr_symbol(&f.exprs, random_below(r, f.n_symbols), &symbol), 0);
        int e = af_expr_binary(&f.exprs, (enum af_expr_kind)(AF_EXPR_ADD + random_below(r, 7)), symbol, id, &sum);
        int64_t v;
        return e != 0 || (af_expr_is_const(&f.exprs, sum, &v) && v < 0) ? symbol : sum;
}

static struct af_fragment_tensor random_tensor(struct random *r, char *name, uint32_t *dims, uint32_t *strides) {
        struct af_fragment_tensor t = {.name = name, .dims = dims, .strides = strides};

        random_name(r, name);
        t.dtype = (enum af_dtype)(1 + random_below(r, AF_N_DTYPES - 1));
        t.rank = random_below(r, AF_LIMIT_RANK + 1);
        t.has_strides = random_below(r, 2);
        for (uint32_t i = 0; i < t.rank; i++) {
                dims[i] = random_dim(r);
                strides[i] = random_dim(r);
        }
        return t;
}

static void random_node(struct random *r) {
        static char names[4][128];
        uint32_t dims[2][16], strides[2][16];
        struct af_attr attrs[3] = {{.key = AF_ATTR_MIN}, {.key = AF_ATTR_ALPHA, .is_int = true}, {.key = AF_ATTR_AXIS}};
        const char *const inputs[] = {names[0], names[0]};
        uint64_t bits = random_u64(r);

        random_name(r, names[0]);
        random_name(r, names[1]);
        memcpy(&attrs[0].f, &bits, sizeof(bits));
        attrs[1].i = (int64_t)random_u64(r);
        attrs[1].f = (double)attrs[1].i;
        attrs[2].i = (int64_t)random_u64(r) >> random_below(r, 64);
        const struct af_fragment_tensor outputs[2] = {random_tensor(r, names[2], dims[0], strides[0]),
                                                      random_tensor(r, names[3], dims[1], strides[1])};
        const struct af_fragment_node n = {.name = names[1],
                                           .op = names[0],
                                           .origin = random_below(r, 2) ? names[1] : NULL,
                                           .inputs = inputs,
                                           .n_inputs = random_below(r, 3),
                                           .attrs = attrs,
                                           .n_attrs = random_below(r, 4),
                                           .outputs = outputs,
                                           .n_outputs = random_below(r, 3)};
        cr_assert_eq(af_fragment_add_node(&f, &n, &diags), 0);
}

Test(fragment, random_ones_round_trip) {
        struct random r = random_make("fragment");

        for (int round = 0; round < 300; round++) {
                char name[128], what[64];
                uint32_t dims[16], strides[16];
                af_arena_reset(&arena);
                cr_assert_eq(af_fragment_init(&f, &arena), 0);
                for (uint32_t i = 0; i < random_below(&r, 4); i++) {
                        snprintf(name, sizeof(name), "s%u", i * 7);
                        const struct af_fragment_symbol s = {name, 0, (int64_t)(random_u64(&r) >> 1), -1, 1 + random_below(&r, 5)};
                        cr_assert_eq(af_fragment_add_symbol(&f, &s, &diags), 0);
                }
                for (uint32_t i = 0; i < random_below(&r, 5); i++) {
                        struct af_fragment_input in = {.t = random_tensor(&r, name, dims, strides), .offset = random_dim(&r)};
                        in.align = random_below(&r, 2) ? 1u << random_below(&r, 13) : 0;
                        cr_assert_eq(af_fragment_add_input(&f, &in, &diags), 0);
                }
                for (uint32_t i = 0; i < random_below(&r, 6); i++)
                        random_node(&r);
                for (uint32_t i = 0; i < random_below(&r, 4); i++) {
                        random_name(&r, name);
                        cr_assert_eq(af_fragment_add_output(&f, &(struct af_fragment_output){.value = name}, &diags), 0);
                }
                snprintf(what, sizeof(what), "seed %llu round %d", (unsigned long long)r.seed, round);
                expect_round_trip(&f, (unsigned)round % 3, what);
        }
        cr_assert_eq(diags.n_items, 0);
}
