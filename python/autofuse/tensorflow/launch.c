/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow's op AutofuseLaunch: runs a bundle on tensors, without Python. `plan` is the address of a struct autofuse_tf_plan of this
 * process, so that a graph with it is this process's alone. _op.py builds this file on demand against the TensorFlow that is installed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

/* ops.h is written for C++, which needs no typedefs. */
typedef struct TF_DimensionHandle TF_DimensionHandle;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
#include <autofuse.h>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

#define MAX_OPERANDS 1024

/* Calls of the libautofuse that Python loaded; by address, so that there is one of it. */
struct autofuse_tf_calls {
        __typeof__(&autofuse_bundle_solve) solve;
        __typeof__(&autofuse_bundle_info) info;
        __typeof__(&autofuse_bundle_output) output;
        __typeof__(&autofuse_bundle_run) run;
        __typeof__(&autofuse_bundle_unref) unref;
        __typeof__(&autofuse_error_text) error_text;
        __typeof__(&autofuse_error_free) error_free;
};
/* Symbol k is dimension `axis` of operand `operand`. All of it is Python's, and stays as it is. */
struct autofuse_tf_symbol {
        uint32_t operand, axis;
};
struct autofuse_tf_plan {
        const struct autofuse_tf_calls *calls;
        struct autofuse_bundle *bundle;
        const struct autofuse_tf_symbol *symbols;
        uint32_t n_symbols;
        uint64_t n_runs; /* counted here */
};

struct launch {
        struct autofuse_tf_plan *plan;
};

/* What one run holds. */
struct run {
        const struct autofuse_tf_calls *calls;
        struct autofuse_bundle *solved;
        struct autofuse_error *error;
        TF_Tensor *in[MAX_OPERANDS], *out[MAX_OPERANDS];
        void *inputs[MAX_OPERANDS], *outputs[MAX_OPERANDS];
        uint64_t input_bytes[MAX_OPERANDS];
        int n_in, n_out;
};

static bool fail(TF_Status *status, TF_Code code, const char *text) {
        TF_SetStatus(status, code, text);
        return false;
}

static bool take_inputs(struct run *r, TF_OpKernelContext *ctx, TF_Status *status) {
        int n = TF_NumInputs(ctx);
        if (n > MAX_OPERANDS || TF_NumOutputs(ctx) > MAX_OPERANDS)
                return fail(status, TF_INVALID_ARGUMENT, "autofuse: too many operands");
        for (; r->n_in < n; r->n_in++) {
                TF_GetInput(ctx, r->n_in, &r->in[r->n_in], status);
                if (TF_GetCode(status) != TF_OK)
                        return false;
                r->inputs[r->n_in] = TF_TensorData(r->in[r->n_in]);
                r->input_bytes[r->n_in] = TF_TensorByteSize(r->in[r->n_in]);
        }
        return true;
}

/* The bundle for the sizes of these operands. */
static bool solve(struct run *r, struct autofuse_tf_plan *plan, TF_Status *status) {
        int64_t sizes[MAX_OPERANDS];
        for (uint32_t i = 0; i < plan->n_symbols; i++) {
                const struct autofuse_tf_symbol *s = &plan->symbols[i];
                if ((int)s->operand >= r->n_in || (int)s->axis >= TF_NumDims(r->in[s->operand]))
                        return fail(status, TF_INVALID_ARGUMENT, "autofuse: an operand has another rank than was compiled for");
                sizes[i] = TF_Dim(r->in[s->operand], (int)s->axis);
        }
        if (plan->calls->solve(plan->bundle, sizes, plan->n_symbols, &r->solved, &r->error) == AUTOFUSE_OK)
                return true;
        return fail(status, TF_INVALID_ARGUMENT, plan->calls->error_text(r->error));
}

static bool allocate(struct run *r, TF_OpKernelContext *ctx, TF_Status *status) {
        struct autofuse_output_info info;
        for (int n = TF_NumOutputs(ctx); r->n_out < n; r->n_out++) {
                if (!r->calls->output(r->solved, (uint32_t)r->n_out, &info))
                        return fail(status, TF_INTERNAL, "autofuse: fewer results than the op has");
                TF_DataType type = TF_ExpectedOutputDataType(ctx, r->n_out);
                size_t bytes = TF_DataTypeSize(type);
                for (uint32_t i = 0; i < info.tensor.rank; i++)
                        bytes *= (size_t)info.tensor.dims[i];
                if (info.own && info.bytes > bytes)
                        return fail(status, TF_INTERNAL, "autofuse: a result that is not row-major");
                r->out[r->n_out] = TF_AllocateOutput(ctx, r->n_out, type, info.tensor.dims, (int)info.tensor.rank, bytes, status);
                if (TF_GetCode(status) != TF_OK)
                        return false;
                r->outputs[r->n_out] = TF_TensorData(r->out[r->n_out]);
        }
        return true;
}

static void compute(void *kernel, TF_OpKernelContext *ctx) {
        struct autofuse_tf_plan *plan = ((struct launch *)kernel)->plan;
        struct run r = {.calls = plan->calls};
        TF_Status *status = TF_NewStatus();
        if (take_inputs(&r, ctx, status) && solve(&r, plan, status) && allocate(&r, ctx, status)) {
                struct autofuse_run run = AUTOFUSE_RUN_INIT;
                run.inputs = r.inputs;
                run.input_bytes = r.input_bytes;
                run.outputs = r.outputs;
                if (plan->calls->run(r.solved, &run, &r.error) != AUTOFUSE_OK)
                        TF_SetStatus(status, TF_INTERNAL, plan->calls->error_text(r.error));
                else
                        __atomic_fetch_add(&plan->n_runs, 1, __ATOMIC_RELAXED);
        }
        if (TF_GetCode(status) != TF_OK)
                TF_OpKernelContext_Failure(ctx, status);
        for (int i = 0; i < r.n_in; i++)
                TF_DeleteTensor(r.in[i]);
        for (int i = 0; i < r.n_out; i++)
                TF_DeleteTensor(r.out[i]);
        if (r.solved)
                plan->calls->unref(r.solved);
        if (r.error)
                plan->calls->error_free(r.error);
        TF_DeleteStatus(status);
}

static void *create(TF_OpKernelConstruction *ctx) {
        struct launch *k = calloc(1, sizeof(*k));
        TF_Status *status = TF_NewStatus();
        int64_t plan = 0;
        TF_OpKernelConstruction_GetAttrInt64(ctx, "plan", &plan, status);
        if (TF_GetCode(status) == TF_OK && (!k || !plan))
                TF_SetStatus(status, TF_INVALID_ARGUMENT, "autofuse: no plan");
        if (TF_GetCode(status) != TF_OK)
                TF_OpKernelConstruction_Failure(ctx, status);
        else
                k->plan = (struct autofuse_tf_plan *)(uintptr_t)plan;
        TF_DeleteStatus(status);
        return k;
}
static void destroy(void *kernel) {
        free(kernel);
}

static void shapes(TF_ShapeInferenceContext *ctx, TF_Status *status) {
        TF_ShapeInferenceContextSetUnknownShape(ctx, status);
}

/* TensorFlow takes what is registered while it loads a library. */
__attribute__((constructor)) static void register_op(void) {
        TF_Status *status = TF_NewStatus();
        TF_OpDefinitionBuilder *op = TF_NewOpDefinitionBuilder("AutofuseLaunch");
        TF_OpDefinitionBuilderAddAttr(op, "Tin: list(type) >= 0");
        TF_OpDefinitionBuilderAddAttr(op, "Tout: list(type) >= 1");
        TF_OpDefinitionBuilderAddAttr(op, "plan: int");
        TF_OpDefinitionBuilderAddInput(op, "inputs: Tin");
        TF_OpDefinitionBuilderAddOutput(op, "outputs: Tout");
        TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shapes);
        TF_RegisterOpDefinition(op, status);
        TF_KernelBuilder *kernel = TF_NewKernelBuilder("AutofuseLaunch", "CPU", create, compute, destroy);
        TF_RegisterKernelBuilder("AutofuseLaunch", kernel, status);
        TF_DeleteStatus(status);
}
