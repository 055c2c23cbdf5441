/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reference gives for fragments that come in on stdin, one after another: for tests of front ends, which need numbers and no
 * kernels.
 *
 *   request   BYTES [SYMBOL VALUES…]\n  BYTES of JSON  the elements of each input, row-major, in order
 *   answer    ok\n                      the elements of each output, row-major, in order
 *             error BYTES\n             BYTES of text
 *
 * A request whose fragment is refused has no elements: the sender waits for `fragment\n` first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/eval.h"

#define MAX_LINE 4096

static int answer_error(const char *text) {
        printf("error %zu\n%s", strlen(text), text);
        return fflush(stdout) ? -EIO : 0;
}

static int refuse(const struct af_diags *diags) {
        AF_CLEANUP(af_buf_deinit) struct af_buf text = AF_BUF_INIT;
        af_diags_format(diags, &text);
        af_buf_put_u8(&text, 0);
        if (af_buf_error(&text))
                return -ENOMEM;
        return answer_error((const char *)text.data);
}

static int64_t count(const struct af_tensor *t) {
        int64_t n = 1;
        for (uint32_t i = 0; i < t->rank; i++)
                n *= t->dims[i];
        return n;
}

/* A tensor of these constant dims; strides NULL: dense. `extent`: elements from the first to behind the last. */
static int tensor_of(const struct af_graph *g, uint32_t value, struct af_tensor *t, int64_t *ret_extent) {
        const struct af_value *v = &g->values[value];
        int64_t dense = 1, extent = 1;
        *t = (struct af_tensor){.dtype = v->dtype, .rank = v->rank};
        for (uint32_t i = v->rank; i-- > 0;) {
                if (!af_expr_is_const(&g->exprs, v->dims[i], &t->dims[i]))
                        return -EINVAL;
                t->strides[i] = dense;
                if (v->strides && !af_expr_is_const(&g->exprs, v->strides[i], &t->strides[i]))
                        return -EINVAL;
                dense *= t->dims[i];
                extent += t->dims[i] > 0 ? (t->dims[i] - 1) * t->strides[i] : 0;
        }
        *ret_extent = extent;
        return 0;
}

/* Reads the elements of an input into memory laid out as the graph states. */
static int read_input(struct af_tensor *t, int64_t extent) {
        int64_t index[AF_LIMIT_RANK] = {0}, n = count(t);
        unsigned size = af_dtype_size(t->dtype);
        char *data = calloc((size_t)extent, size);
        if (!data)
                return -ENOMEM;
        t->data = data;
        for (int64_t i = 0; i < n; i++) {
                int64_t at = 0;
                for (uint32_t k = 0; k < t->rank; k++)
                        at += index[k] * t->strides[k];
                if (fread(data + at * size, size, 1, stdin) != 1)
                        return -EIO;
                for (uint32_t k = t->rank; k-- > 0 && ++index[k] == t->dims[k];)
                        index[k] = 0;
        }
        return 0;
}

static int run(const struct af_graph *g, struct af_tensor *inputs, struct af_tensor *outputs) {
        const char *why = NULL;
        int64_t extent;
        char text[256];
        for (uint32_t i = 0; i < g->n_inputs; i++) {
                int r = tensor_of(g, g->inputs[i].value, &inputs[i], &extent);
                if (!r)
                        r = read_input(&inputs[i], extent);
                if (r)
                        return r;
        }
        int r = af_reference_run(g, inputs, outputs, NULL, &why);
        if (r) {
                snprintf(text, sizeof(text), "reference %d: %s", r, why ? why : "?");
                return answer_error(text);
        }
        printf("ok\n");
        for (uint32_t i = 0; i < g->n_outputs; i++)
                fwrite(outputs[i].data, af_dtype_size(outputs[i].dtype), (size_t)count(&outputs[i]), stdout);
        return fflush(stdout) ? -EIO : 0;
}

static int serve_graph(struct af_graph *g, char *values) {
        int64_t symbols[64] = {0};
        uint32_t n = 0;
        for (char *at = strtok(values, " \n"); at && n < AF_ARRAY_SIZE(symbols); at = strtok(NULL, " \n"))
                symbols[n++] = strtoll(at, NULL, 10);
        if (n && af_graph_bind(g, symbols))
                return answer_error("a size overflows at these symbols");
        printf("fragment\n");
        fflush(stdout);
        struct af_tensor *inputs = calloc((size_t)g->n_inputs + 1, sizeof(*inputs));
        struct af_tensor *outputs = calloc((size_t)g->n_outputs + 1, sizeof(*outputs));
        int r = inputs && outputs ? run(g, inputs, outputs) : -ENOMEM;
        for (uint32_t i = 0; inputs && i < g->n_inputs; i++)
                free(inputs[i].data);
        for (uint32_t i = 0; outputs && i < g->n_outputs; i++)
                free(outputs[i].data);
        free(inputs);
        free(outputs);
        return r;
}

static int serve(char *line) {
        char *end;
        size_t n = strtoull(line, &end, 10);
        char *text = malloc(n + 1);
        struct af_test_graph t;
        int r = 0;
        if (!text)
                return -ENOMEM;
        if (fread(text, 1, n, stdin) == n) {
                af_test_graph_parse(&t, text, n);
                r = t.r ? refuse(&t.diags) : serve_graph(&t.graph, end);
                af_test_graph_deinit(&t);
        } else {
                r = -EIO;
        }
        free(text);
        return r;
}

int main(void) {
        char line[MAX_LINE];
        int r = 0;
        while (!r && fgets(line, sizeof(line), stdin))
                r = serve(line);
        if (r)
                fprintf(stderr, "evaluate: %s\n", strerror(-r));
        return r != 0;
}
