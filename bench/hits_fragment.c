/* SPDX-License-Identifier: Apache-2.0 */
/* The fragment of the hits' benchmarks, by the public interface alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/hits.h"

void hits_must(enum autofuse_status status, struct autofuse_error *error) {
        if (status == AUTOFUSE_OK)
                return;
        fprintf(stderr, "%s: %s\n", autofuse_status_name(status), error ? autofuse_error_text(error) : "");
        exit(1);
}

static const char *const chains[3][4] = {{"sigmoid", "tanh", "exp"}, {"gelu", "abs", "exp"}, {"abs", "exp", "neg", "relu"}};

static void add_node(struct autofuse_fragment *f, const char *op, char *value, unsigned number) {
        const struct autofuse_dim dims[] = {{64, NULL}, {1024, NULL}};
        struct autofuse_error *error = NULL;
        char name[16], out[16];
        const char *in[] = {value};
        snprintf(name, sizeof(name), "n%u", number);
        snprintf(out, sizeof(out), "v%u", number);
        const struct autofuse_tensor_spec t = {.name = out, .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 2, .dims = dims};
        const struct autofuse_node_spec node = {
                .name = name, .op = op, .origin = op, .inputs = in, .n_inputs = 1, .outputs = &t, .n_outputs = 1};
        hits_must(autofuse_fragment_add_node(f, &node, &error), error);
        memcpy(value, out, sizeof(out));
}

struct autofuse_fragment *hits_fragment_make(bool small) {
        const struct autofuse_dim dims[] = {{64, NULL}, {1024, NULL}};
        const struct autofuse_input_spec input = {.tensor = {.name = "x", .dtype = AUTOFUSE_DTYPE_FLOAT32, .rank = 2, .dims = dims}};
        struct autofuse_fragment *f = NULL;
        struct autofuse_error *error = NULL;
        char value[16] = "x";
        unsigned number = 0;
        hits_must(autofuse_fragment_new("hits", &f, &error), error);
        hits_must(autofuse_fragment_add_input(f, &input, &error), error);
        for (unsigned i = small ? 2 : 0; i < 3; i++) {
                for (unsigned j = 0; j < 4 && chains[i][j]; j++)
                        add_node(f, chains[i][j], value, number++);
                if (i < 2)
                        add_node(f, "opaque", value, number++);
        }
        const struct autofuse_output_spec output = {.value = value};
        hits_must(autofuse_fragment_add_output(f, &output, &error), error);
        return f;
}
