/* SPDX-License-Identifier: Apache-2.0 */
/* Every vector call of the twin, under both policies, against plain loops. */
#include "tests/unit/twin/kernel_case.h"

#include "tests/unit/twin/calls_expect.h"

#define N_CASES 134

enum fill { FILL_F32, FILL_F32_SPECIAL, FILL_F16, FILL_F16_SPECIAL, FILL_BITS, FILL_POSITIVE, N_FILLS };

static uint32_t next(uint32_t *state) {
        *state = *state * 1664525u + 1013904223u;
        return *state;
}

static void fill(uint8_t *bytes, size_t n, enum fill how, uint32_t seed) {
        static const float special[] = {
                0.0f, -0.0f, __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 1e-40f, 65504.0f, 65520.0f, 0.5f, 2.5f, 3e9f, -3e9f};

        for (size_t k = 0; k < n / 4; k++) {
                uint32_t r = next(&seed);
                float f = ((float)(int32_t)r * 0x1p-31f) * (how == FILL_F16 ? 30.0f : 100.0f);
                if ((how == FILL_F32_SPECIAL || how == FILL_F16_SPECIAL) && (r >> 8) % 7 == 0)
                        f = special[(r >> 16) % 12];
                if (how == FILL_POSITIVE)
                        f = af_f32_abs(f) + 0x1p-10f;
                uint32_t word = how == FILL_BITS ? r ^ next(&seed) >> 16 : af_bits_f32(f);
                if (how == FILL_F16 || how == FILL_F16_SPECIAL)
                        word = af_f16_from_f32(f) | (uint32_t)af_f16_from_f32(f * 0.37f) << 16;
                memcpy(bytes + 4 * k, &word, 4);
        }
}

static bool expect(int number, const struct call_case *x) {
        return expect_arith(number, x) || expect_cast(number, x) || expect_select(number, x) || expect_reduce(number, x) ||
               expect_move(number, x) || expect_forms(number, x);
}

/* Which fills a case takes: its source type, and no NaN where plain loops would have to define it. */
static bool takes(int number, enum fill how) {
        bool half = (number >= 6 && number <= 11) || number == 18 || number == 23 || number == 27 || number == 28 || number == 30 ||
                    number == 34 || number == 41 || number == 42 || number == 45 || number == 70 || number == 71 || number == 76 ||
                    number == 78 || number == 80 || number == 83 || number == 86 || number == 91 || number == 93 || number == 96 ||
                    number == 99 || number == 101 || number == 121 || number == 123 || number == 124 || number == 126 || number == 128;
        bool moves = (number >= 104 && number <= 117) || number == 85 || number == 87 || number == 88 || number == 86 || number == 129 ||
                     number == 130;
        bool integer = (number >= 12 && number <= 16) || number == 24 || number == 31 || number == 32 || (number >= 35 && number <= 39) ||
                       (number >= 64 && number <= 69) || number == 55 || number == 72 || number == 73 || number == 74 || number == 77 ||
                       number == 81;
        bool orders = (number >= 92 && number <= 96) || (number >= 100 && number <= 103 && number != 102) || number == 132;

        if (how == FILL_BITS)
                return integer || moves;
        if (moves || integer)
                return false;
        if (how == FILL_F16 || how == FILL_F16_SPECIAL)
                return half && !(orders && how == FILL_F16_SPECIAL);
        return !half && !(orders && how == FILL_F32_SPECIAL);
}

static void check(struct af_host_kernel *const *kernels, int number, enum fill how, int n) {
        static _Alignas(64) uint8_t in[2 * BYTES];
        static _Alignas(64) union operand want, got[2];
        uint64_t sizes[] = {sizeof(in), BYTES};
        uint32_t tiling[] = {(uint32_t)number, (uint32_t)n};

        fill(in, sizeof(in), how, (uint32_t)number * 31 + (uint32_t)n);
        memset(&want, 0, sizeof(want));
        struct call_case x = {.a = (const void *)in, .b = (const void *)(in + BYTES), .z = &want, .n = n};
        cr_assert(expect(number, &x), "case %d has no expectation", number);
        for (int policy = 0; policy < 2; policy++) {
                char error[512];
                void *args[] = {in, &got[policy]};
                memset(&got[policy], 0xa5, BYTES);
                cr_expect_eq(kernel_run(kernels[policy], args, sizes, 2, tiling, 1, NULL, error), 0, "case %d: %s", number, error);
                for (uint32_t k = 0; k < BYTES; k++)
                        if (got[policy].b[k] != want.b[k]) {
                                cr_expect(false, "case %d, n %d, fill %d, policy %d: byte %u: %02x, not %02x", number, n, how, policy, k,
                                          got[policy].b[k], want.b[k]);
                                break;
                        }
        }
}

Test(calls, give_what_plain_loops_give, .timeout = 280) {
        static const int counts[] = {1000, 64, 1, 7, 100};
        struct af_host_kernel *kernels[] = {kernel_build("calls.cpp", "calls", AF_TWIN_FAST),
                                            kernel_build("calls.cpp", "calls", AF_TWIN_CHECKED)};

        for (int number = 0; number < N_CASES; number++) {
                int n_fills = 0;
                for (int how = 0; how < N_FILLS; how++) {
                        n_fills += takes(number, (enum fill)how);
                        for (uint32_t k = 0; k < AF_ARRAY_SIZE(counts) && takes(number, (enum fill)how); k++)
                                check(kernels, number, (enum fill)how, counts[k]);
                }
                cr_assert_gt(n_fills, 0, "case %d is never tried", number);
        }
        af_host_kernel_free(kernels[0]);
        af_host_kernel_free(kernels[1]);
}
