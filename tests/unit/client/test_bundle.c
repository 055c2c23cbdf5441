/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and running a bundle in the sender's names and order. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "client/bundle.h"
#include "client/strided.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/sample.h"

static struct autofuse_bundle *make(void) {
        struct af_prepared *p = NULL;
        struct af_content *c = NULL;
        struct af_buf bytes = AF_BUF_INIT;
        const char *why = NULL;
        cr_assert_eq(af_prepared_new_text(sample_text, strlen(sample_text), NULL, &p), 0);
        struct af_bundle_key key = {.fragment = p->digest};
        fake_bundle(p->canon, p->n_canon, &bytes);
        cr_assert_eq(af_content_from_bytes(bytes.data, bytes.size, &key, &c, &why), 0);
        cr_assert(af_content_suits(c, p, &why), "%s", why);
        struct autofuse_bundle *b = af_bundle_handle_new(c, p, AUTOFUSE_HIT_MEMO, 0);
        af_content_unref(c);
        af_prepared_unref(p);
        af_buf_deinit(&bytes);
        return b;
}

Test(bundle, speaks_the_senders_names) {
        struct autofuse_bundle *b = make();
        struct autofuse_bundle_info info;
        struct autofuse_step_info step;
        struct autofuse_input_info in;
        struct autofuse_output_info out;
        struct autofuse_tensor_info t;
        struct autofuse_decision_info d;
        autofuse_bundle_info(b, &info);
        cr_assert_eq(info.n_inputs, 3);
        cr_assert_eq(info.n_outputs, 2);
        cr_assert_eq(info.n_steps, 2);
        cr_assert(autofuse_bundle_step(b, 0, &step));
        cr_assert_eq(step.kind, AUTOFUSE_STEP_FRAMEWORK);
        cr_assert_eq(step.node, 1);
        cr_assert_str_eq(step.name, "n0");
        cr_assert_str_eq(step.origin, "aten.mul.Tensor");
        cr_assert_str_eq(step.op, "mul");
        cr_assert_str_eq(step.reason, "no template for this test");
        cr_assert(!autofuse_bundle_step(b, 2, &step));
        cr_assert(autofuse_bundle_input(b, 0, &in));
        cr_assert(!in.used);
        cr_assert_str_eq(in.name, "unused");
        cr_assert(autofuse_bundle_input(b, 2, &in));
        cr_assert(in.used);
        cr_assert_str_eq(in.name, "y");
        cr_assert_eq(in.tensor.rank, 2);
        cr_assert_eq(in.tensor.dims[1], 3);
        cr_assert(autofuse_bundle_output(b, 1, &out));
        cr_assert_str_eq(out.name, "t0");
        cr_assert(out.own);
        cr_assert_eq(out.bytes, 24);
        cr_assert_eq(out.alias_of, -1);
        cr_assert(!autofuse_bundle_output(b, 2, &out));
        cr_assert(autofuse_bundle_step_value(b, 0, 2, &t));
        cr_assert(!autofuse_bundle_step_value(b, 0, 3, &t));
        cr_assert(!autofuse_bundle_step_arg(b, 0, 0, &(struct autofuse_arg_info){0}));
        cr_assert(autofuse_bundle_decision(b, 1, &d));
        cr_assert_eq(d.kind, AUTOFUSE_DECISION_FALLBACK);
        cr_assert_str_eq(d.consumer_name, "n1");
        cr_assert_eq(d.producer, -1);
        autofuse_bundle_unref(autofuse_bundle_ref(b));
        autofuse_bundle_unref(b);
}

Test(bundle, runs_framework_steps_in_order) {
        struct autofuse_bundle *b = make();
        float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {2, 2, 2, -1, -1, -1}, t1[6], t0[6];
        void *inputs[] = {NULL, x, y}, *outputs[] = {t1, t0};
        uint64_t sizes[] = {0, 24, 24};
        int n_calls = 0;
        struct autofuse_run run = AUTOFUSE_RUN_INIT;
        run.inputs = inputs;
        run.input_bytes = sizes;
        run.outputs = outputs;
        run.framework_node = sample_run_node;
        run.userdata = &n_calls;
        SAMPLE_OK(autofuse_bundle_run(b, &run, &error));
        cr_assert_eq(n_calls, 2);
        for (int i = 0; i < 6; i++) {
                cr_assert_eq(t0[i], x[i] * y[i]);
                cr_assert_eq(t1[i], t0[i] + 1);
        }
        autofuse_bundle_unref(b);
}

static int node_fails(void *userdata, const struct autofuse_node_call *call) {
        return 42;
}

Test(bundle, run_refuses_memory_that_does_not_suit) {
        struct autofuse_bundle *b = make();
        float x[7], t[6];
        void *inputs[] = {NULL, x, NULL}, *outputs[] = {t, t};
        uint64_t sizes[] = {0, 24, 23};
        struct autofuse_run run = AUTOFUSE_RUN_INIT;
        struct autofuse_error *error = NULL;
        run.inputs = inputs;
        run.outputs = outputs;
        cr_assert_eq(autofuse_bundle_run(b, &run, &error), AUTOFUSE_E_SHAPE);
        cr_assert_str_eq(autofuse_error_text(error), "input 2 (y) has no memory");
        autofuse_error_free(error);
        inputs[2] = x;
        run.input_bytes = sizes;
        cr_assert_eq(autofuse_bundle_run(b, &run, &error), AUTOFUSE_E_SHAPE);
        cr_assert_str_eq(autofuse_error_text(error), "input 2 (y) has 23 bytes and needs 24");
        autofuse_error_free(error);
        sizes[2] = 24;
        cr_assert_eq(autofuse_bundle_run(b, &run, &error), AUTOFUSE_E_CALLBACK);
        autofuse_error_free(error);
        run.framework_node = node_fails;
        cr_assert_eq(autofuse_bundle_run(b, &run, &error), AUTOFUSE_E_CALLBACK);
        cr_assert(strstr(autofuse_error_text(error), "aten.mul.Tensor) failed with 42"));
        autofuse_error_free(error);
        inputs[1] = (char *)x + 2;
        cr_assert_eq(autofuse_bundle_run(b, &run, &error), AUTOFUSE_E_SHAPE);
        cr_assert(strstr(autofuse_error_text(error), "not aligned"));
        autofuse_error_free(error);
        cr_assert_eq(autofuse_bundle_run(NULL, &run, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_kernel_launch(b, 0, NULL, NULL, 0, 0, 1, NULL), AUTOFUSE_E_ARGUMENT);
        autofuse_bundle_unref(b);
}

/* Without symbols a bundle is its own solution. */
Test(bundle, solving_what_has_no_symbols) {
        struct autofuse_bundle *b = make(), *solved = NULL;
        const int64_t one = 1;
        cr_assert_eq(autofuse_bundle_solve(b, &one, 1, &solved, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_bundle_solve(b, NULL, 1, &solved, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_eq(autofuse_bundle_solve(NULL, NULL, 0, &solved, NULL), AUTOFUSE_E_ARGUMENT);
        cr_assert_null(solved);
        cr_assert_eq(autofuse_bundle_solve(b, NULL, 0, &solved, NULL), AUTOFUSE_OK);
        cr_assert_eq(solved, b);
        autofuse_bundle_unref(solved);
        autofuse_bundle_unref(b);
}

Test(strided, copies_every_element) {
        int32_t src[24], dst[24] = {0};
        const int64_t dims[] = {2, 3, 2}, from[] = {12, 4, 2}, to[] = {1, 4, 2}, none[] = {2, 0, 2};
        int64_t dense[3];
        for (int i = 0; i < 24; i++)
                src[i] = i;
        af_strided_dense(dims, 3, dense);
        cr_assert_eq(dense[0], 6);
        cr_assert_eq(dense[1], 2);
        af_strided_copy(dst, to, src, from, dims, 3, 4);
        for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++)
                        for (int k = 0; k < 2; k++)
                                cr_assert_eq(dst[i + 4 * j + 2 * k], src[12 * i + 4 * j + 2 * k]);
        af_strided_copy(NULL, to, NULL, from, none, 3, 4);
        int32_t scalar = 0;
        af_strided_copy(&scalar, NULL, &src[5], NULL, NULL, 0, 4);
        cr_assert_eq(scalar, 5);
}
