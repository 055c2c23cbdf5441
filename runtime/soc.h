/* SPDX-License-Identifier: Apache-2.0 */
/* A SoC as data (rules/soc/<name>.yaml): sizes, cores, dtypes and the cost model that tiling uses. */
#pragma once

#include "numeric/dtype.h"

struct af_dma_cost {
        double a, b, h;
}; /* cycles = bytes / (a + b / block_dim) + h per transfer */
struct af_vec_cost {
        double k, c;
}; /* cycles = k * elements + c */

struct af_soc {
        char name[64];      /* "Ascend910B2" */
        char arch[32];      /* "dav-2201" */
        char ccec_arch[32]; /* "dav-c220-vec" */
        uint32_t vector_cores;
        uint32_t ub_bytes;              /* usable by InitBuffer: 184 KiB - 256 on 2201 */
        uint32_t queue_buffers;         /* live ones per TPosition */
        uint32_t max_inputs, max_nodes; /* of one fused kernel */
        uint32_t dtypes;                /* AF_DTYPE_BIT mask that the device moves */
        bool data_copy_pad;             /* exact tails */
        struct af_dma_cost load, load_small, store;
        double head_mte2_base, head_mte2_per_block, head_mte3, head_vector;
        double head_mte2_small_base, head_mte2_small_per_block; /* below head_mte2_small_bytes */
        double head_mte2_small_bytes;
        double small_bytes; /* loads below this use load_small */
        /* Calls of the vector unit by what they read: two operands, compares, selects and reductions; one operand or none; 64-bit elements
         * on a side; the two casts with figures of their own. */
        struct af_vec_cost vec_default_f32, vec_default_f16, vec_unary_f32, vec_unary_f16, vec_wide, vec_u8_f16, vec_f32_f16;
        double sync_all_cycles; /* all cores meet */
        double launch_cycles;   /* what one more kernel launch costs */
};
