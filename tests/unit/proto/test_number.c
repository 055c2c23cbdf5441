/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "numeric/half.h"
#include "proto/number.h"
#include "tests/unit/proto/random.h"

static int element(enum af_dtype d, const char *text, uint64_t *ret_bits) {
        uint8_t bytes[8] = {0};
        int r = af_number_element(d, text, strlen(text), bytes);

        *ret_bits = 0;
        for (unsigned i = 0; i < af_dtype_size(d); i++)
                *ret_bits |= (uint64_t)bytes[i] << (8 * i);
        return r;
}

static void expect(enum af_dtype d, const char *text, uint64_t bits) {
        uint64_t got;

        cr_assert_eq(element(d, text, &got), 0, "%s", text);
        cr_assert_eq(got, bits, "%s: %llx, not %llx", text, (unsigned long long)got, (unsigned long long)bits);
}

static void refuse(enum af_dtype d, const char *text, int error) {
        uint64_t got;

        cr_assert_eq(element(d, text, &got), error, "%s", text);
}

Test(number, rounds_floats_once) {
        expect(AF_DTYPE_FLOAT32, "1", 0x3f800000);
        expect(AF_DTYPE_FLOAT32, "-0", 0x80000000);
        expect(AF_DTYPE_FLOAT32, "-0.0", 0x80000000);
        expect(AF_DTYPE_FLOAT32, "0.1", 0x3dcccccd);
        expect(AF_DTYPE_FLOAT64, "0.1", 0x3fb999999999999a);
        expect(AF_DTYPE_FLOAT32, "16777217", 0x4b800000);
        expect(AF_DTYPE_FLOAT32, "1e-46", 0);
        expect(AF_DTYPE_FLOAT32, "1e-45", 1);
        /* Just above the middle of two floats; in double it would be the middle, and go to the even one. */
        expect(AF_DTYPE_FLOAT32, "1.000000059604644775390625", 0x3f800000);
        expect(AF_DTYPE_FLOAT32, "1.000000059604644775390625000000001", 0x3f800001);
        expect(AF_DTYPE_FLOAT16, "1.00048828125", 0x3c00);
        expect(AF_DTYPE_FLOAT16, "1.000488281250000000000000000000001", 0x3c01);
        expect(AF_DTYPE_FLOAT16, "-1.000488281250000000000000000000001", 0xbc01);
        expect(AF_DTYPE_FLOAT16, "1.00146484375", 0x3c02);
        expect(AF_DTYPE_FLOAT16, "1.001464843749999999999999999999999", 0x3c01);
        expect(AF_DTYPE_BFLOAT16, "1.00390625", 0x3f80);
        expect(AF_DTYPE_BFLOAT16, "1.003906250000000000000000000000001", 0x3f81);
        expect(AF_DTYPE_FLOAT16, "0.1", 0x2e66);
        expect(AF_DTYPE_BFLOAT16, "0.1", 0x3dcd);
        expect(AF_DTYPE_FLOAT16, "65504", 0x7bff);
        expect(AF_DTYPE_FLOAT16, "65519.99999999999999999999", 0x7bff);
        expect(AF_DTYPE_FLOAT16, "2.98023223876953125e-8", 0);
        expect(AF_DTYPE_FLOAT16, "2.98023223876953126e-8", 1);
        expect(AF_DTYPE_FLOAT16, "1e-500", 0);
        expect(AF_DTYPE_FLOAT16, "-1e-500", 0x8000);
        expect(AF_DTYPE_BFLOAT16, "9.1835496e-41", 1);
        refuse(AF_DTYPE_FLOAT16, "65520", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_FLOAT16, "1e400", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_BFLOAT16, "3.4e38", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_FLOAT32, "3.5e38", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_FLOAT64, "1e309", AF_NUMBER_E_RANGE);
        cr_assert_eq(fegetround(), FE_TONEAREST, "left as it was");
}

Test(number, keeps_integers_exact) {
        expect(AF_DTYPE_INT64, "9223372036854775807", INT64_MAX);
        expect(AF_DTYPE_INT64, "-9223372036854775808", (uint64_t)INT64_MIN);
        expect(AF_DTYPE_INT64, "9007199254740993", 9007199254740993);
        expect(AF_DTYPE_INT32, "-2147483648", 0x80000000);
        expect(AF_DTYPE_INT8, "-128", 0x80);
        expect(AF_DTYPE_UINT8, "255", 255);
        expect(AF_DTYPE_INT16, "1e3", 1000);
        expect(AF_DTYPE_INT16, "-5.0", 0xfffb);
        expect(AF_DTYPE_BOOL, "1", 1);
        expect(AF_DTYPE_BOOL, "0", 0);
        refuse(AF_DTYPE_INT64, "9223372036854775808", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_INT64, "1e18", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_INT64, "99999999999999999999999999", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_INT32, "2147483648", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_INT8, "128", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_UINT8, "256", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_UINT8, "-1", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_BOOL, "2", AF_NUMBER_E_RANGE);
        refuse(AF_DTYPE_INT32, "1.5", AF_NUMBER_E_SYNTAX);
}

Test(number, refuses_what_is_no_decimal) {
        static const char *const bad[] = {"",   "-",  "abc", "0x10", "inf",   "nan", "-inf",  "1e",      "1.",
                                          ".5", "+1", " 1",  "1 ",   "1e5.0", "--1", "1_000", "infinity"};

        for (size_t i = 0; i < AF_ARRAY_SIZE(bad); i++) {
                refuse(AF_DTYPE_FLOAT32, bad[i], AF_NUMBER_E_SYNTAX);
                refuse(AF_DTYPE_FLOAT16, bad[i], AF_NUMBER_E_SYNTAX);
                refuse(AF_DTYPE_FLOAT64, bad[i], AF_NUMBER_E_SYNTAX);
                refuse(AF_DTYPE_INT32, bad[i], AF_NUMBER_E_SYNTAX);
        }
}

/* The middle of each pair of neighbours, a hair below and above: the whole of float16 and bfloat16. */
static void check_middles(enum af_dtype d, uint16_t last, float (*widen)(uint16_t)) {
        for (uint32_t h = 0; h < last; h++) {
                double low = widen((uint16_t)h), high = widen((uint16_t)(h + 1)), middle = (low + high) / 2;
                char text[1400];
                int n = snprintf(text, sizeof(text), "%.*f", 200, middle); /* exact: a middle has fewer digits */
                expect(d, text, h % 2 ? h + 1 : h);
                snprintf(text + n, sizeof(text) - (size_t)n, "1");
                expect(d, text, h + 1);
                snprintf(text, sizeof(text), "%.17g", nextafter(middle, 0));
                expect(d, text, h);
        }
}

static float widen_f16(uint16_t h) {
        return af_f16_to_f32(h);
}

static float widen_bf16(uint16_t h) {
        return af_bf16_to_f32(h);
}

Test(number, every_float16_boundary) {
        check_middles(AF_DTYPE_FLOAT16, 0x7bff, widen_f16);
}

Test(number, every_bfloat16_boundary) {
        check_middles(AF_DTYPE_BFLOAT16, 0x7f7f, widen_bf16);
}

Test(number, doubles_and_floats_come_back) {
        struct random r = random_make("number");

        for (int i = 0; i < 50000; i++) {
                uint64_t bits = random_u64(&r);
                double d;
                float s;
                uint32_t low = (uint32_t)bits;
                char text[64];
                memcpy(&d, &bits, 8);
                memcpy(&s, &low, 4);
                if (isfinite(d)) {
                        snprintf(text, sizeof(text), "%.17g", d);
                        expect(AF_DTYPE_FLOAT64, text, bits);
                }
                if (isfinite(s)) {
                        snprintf(text, sizeof(text), "%.9g", s);
                        expect(AF_DTYPE_FLOAT32, text, low);
                }
        }
}
