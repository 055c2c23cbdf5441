/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a host bundle on plain memory, step by step, for tests: kernels on the twin, framework nodes by the reference. */
#pragma once

#include "compiler/reference/reference.h"
#include "proto/bundle.h"
#include "runtime/host_kernel.h"

struct run_result {
        uint32_t n_kernel_steps, n_framework_steps, n_nodes_fused;
        uint64_t moved_bytes, modelled_bytes; /* counted by the checked twin; by the schedule */
        /* Summed over kernels: of the twin's timeline and the schedule's; each pipe alone; the longest pipe of each kernel. */
        uint64_t cycles, modelled_cycles, mte2_cycles, v_cycles, mte3_cycles, pipe_cycles;
        char error[512];
};
/* How to launch a kernel of the bundle; without one its binary is loaded. */
struct run_launcher {
        int (*launch)(void *userdata, const char *symbol, const struct af_twin_launch *launch); /* 0, or nonzero with launch->error */
        void *userdata;
};
/*
 * g: the canonical graph that the bundle was made from. inputs as in af_reference_run: data at element [0,…] with the graph's strides.
 * ret_outputs: one per output, dense copies, data malloc'd. 0, or -1 with result->error.
 */
int run_bundle(const struct af_graph *g, const struct af_bundle *b, const struct af_tensor *inputs, struct af_tensor *ret_outputs,
               struct run_result *result);
/* The same with a launcher (may be NULL); with one, b may be a skeleton. */
int run_bundle_with(const struct af_graph *g, const struct af_bundle *b, const struct run_launcher *launcher,
                    const struct af_tensor *inputs, struct af_tensor *ret_outputs, struct run_result *result);
/* Memory for every input of g, filled; `blocks` are what to free. data points at element [0,…]; gaps hold NaN bits (0xff). */
int make_inputs(const struct af_graph *g, uint64_t seed, bool specials, struct af_tensor *ret_inputs, void **ret_blocks);
/* 0: all bits equal. Else describes the first difference in text. */
int compare_outputs(const struct af_tensor *got, const struct af_tensor *want, uint32_t n, char *text, size_t text_size);
