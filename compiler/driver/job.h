/* SPDX-License-Identifier: Apache-2.0 */
/* One plan job: what the passes share. Private to compiler/driver. Everything lives in the job's arena. */
#pragma once

#include "compiler/driver/driver.h"
#include "compiler/driver/sizes.h"

/* Where a value is in memory when the plan runs. */
struct af_location {
        uint32_t buffer;               /* into job->buffers, or AF_NONE: never in memory (inside a kernel, scalar constant) */
        const struct af_size *strides; /* elements */
        struct af_size offset;         /* elements */
};
/* A step: one group or one node left to the framework. */
struct af_unit {
        uint32_t group; /* or AF_NONE */
        uint32_t node;  /* framework node, or AF_NONE */
};
struct af_kernel_out {            /* per group */
        struct af_kernel *kernel; /* its own arguments; the phases are those of the group that it is alike */
        uint32_t alike;           /* first group that is the same but for numbers: its kernel serves both. Itself where there is none */
        struct af_tiling tiling;  /* in the job's arena */
        bool costly;              /* moves more than its nodes would by themselves: the fuse pass cuts such groups */
        struct af_digest key;
        const uint8_t *source; /* instantiated */
        uint32_t source_size;
        const char *symbol;
        uint32_t entry;            /* id in the bundle's kernel table: equal keys share one */
        uint32_t workspace_buffer; /* or AF_NONE */
};
struct af_job {
        struct af_arena *arena;
        struct af_arena scratch; /* of one question to the schedule */
        const struct af_env *env;
        const struct af_driver_opts *opts;
        struct af_diags *diags;
        struct af_soc soc; /* the environment's, with the options' limits */
        const void *canon;
        size_t n_canon;
        struct af_graph graph;
        struct af_graph read;    /* as the sender wrote it: each rewrite starts from it */
        bool *pinned;            /* per canonical node: kept whole */
        const char **pinned_why; /* why: the reason of its first piece that no kernel can run */
        uint32_t n_rounds;       /* of pinning */
        struct af_rewrite_notes notes;
        uint32_t *canonical; /* per node: its canonical number, or AF_NONE for a copy that the outputs pass added */
        struct af_fusion fusion;
        const char **unfit;            /* per node: NULL, or why no kernel can be made even of it alone */
        uint32_t *fence, n_fences;     /* per node: part of a group that failed to schedule; parts with two numbers are kept apart */
        struct af_kernel_out *kernels; /* per group */
        struct af_unit *units;
        uint32_t n_units;
        uint32_t *unit_of_node; /* per node: its unit, or AF_NONE (pure view) */
        struct af_sizes sizes;
        struct af_bundle_buffer *buffers;
        struct af_size *buffer_bytes, *buffer_offset; /* per buffer */
        uint32_t cap_bytes, cap_offsets;
        uint32_t n_buffers, cap_buffers;
        struct af_location *places; /* per value */
        struct af_bundle_builder builder;
        uint64_t pass_ns[16], schedule_ns; /* by place in driver.c's table */
        struct af_buf fallbacks;           /* "<canonical node> <reason>\n" */
};

/* A pass says so where what it found must be rewritten otherwise: the passes run again from `rewrite`. */
enum { AF_PASS_AGAIN = 1000 };

/* Passes, in the order of driver.c's table. 0, -errno, or AF_DRIVER_E_*. */
int af_pass_read(struct af_job *job);
int af_pass_rewrite(struct af_job *job);
int af_pass_outputs(struct af_job *job);
int af_pass_fuse(struct af_job *job);
int af_pass_emit(struct af_job *job);
int af_pass_order(struct af_job *job);
int af_pass_layout(struct af_job *job);
int af_pass_assemble(struct af_job *job);

/* Pins the nodes whose pieces fell back: AF_PASS_AGAIN where there were some. */
int af_job_pin_pieces(struct af_job *job);
/* Row-major strides of static dims; a size-0 or size-1 axis counts as 1. */
void af_job_dense_strides(const int64_t *dims, uint32_t rank, int64_t *ret_strides);
/* Bytes of a kernel's workspace. */
struct af_size af_job_workspace(struct af_job *job, const struct af_kernel *k);
