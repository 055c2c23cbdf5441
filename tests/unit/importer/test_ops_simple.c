/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops beyond the node tests: placement before opset 7, parameters, signs of remainders, bits, optimizers. */
#include "tests/unit/importer/one_node.h"

Test(ops_simple, before_opset_7_the_axis_places_the_second) {
        struct numbers x = T(F32, 3, DIMS(1, 2, 2), 1, 2, 3, 4), y = T(F32, 1, DIMS(2), 10, 20);
        CHECK(.op = "Add", .opset = 6, .attrs = "broadcast=1;axis=1", .in = {x, y}, .want = {T(F32, 3, DIMS(1, 2, 2), 11, 12, 23, 24)});
        CHECK(.op = "Add", .opset = 6, .attrs = "broadcast=1", .in = {x, y}, .want = {T(F32, 3, DIMS(1, 2, 2), 11, 22, 13, 24)});
        CHECK(.op = "Add", .opset = 7, .in = {x, y}, .want = {T(F32, 3, DIMS(1, 2, 2), 11, 22, 13, 24)});
        CHECK(.op = "PRelu", .opset = 6, .in = {T(F32, 3, DIMS(1, 2, 1), -1, -2), y}, .want = {T(F32, 3, DIMS(1, 2, 1), -10, -40)});
}

Test(ops_simple, remainders_and_bits) {
        struct numbers a = T(I32, 1, DIMS(4), -4, 7, 5, -8), b = T(I32, 1, DIMS(4), 3, -3, 8, 5);
        CHECK(.op = "Mod", .in = {a, b}, .want = {T(I32, 1, DIMS(4), 2, -2, 5, 2)});
        CHECK(.op = "Mod", .attrs = "fmod=1", .in = {a, b}, .want = {T(I32, 1, DIMS(4), -1, 1, 5, -3)});
        CHECK(.op = "BitShift", .attrs = "direction=LEFT", .in = {T(U8, 1, DIMS(3), 16, 4, 255), T(U8, 1, DIMS(3), 1, 9, 7)},
              .want = {T(U8, 1, DIMS(3), 32, 0, 128)});
        CHECK(.op = "BitShift", .attrs = "direction=RIGHT", .in = {T(U8, 1, DIMS(2), 16, 255), T(U8, 1, DIMS(2), 1, 8)},
              .want = {T(U8, 1, DIMS(2), 8, 0)});
        CHECK(.op = "BitwiseAnd", .in = {a, b}, .want = {T(I32, 1, DIMS(4), 0, 5, 0, 0)});
        CHECK(.op = "BitwiseNot", .in = {a}, .want = {T(I32, 1, DIMS(4), 3, -8, -6, 7)});
}

Test(ops_simple, kinds_of_numbers) {
        struct numbers x = T(F32, 1, DIMS(4), INFINITY, -INFINITY, NAN, 1);
        CHECK(.op = "IsNaN", .in = {x}, .want = {T(BOOL, 1, DIMS(4), 0, 0, 1, 0)});
        CHECK(.op = "IsInf", .in = {x}, .want = {T(BOOL, 1, DIMS(4), 1, 1, 0, 0)});
        CHECK(.op = "IsInf", .attrs = "detect_negative=0", .in = {x}, .want = {T(BOOL, 1, DIMS(4), 1, 0, 0, 0)});
        CHECK(.op = "IsInf", .attrs = "detect_positive=0", .in = {x}, .want = {T(BOOL, 1, DIMS(4), 0, 1, 0, 0)});
        CHECK(.op = "IsInf", .attrs = "detect_positive=0;detect_negative=0", .in = {x}, .want = {T(BOOL, 1, DIMS(4), 0, 0, 0, 0)});
}

Test(ops_simple, activations_with_parameters) {
        struct numbers x = T(F32, 1, DIMS(3), -2, 0, 3);
        double e = expm1(-2), s = 1 / (1 + exp(4)), t = 3 / (1 + exp(-6));
        CHECK(.op = "Elu", .attrs = "alpha=0.5", .in = {x}, .want = {T(F32, 1, DIMS(3), 0.5 * e, 0, 3)}, .tolerance = 1e-6);
        CHECK(.op = "Celu", .attrs = "alpha=2.0", .in = {x}, .want = {T(F32, 1, DIMS(3), 2 * expm1(-1), 0, 3)}, .tolerance = 1e-6);
        CHECK(.op = "ThresholdedRelu", .in = {x}, .want = {T(F32, 1, DIMS(3), 0, 0, 3)});
        CHECK(.op = "HardSigmoid", .attrs = "alpha=0.25;beta=0.25", .in = {x}, .want = {T(F32, 1, DIMS(3), 0, 0.25, 1)});
        CHECK(.op = "HardSwish", .in = {x}, .want = {T(F32, 1, DIMS(3), -1.0 / 3, 0, 3)}, .tolerance = 1e-6);
        CHECK(.op = "Swish", .opset = 24, .attrs = "alpha=2.0", .in = {x}, .want = {T(F32, 1, DIMS(3), -2 * s, 0, t)}, .tolerance = 1e-6);
        CHECK(.op = "Shrink", .attrs = "lambd=1.5;bias=0.5", .in = {x}, .want = {T(F32, 1, DIMS(3), -1.5, 0, 2.5)});
}

Test(ops_simple, optimizers) {
        struct numbers r = T(F32, 0, DIMS(0), 0.5), first = T(I64, 0, DIMS(0), 0), third = T(I64, 0, DIMS(0), 2);
        struct numbers x = T(F32, 1, DIMS(1), 2), g = T(F32, 1, DIMS(1), 1), h = T(F32, 1, DIMS(1), 3);
        const char *domain = "ai.onnx.preview.training";
        CHECK(.op = "Adagrad", .domain = domain, .attrs = "decay_factor=0.5;norm_coefficient=1.5", .in = {r, third, x, g, h},
              .want = {T(F32, 1, DIMS(1), 2 - 0.25 * 4 / sqrt(19)), T(F32, 1, DIMS(1), 19)}, .tolerance = 1e-6);
        CHECK(.op = "Momentum", .domain = domain, .attrs = "alpha=0.5;beta=0.25;mode=standard", .in = {r, first, x, g, h},
              .want = {T(F32, 1, DIMS(1), 0.75), T(F32, 1, DIMS(1), 2.5)});
        CHECK(.op = "Momentum", .domain = domain, .attrs = "alpha=0.5;beta=0.25;mode=nesterov", .in = {r, third, x, g, h},
              .want = {T(F32, 1, DIMS(1), 2 - 0.5 * 1.875), T(F32, 1, DIMS(1), 1.75)});
        CHECK(.op = "Adam", .domain = domain, .attrs = "alpha=0.5;beta=0.5;norm_coefficient_post=0.5", .in = {r, first, x, g, h, h},
              .want = {T(F32, 1, DIMS(1), 0.5 * (2 - 0.5 * 2 / sqrt(2))), T(F32, 1, DIMS(1), 2), T(F32, 1, DIMS(1), 2)}, .tolerance = 1e-6);
        CHECK(.op = "Adam", .domain = "another.domain", .in = {r, first, x, g, h, h}, .refused = "domain another.domain");
}

Test(ops_simple, quantisation_in_blocks_and_sixteen_bits) {
        struct numbers q = T(I8, 2, DIMS(2, 3), 1, 2, 3, 4, 5, 6), scale = T(F32, 2, DIMS(2, 2), 2, 10, 1, 0.5);
        CHECK(.op = "DequantizeLinear", .attrs = "axis=1;block_size=2", .in = {q, scale},
              .want = {T(F32, 2, DIMS(2, 3), 2, 4, 30, 4, 5, 3)});
        CHECK(.op = "QuantizeLinear", .attrs = "axis=1;block_size=2;output_dtype=3",
              .in = {T(F32, 2, DIMS(2, 3), 2, 4, 30, 4, 5, 3), scale}, .want = {q});
        CHECK(.op = "DequantizeLinear", .attrs = "axis=1;block_size=3", .in = {q, scale}, .refused = "shape of DequantizeLinear's blocks");
        CHECK(.op = "QuantizeLinear", .attrs = "output_dtype=5", .in = {T(F32, 1, DIMS(3), 1, 2.5, 99), T(F32, 0, DIMS(0), 0.001)},
              .want = {T(U8, 1, DIMS(3), 1000, 2500, 32767)});
        CHECK(.op = "QuantizeLinear", .attrs = "output_dtype=4", .in = {T(F32, 1, DIMS(1), 1), T(F32, 0, DIMS(0), 1)}, .refused = "dtype");
}

Test(ops_simple, ranges_in_half_precision) {
        CHECK(.op = "Range", .in = {T(F16, 0, DIMS(0), 1), T(F16, 0, DIMS(0), 3), T(F16, 0, DIMS(0), 0.5)},
              .want = {T(F16, 1, DIMS(4), 1, 1.5, 2, 2.5)});
}
