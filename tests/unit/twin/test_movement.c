/* SPDX-License-Identifier: Apache-2.0 */
/* DMA with strides and padding, atomics, meetings, arguments by value; the layout that the twin mirrors. */
#include "tests/unit/twin/kernel_case.h"

#include <stddef.h>

static const enum af_twin policies[] = {AF_TWIN_FAST, AF_TWIN_CHECKED};

Test(movement, window_of_a_matrix) {
        struct {
                uint32_t rows, width, col, cols;
        } w = {37, 101, 13, 21};
        static uint16_t a[37 * 101 + 32], c[37 * 21];
        void *args[] = {a, c};
        uint64_t bytes[] = {37 * 101 * 2, sizeof(c)};
        char error[512];

        for (uint32_t i = 0; i < AF_ARRAY_SIZE(a); i++)
                a[i] = (uint16_t)(i * 7919);
        for (int policy = 0; policy < 2; policy++) {
                struct af_host_kernel *k = kernel_build("movement.cpp", "window", policies[policy]);
                struct af_twin_stats stats;
                memset(c, 0, sizeof(c));
                cr_assert_eq(kernel_run(k, args, bytes, 2, &w, 1, &stats, error), 0, "%s", error);
                for (uint32_t r = 0; r < 37; r++)
                        cr_assert_eq(memcmp(c + r * 21, a + r * 101 + 13, 42), 0, "row %u", r);
                uint64_t sectors = 0;
                for (uint32_t r = 0; r < 37; r++)
                        sectors += ((r * 101 + 13) * 2 + 41) / 32 - (r * 101 + 13) * 2 / 32 + 1;
                cr_assert_eq(stats.mte2_bytes, policy ? sectors * 32 : 0);
                cr_assert_eq(stats.mte3_bytes, policy ? (37 * 42 + 31) / 32 * 32 : 0);
                af_host_kernel_free(k);
        }
}

Test(movement, blocks_add_to_one_output) {
        static float a[4 * 64], c[64];
        void *args[] = {a, c};
        uint64_t bytes[] = {sizeof(a), sizeof(c)};
        uint32_t n = 64;
        char error[512];

        for (uint32_t i = 0; i < 256; i++)
                a[i] = (float)i;
        for (int policy = 0; policy < 2; policy++) {
                struct af_host_kernel *k = kernel_build("movement.cpp", "atomic_add", policies[policy]);
                memset(c, 0, sizeof(c));
                cr_assert_eq(kernel_run(k, args, bytes, 2, &n, 4, NULL, error), 0, "%s", error);
                for (uint32_t i = 0; i < 64; i++)
                        cr_assert_eq(c[i], (float)(4 * i + 64 + 128 + 192), "element %u", i);
                af_host_kernel_free(k);
        }
}

Test(movement, blocks_meet) {
        static const char *const symbols[] = {"neighbour_soft", "neighbour_hard"};
        static float a[24 * 64], mid[24 * 64], c[24 * 64];
        static int32_t ws[24 * 8];
        void *args[] = {a, mid, c, ws};
        uint64_t bytes[] = {sizeof(a), sizeof(mid), sizeof(c), sizeof(ws)};
        uint32_t n = 64;
        char error[512];

        for (uint32_t i = 0; i < AF_ARRAY_SIZE(a); i++)
                a[i] = (float)i;
        for (int k = 0; k < 4; k++) {
                struct af_host_kernel *kernel = kernel_build("movement.cpp", symbols[k / 2], policies[k % 2]);
                memset(c, 0, sizeof(c));
                cr_assert_eq(kernel_run(kernel, args, bytes, 4, &n, 24, NULL, error), 0, "%s", error);
                for (uint32_t i = 0; i < AF_ARRAY_SIZE(a); i++)
                        cr_assert_eq(c[i], a[(i + 64) % AF_ARRAY_SIZE(a)], "element %u", i);
                struct af_twin_launch part = {.args = args,
                                              .n_args = 4,
                                              .tiling = &n,
                                              .block_dim = 24,
                                              .n_blocks = 12,
                                              .error = error,
                                              .error_size = sizeof(error)};
                cr_assert_eq(af_host_kernel_launch(kernel, &part), AF_HOST_KERNEL_E_CHECK);
                cr_assert_str_eq(error, "a kernel whose blocks meet needs all of them in one launch");
                af_host_kernel_free(kernel);
        }
}

Test(movement, values_by_value) {
        struct {
                uint8_t x;
                struct {
                        uint8_t a;
                        int64_t b;
                } pod;
                float f;
                uint64_t y;
        } values = {7, {200, -5}, 1.5f, 1u << 20};
        float out[5] = {0};
        void *args[] = {out};
        struct af_host_kernel *k = kernel_build("movement.cpp", "by_value", AF_TWIN_FAST);

        cr_assert_eq(kernel_run(k, args, NULL, 1, &values, 1, NULL, NULL), 0);
        cr_assert_eq(out[0], 7);
        cr_assert_eq(out[1], 200);
        cr_assert_eq(out[2], -5);
        cr_assert_eq(out[3], 1.5f);
        cr_assert_eq(out[4], 1u << 20);
        af_host_kernel_free(k);
}

/* twin/core.h says these again in C++, because twin/ includes numeric/ only. */
Test(movement, launch_layout_is_the_one_that_the_twin_mirrors) {
        static const char text[] = "#include <stddef.h>\n#include \"kernel_operator.h\"\nusing namespace AscendC;\nusing L = "
                                   "twin::Launch;\nusing T = twin::Stats;\n"
                                   "extern \"C\" __global__ __aicore__ void k(GM_ADDR a) {\n        static const uint32_t v[] = "
                                   "{sizeof(L), sizeof(T), offsetof(L, arg_bytes), offsetof(L, n_args), offsetof(L, tiling),\n"
                                   "                offsetof(L, block_dim), offsetof(L, first_block), offsetof(L, n_blocks), offsetof(L, "
                                   "count_only), offsetof(L, stats), offsetof(L, error), offsetof(L, error_size),\n"
                                   "                offsetof(T, mte2_cycles), offsetof(T, total_cycles), offsetof(T, n_dma_calls)};\n      "
                                   "  memcpy(a, v, sizeof(v));\n}\n";
        struct af_host_kernel *k = kernel_build_text("k", text, AF_TWIN_FAST, NULL);
        uint32_t got[15];
        void *args[] = {got};
        const uint32_t want[15] = {sizeof(struct af_twin_launch),
                                   sizeof(struct af_twin_stats),
                                   offsetof(struct af_twin_launch, arg_bytes),
                                   offsetof(struct af_twin_launch, n_args),
                                   offsetof(struct af_twin_launch, tiling),
                                   offsetof(struct af_twin_launch, block_dim),
                                   offsetof(struct af_twin_launch, first_block),
                                   offsetof(struct af_twin_launch, n_blocks),
                                   offsetof(struct af_twin_launch, count_only),
                                   offsetof(struct af_twin_launch, stats),
                                   offsetof(struct af_twin_launch, error),
                                   offsetof(struct af_twin_launch, error_size),
                                   offsetof(struct af_twin_stats, mte2_cycles),
                                   offsetof(struct af_twin_stats, total_cycles),
                                   offsetof(struct af_twin_stats, n_dma_calls)};

        cr_assert_eq(kernel_run(k, args, NULL, 1, NULL, 1, NULL, NULL), 0);
        cr_assert_eq(memcmp(got, want, sizeof(want)), 0);
        af_host_kernel_free(k);
}
