/* SPDX-License-Identifier: Apache-2.0 */
/* run FRAGMENT.json [SIZE…]: a runtime over libautofuse. Has the fragment compiled, gives it memory, runs it on this CPU. A SIZE per
 * symbol. */
#include <autofuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_MAX 64 /* inputs, outputs, symbols */

/* The framework's own nodes; this framework only knows how to copy a contiguous operand. */
static int framework_node(void *userdata, const struct autofuse_node_call *call) {
        const struct autofuse_tensor *to = &call->outputs[0];
        size_t n = autofuse_dtype_size(to->dtype);
        for (uint32_t i = 0; i < to->rank; i++)
                n *= (size_t)to->dims[i];
        printf("framework: %s\n", call->origin ? call->origin : call->op);
        memcpy(to->data, call->inputs[0].data, n);
        return 0;
}

/* Memory for what comes in and goes out; every element that comes in is 0.75 as a float. Views of one buffer share it. */
static bool give_memory(const struct autofuse_bundle *bundle, void **inputs, void **outputs) {
        struct autofuse_buffer_info b;
        for (uint32_t i = 0; autofuse_bundle_buffer(bundle, i, &b); i++) {
                void **to = b.kind == AUTOFUSE_BUFFER_INPUT ? inputs : b.kind == AUTOFUSE_BUFFER_OUTPUT ? outputs : NULL;
                if (to && (b.index >= N_MAX || !(to[b.index] = aligned_alloc(512, (b.bytes + 511) / 512 * 512 + 512))))
                        return false;
                for (uint64_t k = 0; to == inputs && k < b.bytes; k++)
                        ((char *)to[b.index])[k] = "\0\0\100\77"[k % 4];
        }
        return true;
}

int main(int argc, char **argv) {
        static char text[1 << 20];
        void *inputs[N_MAX] = {0}, *outputs[N_MAX] = {0};
        int64_t sizes[N_MAX];
        struct autofuse_context *context = NULL;
        struct autofuse_bundle *form = NULL, *bundle = NULL;
        struct autofuse_error *error = NULL;
        struct autofuse_output_info out;
        struct autofuse_kernel_info kernel;
        struct autofuse_run run = AUTOFUSE_RUN_INIT;
        FILE *f = argc > 1 && argc < N_MAX ? fopen(argv[1], "r") : NULL;
        size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
        for (int i = 2; n && i < argc; i++)
                sizes[i - 2] = atoll(argv[i]);
        run.inputs = inputs, run.outputs = outputs, run.framework_node = framework_node;
        if (n == 0 || autofuse_context_open(NULL, &context, &error) || autofuse_compile_text(context, text, n, NULL, &form, &error) ||
            autofuse_bundle_solve(form, sizes, (uint32_t)argc - 2, &bundle, &error) || !give_memory(bundle, inputs, outputs) ||
            autofuse_bundle_run(bundle, &run, &error))
                return fprintf(stderr, "%s\n", error ? autofuse_error_text(error) : "usage: run FRAGMENT.json [SIZE...]"), 1;
        for (uint32_t i = 0; autofuse_bundle_kernel(bundle, i, &kernel); i++)
                printf("kernel: %s (%s), %u blocks\n", kernel.symbol, kernel.ops, kernel.block_dim);
        for (uint32_t i = 0; autofuse_bundle_output(bundle, i, &out); i++)
                if (out.own && out.tensor.dtype == AUTOFUSE_DTYPE_FLOAT32)
                        printf("%s: %llu bytes, the first element is %g\n", out.name, (unsigned long long)out.bytes, *(float *)outputs[i]);
        autofuse_bundle_unref(bundle);
        autofuse_bundle_unref(form);
        autofuse_context_close(context);
        return 0; /* the memory goes with the process */
}
