/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/twin/kernel_case.h"

#include "numeric/prim.h"

#define N 10007

struct tiling {
        uint32_t n, tile;
};

static float *ramp(float from, float step) {
        float *p = malloc(N * sizeof(*p));

        for (uint32_t i = 0; i < N; i++)
                p[i] = from + step * (float)i;
        return p;
}

Test(host_kernel, runs_a_kernel_split_by_blocks_as_in_one_launch) {
        struct af_host_kernel *k = kernel_build("add_exp.cpp", "add_exp", AF_TWIN_FAST);
        float *a = ramp(-1.0f, 0.0005f), *b = ramp(0.25f, -0.0001f), *c = calloc(N, 4), *d = calloc(N, 4);
        void *args[] = {a, b, c};
        struct tiling tiling = {N, 1024};

        cr_assert_eq(kernel_run(k, args, NULL, 3, &tiling, 4, NULL, NULL), 0);
        for (uint32_t i = 0; i < N; i++) {
                float y = af_f32_mul(af_f32_exp(af_f32_add(a[i], b[i])), 2.0f), want = y > 3.0f ? y : 3.0f;
                cr_assert_eq(af_bits_f32(c[i]), af_bits_f32(want), "element %u", i);
        }
        args[2] = d;
        for (uint32_t block = 0; block < 4; block++) {
                struct af_twin_launch l = {
                        .args = args, .n_args = 3, .tiling = &tiling, .block_dim = 4, .first_block = block, .n_blocks = 1};
                cr_assert_eq(af_host_kernel_launch(k, &l), 0);
        }
        cr_assert_eq(memcmp(c, d, N * 4), 0);
        af_host_kernel_free(k);
        free(a), free(b), free(c), free(d);
}

#if defined(__x86_64__)
/* As torch.set_flush_denormal(True) leaves it, and another rounding: sums and products would differ. */
Test(host_kernel, bits_do_not_depend_on_the_callers_floating_point_mode) {
        struct af_host_kernel *k = kernel_build("add_exp.cpp", "add_exp", AF_TWIN_FAST);
        float *a = ramp(-1.0f, 0.0005f), *b = ramp(0.25f, -0.0001f), *c = calloc(N, 4), *d = calloc(N, 4);
        void *args[] = {a, b, c};
        struct tiling tiling = {N, 1024};
        unsigned csr = __builtin_ia32_stmxcsr();

        cr_assert_eq(kernel_run(k, args, NULL, 3, &tiling, 4, NULL, NULL), 0);
        args[2] = d;
        __builtin_ia32_ldmxcsr(csr | 0x8040 | 0x6000); /* flush, denormals are zero, round towards zero */
        int r = kernel_run(k, args, NULL, 3, &tiling, 4, NULL, NULL);
        unsigned after = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(csr);
        cr_assert_eq(r, 0);
        cr_assert_eq(after & 0xffc0, (csr | 0x8040 | 0x6000) & 0xffc0, "the caller's mode is back");
        cr_assert_eq(memcmp(c, d, N * 4), 0);
        af_host_kernel_free(k);
        free(a), free(b), free(c), free(d);
}
#endif

Test(host_kernel, refuses_wrong_calls) {
        struct af_host_kernel *k = kernel_build("add_exp.cpp", "add_exp", AF_TWIN_FAST);
        void *args[3] = {0};
        struct tiling tiling = {0, 1024};
        char error[512];

        cr_assert_eq(kernel_run(k, args, NULL, 2, &tiling, 1, NULL, error), AF_HOST_KERNEL_E_CHECK);
        cr_assert_str_eq(error, "the kernel takes another number of pointers");
        cr_assert_eq(kernel_run(k, args, NULL, 3, NULL, 1, NULL, error), AF_HOST_KERNEL_E_CHECK);
        cr_assert_eq(kernel_run(k, args, NULL, 3, &tiling, 0, NULL, error), AF_HOST_KERNEL_E_CHECK);
        cr_assert_eq(kernel_run(k, args, NULL, 3, &tiling, 1, NULL, error), 0);
        af_host_kernel_free(k);
}

Test(host_kernel, refuses_bytes_that_are_no_kernel) {
        struct af_host_kernel *k = NULL;
        AF_CLEANUP(af_freep) char *why = NULL, *why_elf = NULL;
        uint8_t elf[256] = {0x7f, 'E', 'L', 'F'};

        cr_assert_eq(af_host_kernel_load("hello", 5, &k, &why), AF_HOST_KERNEL_E_LOAD);
        cr_assert_str_eq(why, "not an ELF object");
        cr_assert_eq(af_host_kernel_load(elf, sizeof(elf), &k, &why_elf), AF_HOST_KERNEL_E_LOAD);
        cr_assert_not_null(why_elf);
        af_host_kernel_free(NULL);
}

/* The loader must not hand out an earlier object because a descriptor's number came again. */
Test(host_kernel, two_kernels_loaded_through_one_descriptor_number_differ) {
        static const char text[] =
                "#include \"kernel_operator.h\"\nusing namespace AscendC;\nextern \"C\" __global__ __aicore__ void k(GM_ADDR a) {\n"
                "        GlobalTensor<int32_t> g;\n        g.SetGlobalBuffer((__gm__ int32_t *)a);\n        g.SetValue(0, VALUE);\n}\n";
        struct af_host_kernel *one = kernel_build_text("k", text, AF_TWIN_FAST, "-DVALUE=1"),
                              *two = kernel_build_text("k", text, AF_TWIN_FAST, "-DVALUE=2");
        int32_t x = 0, y = 0;
        void *ax[] = {&x}, *ay[] = {&y};

        cr_assert_eq(kernel_run(one, ax, NULL, 1, NULL, 1, NULL, NULL), 0);
        cr_assert_eq(kernel_run(two, ay, NULL, 1, NULL, 1, NULL, NULL), 0);
        cr_assert_eq(x, 1);
        cr_assert_eq(y, 2);
        af_host_kernel_free(one);
        af_host_kernel_free(two);
}
