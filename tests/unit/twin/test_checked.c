/* SPDX-License-Identifier: Apache-2.0 */
/* The checked policy: what it counts, and a kernel for each rule that breaks it. */
#include "tests/unit/twin/kernel_case.h"

#define N 10007

struct tiling {
        uint32_t n, tile;
};

Test(checked, agrees_with_fast_and_counts_bytes_and_cycles) {
        struct af_host_kernel *fast = kernel_build("add_exp.cpp", "add_exp", AF_TWIN_FAST),
                              *checked = kernel_build("add_exp.cpp", "add_exp", AF_TWIN_CHECKED);
        float *a = malloc(N * 4), *b = malloc(N * 4), *c = calloc(N, 4), *d = calloc(N, 4);
        struct tiling tiling = {N, 1024};
        struct af_twin_stats stats, counted;
        uint64_t bytes[] = {N * 4, N * 4, N * 4};
        char error[512];

        for (uint32_t i = 0; i < N; i++) {
                a[i] = 0.001f * (float)(i % 3001) - 1.0f;
                b[i] = 0.5f - 0.0007f * (float)(i % 1999);
        }
        void *args[] = {a, b, c}, *checked_args[] = {a, b, d};
        cr_assert_eq(kernel_run(fast, args, bytes, 3, &tiling, 4, NULL, error), 0, "%s", error);
        cr_assert_eq(kernel_run(checked, checked_args, bytes, 3, &tiling, 4, &stats, error), 0, "%s", error);
        cr_assert_eq(memcmp(c, d, N * 4), 0);
        cr_assert_eq(stats.mte2_bytes, 2 * ((N * 4 + 31) / 32 * 32));
        cr_assert_eq(stats.mte3_bytes, (N * 4 + 31) / 32 * 32);
        cr_assert_eq(stats.scalar_bytes, 0);
        cr_assert_eq(stats.n_dma_calls, 3 * 10);
        cr_assert_eq(stats.n_vector_calls, 5 * 10);
        cr_assert_gt(stats.total_cycles, stats.mte2_cycles);
        cr_assert_gt(stats.mte2_cycles, 0);
        cr_assert_gt(stats.v_cycles, 0);

        struct af_twin_launch l = {.args = checked_args,
                                   .arg_bytes = bytes,
                                   .n_args = 3,
                                   .tiling = &tiling,
                                   .block_dim = 4,
                                   .n_blocks = 4,
                                   .count_only = 1,
                                   .stats = &counted};
        memset(d, 0, N * 4);
        cr_assert_eq(af_host_kernel_launch(checked, &l), 0);
        cr_assert_eq(memcmp(&stats, &counted, sizeof(stats)), 0);
        void *nothing[3] = {NULL};
        l.args = nothing;
        cr_assert_eq(af_host_kernel_launch(checked, &l), 0);
        cr_assert_eq(memcmp(&stats, &counted, sizeof(stats)), 0);
        for (uint32_t i = 0; i < N; i++)
                cr_assert_eq(d[i], 0.0f);
        af_host_kernel_free(fast);
        af_host_kernel_free(checked);
        free(a), free(b), free(c), free(d);
}

#define FINE ""
static const char *const messages[] = {
        /* 0 */ FINE,
        /* 1 */ "block 0: InitBuffer: 1 x 170016 bytes for VECCALC after 32768: more than the 188160 bytes of the unified buffer",
        /* 2 */ "block 0: InitBuffer: a VECCALC buffer of 0 bytes",
        /* 3 */ "block 0: TBuf::Get: 20000 bytes at byte 0 of VECCALC buffer 3, which has 16384",
        /* 4 */ "block 0: AllocTensor: the queue has no InitBuffer",
        /* 5 */ "block 0: AllocTensor: all 2 tensors of VECIN buffer 1 are in use, the core would hang (a FreeTensor is missing)",
        /* 6 */ "block 0: DeQue: VECIN buffer 1 holds no tensor, the core would hang",
        /* 7 */ "block 0: EnQue: the tensor of VECIN buffer 1 is in the queue already",
        /* 8 */ "block 0: FreeTensor: the tensor of VECIN buffer 1 is not allocated",
        /* 9 */ "block 0: FreeTensor: the tensor of VECIN buffer 1 is still in the queue",
        /* 10 */ "block 0: EnQue: the tensor (VECIN buffer 1) is not of this queue (VECOUT buffer 2)",
        /* 11 */ "block 0: EnQue: VECIN buffer 1 holds 1 tensor(s) already, its depth",
        /* 12 */ "block 0: TPipe ends with 1 VECIN tensor(s) not freed",
        /* 13 */ "block 0: AllocTensor: more than 8 live VECIN tensors",
        /* 14 */ "block 0: Adds: src (VECCALC buffer 3) starts at buffer byte 16388, not 32-byte aligned",
        /* 15 */ "block 0: Adds: src (VECIN buffer 1) touches 4100 bytes of a tensor of 4096 bytes",
        /* 16 */ "block 0: Adds: dst and src overlap in part (VECCALC buffer 3, bytes 16416..16671 and 16384..16639)",
        /* 17 */ "block 0: Cast: dst and src overlap in part (VECCALC buffer 3, bytes 16384..16511 and 16384..16639)",
        /* 18 */ "block 0: Adds: dst is a tensor that was never allocated",
        /* 19 */ "block 0: Adds: mask of 65 elements, at most 64 for these types",
        /* 20 */ "block 0: Adds: repeat 0 is outside 1..255 (a uint8_t: 256 becomes nothing)",
        /* 21 */ "block 0: Adds: src (VECCALC buffer 3) touches 16640 bytes of a tensor of 16384 bytes",
        /* 22 */ "block 0: WholeReduceSum: repeat 256 is outside 1..255 (a uint8_t: 256 becomes nothing)",
        /* 23 */ "block 0: Cast: RoundMode::CAST_NONE does not exist for these types",
        /* 24 */ "block 0: CompareScalar: 60 elements are 240 bytes, no multiple of 256",
        /* 25 */ "block 0: CompareScalar: int32_t compares with CMPMODE::EQ only",
        /* 26 */ "block 0: Select: the mode does not go with a scalar as second source",
        /* 27 */ "block 0: DataCopy: 400 bytes is no multiple of 32 (the device rounds silently; DataCopyPad copies exactly)",
        /* 28 */ "block 0: DataCopyPad: blockCount 4096 is beyond 4095",
        /* 29 */ "block 0: DataCopyPad: blockLen 2097152 bytes is beyond 2097151",
        /* 30 */ "block 0: DataCopyPad: blockLen 10 is no multiple of the element's 4 bytes",
        /* 31 */ "block 0: DataCopyPad: src: reads 100 bytes at byte 4000 of argument 0, which has 4096",
        /* 32 */ "block 0: DataCopyPad: padding of 9 + 0 elements is beyond 32 bytes a side",
        /* 33 */ "block 0: DataCopyPad: dst (VECIN buffer 1) touches 4160 bytes of a tensor of 4096 bytes",
        /* 34 */ "block 0: SetGlobalBuffer: 4100 bytes at byte 0 of argument 0, which has 4096",
        /* 35 */ "block 0: SetValue: GlobalTensor: writes 4 bytes at byte 4096 of argument 0, which has 4096",
        /* 36 */
        "block 0: Adds: src (VECCALC buffer 3, byte 16384): missing wait: V reads what MTE2 still writes; no flag orders MTE2 before V",
        /* 37 */
        "block 0: DataCopy: src (VECCALC buffer 3, byte 16384): missing wait: MTE3 reads what V still writes; no flag orders V before MTE3",
        /* 38 */
        "block 0: DataCopy: dst (VECIN buffer 1, byte 0): missing wait: MTE2 overwrites what V still reads; no flag orders V before MTE2",
        /* 39 */ "block 0: DataCopy: argument 1: missing wait: MTE2 reads GM that MTE3 still writes; no flag orders MTE3 before MTE2",
        /* 40 */ "block 0: WaitFlag<HardEvent::V_MTE3>(0): nothing set it, the core would hang",
        /* 41 */ "block 0: SetFlag<HardEvent::V_MTE3>(0): set twice without a WaitFlag between",
        /* 42 */ "block 0: SetFlag<HardEvent::V_MTE3>(3): nothing waits for it",
        /* 43 */ "block 0: AllocEventID: no id is left (six per pair of pipes; ReleaseEventID gives them back)",
        /* 44 */ "block 0: DataCopyPad: src (VECOUT buffer 2, byte 8432): undefined bytes reach GM",
        /* 45 */ "block 0: GetValue: element 62 (VECCALC buffer 3, byte 16632) is undefined",
        /* 46 */ "block 0: WholeReduceSum: src (VECIN buffer 1, byte 240): undefined bytes reach a reduction",
        /* 47 */ "block 0: Gather: srcOffset (VECCALC buffer 3, byte 16384): an undefined offset",
        /* 48 */ "block 0: Gather: offset 4096 of element 0 leaves src (VECIN buffer 1) of 4096 bytes",
        /* 49 */ "block 0: the kernel ends without SetAtomicNone",
        /* 50 */ FINE,
        /* 51 */ "block 0: DataCopyPad: src (VECOUT buffer 2, byte 8432): undefined bytes reach GM",
        /* 52 */ "block 0: ends while others wait in SyncAll, which would hang",
};

Test(checked, names_each_rule_that_is_broken) {
        struct af_host_kernel *k = kernel_build("rules.cpp", "rules", AF_TWIN_CHECKED);
        static float a[1024], c[1024];
        void *args[] = {a, c};
        uint64_t bytes[] = {sizeof(a), sizeof(c)};

        for (uint32_t rule = 0; rule < AF_ARRAY_SIZE(messages); rule++) {
                char error[512];
                int r = kernel_run(k, args, bytes, 2, &rule, 2, NULL, error);
                cr_expect_eq(r, messages[rule][0] ? AF_HOST_KERNEL_E_CHECK : 0, "rule %u: %d %s", rule, r, error);
                cr_expect_str_eq(error, messages[rule], "rule %u: %s", rule, error);
        }
        af_host_kernel_free(k);
}
