/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/fragment.h"
#include "tests/unit/client/sample.h"

static void expect(enum autofuse_status got, enum autofuse_status want, struct autofuse_error *error, const char *text) {
        cr_assert_eq(got, want, "%s: %s", autofuse_status_name(got), autofuse_error_text(error));
        cr_assert_eq(autofuse_error_status(error), want);
        cr_assert(strstr(autofuse_error_text(error), text), "\"%s\" is not in: %s", text, autofuse_error_text(error));
        autofuse_error_free(error);
}

Test(fragment, built_and_text_have_one_digest) {
        struct autofuse_fragment *f = sample_build(1), *g = sample_build(2);
        struct af_prepared *p = NULL;
        char built[65], hex[65];
        SAMPLE_OK(autofuse_fragment_digest(f, built, &error));
        cr_assert_eq(af_prepared_new_text(sample_text, strlen(sample_text), NULL, &p), 0);
        af_digest_hex(&p->digest, hex);
        cr_assert_str_eq(built, hex);
        SAMPLE_OK(autofuse_fragment_digest(g, hex, &error));
        cr_assert_str_neq(built, hex);
        af_prepared_unref(p);
        autofuse_fragment_free(f);
        autofuse_fragment_free(g);
}

Test(fragment, slots_lead_back_to_the_senders_names) {
        struct af_prepared *p = NULL;
        cr_assert_eq(af_prepared_new_text(sample_text, strlen(sample_text), NULL, &p), 0);
        cr_assert_eq(p->n_inputs, 3);
        cr_assert_eq(p->n_slots, 2);
        cr_assert_eq(p->input_slots[0], AF_NONE);
        for (uint32_t i = 1; i < 3; i++)
                cr_assert_eq(p->slot_inputs[p->input_slots[i]], i);
        cr_assert_eq(p->n_canon_nodes, 2);
        for (uint32_t i = 0; i < 2; i++)
                cr_assert_lt(p->canon_nodes[i], 2u, "the dead node has no number");
        cr_assert_neq(p->canon_nodes[0], p->canon_nodes[1]);
        cr_assert_str_eq(p->nodes[0], "n1");
        cr_assert_str_eq(p->origins[1], "aten.mul.Tensor");
        cr_assert_null(p->origins[2]);
        cr_assert_str_eq(p->outputs[1], "t0");
        /* The node that feeds the other comes first: mul, although it was written second. */
        cr_assert_str_eq(p->nodes[p->canon_nodes[0]], "n0");
        af_prepared_unref(p);
}

Test(fragment, is_fixed_once_submitted) {
        struct autofuse_fragment *f = sample_build(1);
        struct autofuse_error *error = NULL;
        SAMPLE_OK(autofuse_fragment_validate(f, &error));
        SAMPLE_OK(autofuse_fragment_validate(f, &error));
        struct autofuse_output_spec o = {.value = "t1"};
        enum autofuse_status got = autofuse_fragment_add_output(f, &o, &error);
        expect(got, AUTOFUSE_E_ARGUMENT, error, "no longer be changed");
        autofuse_fragment_free(f);
}

Test(fragment, mistakes_name_node_and_field) {
        static const struct autofuse_dim dims[] = {{2, NULL}, {4, NULL}};
        struct autofuse_fragment *f = sample_build(1);
        struct autofuse_error *error = NULL;
        const char *inputs[] = {"t1", "nowhere"};
        const struct autofuse_tensor_spec out = {.name = "t9", .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 2, .dims = dims};
        struct autofuse_node_spec node = {.name = "bad", .op = "add", .inputs = inputs, .n_inputs = 2, .outputs = &out, .n_outputs = 1};
        SAMPLE_OK(autofuse_fragment_add_node(f, &node, &error));
        enum autofuse_status got = autofuse_fragment_validate(f, &error);
        expect(got, AUTOFUSE_E_INVALID, error, "nowhere");
        autofuse_fragment_free(f);
}

Test(fragment, builder_refuses_at_once_what_it_can) {
        static const struct autofuse_dim dims[17] = {{1, NULL}}, expr[] = {{0, "s0 + q"}};
        struct autofuse_fragment *f = NULL;
        struct autofuse_error *error = NULL;
        SAMPLE_OK(autofuse_fragment_new(NULL, &f, &error));
        SAMPLE_OK(autofuse_fragment_add_symbol(f, "s0", 1, 100, 1, 8, &error));
        struct autofuse_input_spec in = {.tensor = {.name = "x", .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 17, .dims = dims}};
        enum autofuse_status got = autofuse_fragment_add_input(f, &in, &error);
        expect(got, AUTOFUSE_E_INVALID, error, "rank");
        in.tensor.rank = 1;
        in.tensor.dims = expr;
        got = autofuse_fragment_add_input(f, &in, &error);
        expect(got, AUTOFUSE_E_INVALID, error, "s0 + q");
        in.tensor.dtype = 77;
        in.tensor.dims = dims;
        got = autofuse_fragment_add_input(f, &in, &error);
        expect(got, AUTOFUSE_E_INVALID, error, "dtype");
        struct autofuse_attr attr = {.name = "colour", .kind = AUTOFUSE_ATTR_INT};
        const char *inputs[] = {"x"};
        in.tensor.dtype = AUTOFUSE_DTYPE_FLOAT32;
        struct autofuse_node_spec node = {.name = "n",
                                          .op = "abs",
                                          .inputs = inputs,
                                          .n_inputs = 1,
                                          .attrs = &attr,
                                          .n_attrs = 1,
                                          .outputs = &in.tensor,
                                          .n_outputs = 1};
        got = autofuse_fragment_add_node(f, &node, &error);
        expect(got, AUTOFUSE_E_INVALID, error, "colour");
        attr.name = "axes";
        got = autofuse_fragment_add_node(f, &node, &error);
        expect(got, AUTOFUSE_E_INVALID, error, "another kind");
        cr_assert_eq(autofuse_fragment_add_node(f, NULL, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_fragment_add_node(NULL, &node, NULL), AUTOFUSE_E_ARGUMENT);
        autofuse_fragment_free(f);
        autofuse_fragment_free(NULL);
}

Test(fragment, symbols_and_attributes_reach_the_graph) {
        static const struct autofuse_dim in_dims[] = {{0, "s0 * 2"}, {50, NULL}}, out_dims[] = {{50, NULL}};
        static const int64_t axes[] = {0};
        struct autofuse_fragment *f = NULL;
        struct af_buf text = AF_BUF_INIT;
        SAMPLE_OK(autofuse_fragment_new("sum", &f, &error));
        SAMPLE_OK(autofuse_fragment_set_target(f, "Ascend910B2", "host", AUTOFUSE_TWIN_CHECKED, &error));
        SAMPLE_OK(autofuse_fragment_set_numerics(f, AUTOFUSE_NUMERICS_FAST, &error));
        SAMPLE_OK(autofuse_fragment_add_symbol(f, "s0", 1, 100, 4, 8, &error));
        struct autofuse_input_spec in = {
                .tensor = {.name = "x", .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 2, .dims = in_dims}, .align = 32, .offset = {8, NULL}};
        SAMPLE_OK(autofuse_fragment_add_input(f, &in, &error));
        const char *inputs[] = {"x"};
        struct autofuse_attr attrs[] = {{.name = "keepdims", .kind = AUTOFUSE_ATTR_BOOL, .i = 0},
                                        {.name = "axes", .kind = AUTOFUSE_ATTR_INTS, .ints = axes, .n = 1}};
        const struct autofuse_tensor_spec out = {.name = "t", .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 1, .dims = out_dims};
        struct autofuse_node_spec node = {.name = "n",
                                          .op = "reduce_sum",
                                          .inputs = inputs,
                                          .n_inputs = 1,
                                          .attrs = attrs,
                                          .n_attrs = 2,
                                          .outputs = &out,
                                          .n_outputs = 1};
        SAMPLE_OK(autofuse_fragment_add_node(f, &node, &error));
        SAMPLE_OK(autofuse_fragment_add_output(f, &(struct autofuse_output_spec){.value = "t"}, &error));
        SAMPLE_OK(autofuse_fragment_validate(f, &error));
        af_fragment_handle_print(f, &text);
        af_buf_put_u8(&text, 0);
        static const char *const wanted[] = {"checked", "fast", "Ascend910B2", "\"multiple_of\"", "reduce_sum", "\"align\""};
        for (size_t i = 0; i < AF_ARRAY_SIZE(wanted); i++)
                cr_assert(strstr((char *)text.data, wanted[i]), "%s is not in %s", wanted[i], text.data);
        af_buf_deinit(&text);
        autofuse_fragment_free(f);
}

static void *validate(void *arg) {
        char hex[65];
        SAMPLE_OK(autofuse_fragment_digest(arg, hex, &error));
        return strdup(hex);
}

Test(fragment, threads_prepare_it_once) {
        struct autofuse_fragment *f = sample_build(1);
        pthread_t threads[8];
        char *first = NULL;
        for (int i = 0; i < 8; i++)
                pthread_create(&threads[i], NULL, validate, f);
        for (int i = 0; i < 8; i++) {
                void *hex;
                pthread_join(threads[i], &hex);
                if (first)
                        cr_assert_str_eq(hex, first);
                else
                        first = strdup(hex);
                free(hex);
        }
        free(first);
        autofuse_fragment_free(f);
}
