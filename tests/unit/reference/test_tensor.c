/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/lib/eval.h"

static struct af_tensor row(enum af_dtype d, int64_t n, int64_t stride, void *data) {
        return (struct af_tensor){.dtype = d, .rank = 1, .dims = {n}, .strides = {stride}, .data = data};
}

Test(tensor, compare) {
        float a[] = {1, NAN, -0.0f, INFINITY, 2}, b[] = {1, -NAN, 0.0f, INFINITY, 3};
        struct af_tensor x = row(AF_DTYPE_FLOAT32, 5, 1, a), y = row(AF_DTYPE_FLOAT32, 5, 1, b);
        uint64_t first;
        double error;

        cr_expect_eq(af_tensor_compare(&x, &x, &error, &first), 0);
        cr_expect_eq(error, 0);
        cr_expect_eq(af_tensor_compare(&x, &y, &error, &first), 2); /* -0.0 is not +0.0; a NaN is a NaN */
        cr_expect_eq(first, 2);
        cr_expect_float_eq(error, 1.0 / 3, 1e-15);
        y.dims[0] = 4;
        cr_expect_gt(af_tensor_compare(&x, &y, &error, NULL), 0);
        cr_expect_eq(error, INFINITY);
}

Test(tensor, compare_strided) {
        int16_t a[] = {1, 99, 2, 98, 3}, b[] = {1, 2, 3};
        struct af_tensor x = row(AF_DTYPE_INT16, 3, 2, a), y = row(AF_DTYPE_INT16, 3, 1, b);

        cr_expect_eq(af_tensor_compare(&x, &y, NULL, NULL), 0);
        b[2] = 4;
        cr_expect_eq(af_tensor_compare(&x, &y, NULL, NULL), 1);
}

Test(tensor, fill) {
        for (unsigned d = 1; d < AF_N_DTYPES; d++) {
                uint64_t a[4000], b[4000];
                struct af_tensor x = row(d, 3000, 1, a), y = row(d, 3000, 1, b), wide = row(d, 1500, 2, b);
                uint32_t n_special = 0;
                af_tensor_fill(&x, 5, true);
                af_tensor_fill(&y, 5, true);
                cr_expect_eq(af_tensor_compare(&x, &y, NULL, NULL), 0);
                af_tensor_fill(&y, 6, true);
                cr_expect_gt(af_tensor_compare(&x, &y, NULL, NULL), 1000);
                for (int i = 0; i < 3000; i++) {
                        double v = af_test_number_get((char *)a + i * af_dtype_size(d), d);
                        n_special += !isfinite(v);
                }
                cr_expect_eq(n_special > 20, af_dtype_kind(d) == 'f');
                af_tensor_fill(&wide, 5, false);
                af_tensor_fill(&x, 5, false);
                x.dims[0] = 1500;
                cr_expect_eq(af_tensor_compare(&x, &wide, NULL, NULL), 0, "strides do not change the data");
                for (int i = 0; i < 1500; i++)
                        cr_expect(fabs(af_test_number_get((char *)a + i * af_dtype_size(d), d)) <= 128);
        }
}
