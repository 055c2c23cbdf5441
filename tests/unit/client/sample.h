/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fragment, built and as text. It has an unused input, a dead node, and nodes that are not in order:
 *   unused[2], x[2,3], y[2,3];  t1 = add(t0, c), t0 = mul(x, y), dead = neg(x);  outputs t1, t0
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "client/autofuse.h"

static const char sample_text[] =
        "{\"schema\": \"autofuse.fragment/1\", \"name\": \"sample\", \"symbols\": [], \"inputs\": ["
        "{\"name\": \"unused\", \"dtype\": \"float32\", \"shape\": [2]}, {\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [2, 3]},"
        "{\"name\": \"y\", \"dtype\": \"float32\", \"shape\": [2, 3]}],"
        "\"constants\": [{\"name\": \"c\", \"dtype\": \"float32\", \"shape\": [], \"bits\": \"0000803f\"}],"
        "\"nodes\": [{\"name\": \"n1\", \"op\": \"add\", \"origin\": \"aten.add.Tensor\", \"inputs\": [\"t0\", \"c\"], \"attrs\": {},"
        " \"outputs\": [{\"name\": \"t1\", \"dtype\": \"float32\", \"shape\": [2, 3]}]},"
        "{\"name\": \"n0\", \"op\": \"mul\", \"origin\": \"aten.mul.Tensor\", \"inputs\": [\"x\", \"y\"], \"attrs\": {},"
        " \"outputs\": [{\"name\": \"t0\", \"dtype\": \"float32\", \"shape\": [2, 3]}]},"
        "{\"name\": \"dead\", \"op\": \"neg\", \"inputs\": [\"x\"], \"attrs\": {}, \"outputs\": [{\"name\": \"d\", \"dtype\": \"float32\", "
        "\"shape\": [2, 3]}]}],"
        "\"outputs\": [\"t1\", \"t0\"]}";

/* The call gives AUTOFUSE_OK; it names its error `error`. For any thread. */
#define SAMPLE_OK(call)                                                                                                                    \
        do {                                                                                                                               \
                struct autofuse_error *error = NULL;                                                                                       \
                enum autofuse_status got = call;                                                                                           \
                if (got != AUTOFUSE_OK) {                                                                                                  \
                        fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, autofuse_status_name(got), autofuse_error_text(error));     \
                        abort();                                                                                                           \
                }                                                                                                                          \
        } while (0)

static inline void sample_node(struct autofuse_fragment *f, const char *name, const char *op, const char *origin, const char *a,
                               const char *b, const char *out) {
        static const struct autofuse_dim dims[] = {{2, NULL}, {3, NULL}};
        const char *inputs[] = {a, b};
        const struct autofuse_tensor_spec output = {.name = out, .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 2, .dims = dims};
        const struct autofuse_node_spec node = {
                .name = name, .op = op, .origin = origin, .inputs = inputs, .n_inputs = b ? 2 : 1, .outputs = &output, .n_outputs = 1};
        SAMPLE_OK(autofuse_fragment_add_node(f, &node, &error));
}

static inline struct autofuse_fragment *sample_build(float constant) {
        static const struct autofuse_dim dims[] = {{2, NULL}, {3, NULL}};
        struct autofuse_fragment *f = NULL;
        struct autofuse_input_spec in = {.tensor = {.name = "unused", .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 1, .dims = dims}};
        SAMPLE_OK(autofuse_fragment_new("sample", &f, &error));
        SAMPLE_OK(autofuse_fragment_add_input(f, &in, &error));
        in.tensor.rank = 2;
        in.tensor.name = "x";
        SAMPLE_OK(autofuse_fragment_add_input(f, &in, &error));
        in.tensor.name = "y";
        SAMPLE_OK(autofuse_fragment_add_input(f, &in, &error));
        const struct autofuse_tensor_spec c = {.name = "c", .dtype = AUTOFUSE_DTYPE_FLOAT32};
        SAMPLE_OK(autofuse_fragment_add_constant(f, &c, &constant, sizeof(constant), &error));
        sample_node(f, "n1", "add", "aten.add.Tensor", "t0", "c", "t1");
        sample_node(f, "n0", "mul", "aten.mul.Tensor", "x", "y", "t0");
        sample_node(f, "dead", "neg", NULL, "x", NULL, "d");
        SAMPLE_OK(autofuse_fragment_add_output(f, &(struct autofuse_output_spec){.value = "t1"}, &error));
        SAMPLE_OK(autofuse_fragment_add_output(f, &(struct autofuse_output_spec){.value = "t0"}, &error));
        return f;
}

/* Adds and multiplies 2x3 floats as the sample's nodes ask. */
static inline int sample_run_node(void *userdata, const struct autofuse_node_call *call) {
        const float *a = call->inputs[0].data, *b = call->inputs[1].data;
        float *out = call->outputs[0].data;
        uint32_t scalar = call->inputs[1].rank == 0, scalar_a = call->inputs[0].rank == 0;
        bool add = call->op[0] == 'a';
        for (int i = 0; i < 6; i++) {
                float x = a[scalar_a ? 0 : i], y = b[scalar ? 0 : i];
                out[i] = add ? x + y : x * y;
        }
        if (userdata)
                ++*(int *)userdata;
        return 0;
}
