/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and normalisations beyond the node tests: empty axes, old coercion, parameters per group, training and inference. */
#include "tests/unit/importer/one_node.h"

Test(ops_norm, reductions_of_nothing_keep_the_elements) {
        struct numbers x = T(F32, 1, DIMS(2), -3, 4);
        const char *noop = "noop_with_empty_axes=1";
        CHECK(.op = "ReduceL1", .opset = 18, .attrs = noop, .in = {x}, .want = {T(F32, 1, DIMS(2), 3, 4)});
        CHECK(.op = "ReduceL2", .opset = 18, .attrs = noop, .in = {x}, .want = {T(F32, 1, DIMS(2), 3, 4)});
        CHECK(.op = "ReduceSumSquare", .opset = 18, .attrs = noop, .in = {x}, .want = {T(F32, 1, DIMS(2), 9, 16)});
        CHECK(.op = "ReduceSum", .attrs = noop, .in = {x}, .want = {x});
        CHECK(.op = "ReduceL2", .opset = 18, .attrs = "keepdims=0", .in = {x, INT64S(1, -1)}, .want = {T(F32, 0, DIMS(0), 5)});
        CHECK(.op = "ReduceL1", .opset = 13, .attrs = "axes=0,", .in = {T(I32, 1, DIMS(3), -1, 2, -3)}, .want = {T(I32, 1, DIMS(1), 6)});
}

Test(ops_norm, softmax_before_opset_13_is_of_a_matrix) {
        struct numbers x = T(F32, 3, DIMS(1, 2, 2), 0, 0, 0, 0);
        CHECK(.op = "Softmax", .opset = 11, .in = {x}, .want = {T(F32, 3, DIMS(1, 2, 2), 0.25, 0.25, 0.25, 0.25)});
        CHECK(.op = "Softmax", .opset = 13, .in = {x}, .want = {T(F32, 3, DIMS(1, 2, 2), 0.5, 0.5, 0.5, 0.5)});
        CHECK(.op = "Hardmax", .opset = 11, .in = {x}, .want = {T(F32, 3, DIMS(1, 2, 2), 1, 0, 0, 0)});
        CHECK(.op = "Hardmax", .opset = 13, .in = {x}, .want = {T(F32, 3, DIMS(1, 2, 2), 1, 0, 1, 0)});
        CHECK(.op = "Hardmax", .attrs = "axis=1", .in = {T(F32, 2, DIMS(1, 3), 1, INFINITY, 2)}, .want = {T(F32, 2, DIMS(1, 3), 0, 1, 0)});
}

Test(ops_norm, norms) {
        struct numbers x = T(F32, 2, DIMS(1, 4), 1, -1, 3, -3), w = T(F32, 1, DIMS(4), 1, 2, 3, 4);
        double r = 1 / sqrt(5 + 1e-5), h = 1 / sqrt(1 + 1e-5), g = 1 / sqrt(9 + 1e-5);
        CHECK(.op = "RMSNormalization", .opset = 23, .in = {x, w}, .want = {T(F32, 2, DIMS(1, 4), r, -2 * r, 9 * r, -12 * r)},
              .tolerance = 1e-6);
        CHECK(.op = "LayerNormalization", .opset = 17, .in = {x, w},
              .want = {T(F32, 2, DIMS(1, 4), r, -2 * r, 9 * r, -12 * r), T(F32, 2, DIMS(1, 1), 0), T(F32, 2, DIMS(1, 1), r)},
              .tolerance = 1e-6);
        CHECK(.op = "GroupNormalization", .opset = 21, .attrs = "num_groups=2", .in = {x, w, T(F32, 1, DIMS(4), 0, 0, 1, 1)},
              .want = {T(F32, 2, DIMS(1, 4), h, -2 * h, 9 * g + 1, -12 * g + 1)}, .tolerance = 1e-6);
        CHECK(.op = "GroupNormalization", .opset = 18, .attrs = "num_groups=2",
              .in = {x, T(F32, 1, DIMS(2), 1, 2), T(F32, 1, DIMS(2), 0, 1)}, .want = {T(F32, 2, DIMS(1, 4), h, -h, 6 * g + 1, -6 * g + 1)},
              .tolerance = 1e-6);
        CHECK(.op = "GroupNormalization", .attrs = "num_groups=3", .in = {x, w, w}, .refused = "shape");
        CHECK(.op = "LpNormalization", .attrs = "p=1", .in = {x}, .want = {T(F32, 2, DIMS(1, 4), 0.125, -0.125, 0.375, -0.375)});
        CHECK(.op = "LpNormalization", .attrs = "axis=0", .in = {x}, .want = {T(F32, 2, DIMS(1, 4), 1, -1, 1, -1)});
}

Test(ops_norm, arg_max_of_ties) {
        struct numbers x = T(I32, 2, DIMS(2, 3), 5, 7, 7, -1, -1, -2);
        CHECK(.op = "ArgMax", .attrs = "axis=1", .in = {x}, .want = {T(I64, 2, DIMS(2, 1), 1, 0)});
        CHECK(.op = "ArgMax", .attrs = "axis=1;keepdims=0;select_last_index=1", .in = {x}, .want = {T(I64, 1, DIMS(2), 2, 1)});
        CHECK(.op = "ArgMin", .in = {x}, .want = {T(I64, 2, DIMS(1, 3), 1, 1, 1)});
}

Test(ops_norm, losses) {
        struct numbers p = T(F32, 2, DIMS(2, 3), -1, -2, -3, -4, -5, -6), w = T(F32, 1, DIMS(3), 1, 2, 4);
        CHECK(.op = "NegativeLogLikelihoodLoss", .in = {p, INT64S(2, 2, 1)}, .want = {T(F32, 0, DIMS(0), 4)});
        CHECK(.op = "NegativeLogLikelihoodLoss", .attrs = "reduction=none", .in = {p, INT64S(2, 2, 1), w},
              .want = {T(F32, 1, DIMS(2), 12, 10)});
        CHECK(.op = "NegativeLogLikelihoodLoss", .attrs = "ignore_index=9", .in = {p, INT64S(2, 9, 1), w}, .want = {T(F32, 0, DIMS(0), 5)});
        CHECK(.op = "NegativeLogLikelihoodLoss", .attrs = "ignore_index=2;reduction=sum", .in = {p, INT64S(2, 2, 0)},
              .want = {T(F32, 0, DIMS(0), 4)});
        CHECK(.op = "NegativeLogLikelihoodLoss", .attrs = "ignore_index=16777216", .in = {p, INT64S(2, 2, 0)}, .refused = "ignore_index");
        double l = log(3);
        CHECK(.op = "SoftmaxCrossEntropyLoss", .attrs = "reduction=none", .in = {T(F32, 2, DIMS(1, 3), 2, 2, 2), INT64S(1, 0)},
              .want = {T(F32, 1, DIMS(1), l), T(F32, 2, DIMS(1, 3), -l, -l, -l)}, .tolerance = 1e-6);
}

Test(ops_norm, windows) {
        struct numbers x = T(F32, 3, DIMS(1, 1, 5), 1, 5, 2, 4, 3);
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;strides=2,", .in = {x}, .want = {T(F32, 3, DIMS(1, 1, 2), 5, 4)});
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;strides=2,;ceil_mode=1", .in = {x}, .want = {T(F32, 3, DIMS(1, 1, 3), 5, 4, 3)});
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;dilations=3,;pads=1,1", .in = {x}, .want = {T(F32, 3, DIMS(1, 1, 4), 2, 4, 5, 2)});
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;auto_pad=SAME_LOWER", .in = {x},
              .want = {T(F32, 3, DIMS(1, 1, 5), 1, 5, 5, 4, 4)});
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;pads=1,0", .in = {T(I8, 3, DIMS(1, 1, 2), -7, -9)},
              .want = {T(I8, 3, DIMS(1, 1, 2), -7, -7)});
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;pads=1,0", .in = {x},
              .want = {T(F32, 3, DIMS(1, 1, 5), 1, 5, 5, 4, 4), T(I64, 3, DIMS(1, 1, 5), 0, 1, 1, 3, 3)});
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,2;storage_order=1", .in = {T(F32, 4, DIMS(1, 1, 2, 3), 1, 1, 3, 2, 2, 1)},
              .want = {T(F32, 4, DIMS(1, 1, 1, 2), 2, 3), T(I64, 4, DIMS(1, 1, 1, 2), 1, 4)});
        CHECK(.op = "AveragePool", .attrs = "kernel_shape=3,;pads=1,1", .in = {x},
              .want = {T(F32, 3, DIMS(1, 1, 5), 3, 8.0 / 3, 11.0 / 3, 3, 3.5)}, .tolerance = 1e-6);
        CHECK(.op = "AveragePool", .attrs = "kernel_shape=2,;pads=1,1;count_include_pad=1", .in = {x},
              .want = {T(F32, 3, DIMS(1, 1, 6), 0.5, 3, 3.5, 3, 3.5, 1.5)});
        struct numbers row = T(F32, 3, DIMS(1, 1, 13), 1, 9, 2, 4, 3, 8, 5, 7, 6, 0, 1, 2, 3);
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=11,;strides=2,;pads=1,1", .in = {row}, .want = {T(F32, 3, DIMS(1, 1, 3), 9, 9, 8)});
        CHECK(.op = "AveragePool", .attrs = "kernel_shape=12,", .in = {row}, .want = {T(F32, 3, DIMS(1, 1, 2), 4, 50.0 / 12)},
              .tolerance = 1e-6);
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=65,", .in = {x}, .refused = "shape");
        CHECK(.op = "HannWindow", .attrs = "periodic=0", .in = {INT64S(1, 3)}, .want = {T(F32, 1, DIMS(3), 0, 1, 0)}, .tolerance = 1e-6);
        CHECK(.op = "Resize", .attrs = "mode=linear;coordinate_transformation_mode=align_corners",
              .in = {T(F32, 1, DIMS(2), 0, 4), {0}, {0}, INT64S(1, 5)}, .want = {T(F32, 1, DIMS(5), 0, 1, 2, 3, 4)}, .tolerance = 1e-6);
        CHECK(.op = "Upsample", .opset = 7, .attrs = "mode=nearest;scales=2.0", .in = {T(F32, 1, DIMS(2), 0, 4)}, .refused = "shape");
        CHECK(.op = "Upsample", .opset = 9, .in = {T(F32, 1, DIMS(2), 0, 4), T(F32, 1, DIMS(1), 2)},
              .want = {T(F32, 1, DIMS(4), 0, 0, 4, 4)});
}

Test(ops_norm, powers_of_windows) {
        struct numbers x = T(F32, 3, DIMS(1, 1, 5), 1, -5, 2, -4, 3);
        CHECK(.op = "LpPool", .attrs = "kernel_shape=2,", .in = {x}, .want = {T(F32, 3, DIMS(1, 1, 4), sqrt(26), sqrt(29), sqrt(20), 5)},
              .tolerance = 1e-6);
        CHECK(.op = "LpPool", .attrs = "kernel_shape=2,;p=1;pads=1,0", .in = {x}, .want = {T(F32, 3, DIMS(1, 1, 5), 1, 6, 7, 6, 7)});
        CHECK(.op = "LpPool", .attrs = "kernel_shape=2,;p=3;strides=2,", .in = {x}, .want = {T(F32, 3, DIMS(1, 1, 2), cbrt(126), cbrt(72))},
              .tolerance = 1e-6);
        CHECK(.op = "LpPool", .attrs = "kernel_shape=2,;p=0", .in = {x}, .refused = "shape");
}

Test(ops_norm, resizes_of_some_axes) {
        struct numbers x = T(F32, 2, DIMS(2, 2), 1, 2, 3, 4);
        const char *floors = "axes=1,;coordinate_transformation_mode=asymmetric;nearest_mode=floor";
        CHECK(.op = "Resize", .attrs = floors, .in = {x, {0}, {0}, INT64S(1, 4)}, .want = {T(F32, 2, DIMS(2, 4), 1, 1, 2, 2, 3, 3, 4, 4)});
        CHECK(.op = "Resize", .attrs = floors, .in = {x, {0}, T(F32, 1, DIMS(1), 1.5)}, .want = {T(F32, 2, DIMS(2, 3), 1, 1, 2, 3, 3, 4)});
        CHECK(.op = "Resize", .attrs = "keep_aspect_ratio_policy=not_larger;coordinate_transformation_mode=asymmetric;nearest_mode=floor",
              .in = {x, {0}, {0}, INT64S(2, 3, 8)}, .want = {T(F32, 2, DIMS(3, 3), 1, 1, 2, 1, 1, 2, 3, 3, 4)});
        CHECK(.op = "Resize", .attrs = "keep_aspect_ratio_policy=not_smaller;coordinate_transformation_mode=asymmetric;nearest_mode=floor",
              .in = {x, {0}, {0}, INT64S(2, 2, 3)}, .want = {T(F32, 2, DIMS(3, 3), 1, 1, 2, 1, 1, 2, 3, 3, 4)});
        CHECK(.op = "Resize", .attrs = "mode=linear;coordinate_transformation_mode=half_pixel_symmetric",
              .in = {T(F32, 1, DIMS(4), 1, 2, 3, 4), {0}, T(F32, 1, DIMS(1), 0.6)}, .want = {T(F32, 1, DIMS(2), 5.0 / 3, 10.0 / 3)},
              .tolerance = 1e-6);
        CHECK(.op = "Resize", .attrs = "axes=1,1", .in = {x, {0}, {0}, INT64S(2, 4, 4)}, .refused = "shape");
        CHECK(.op = "Resize", .attrs = "axes=1,", .in = {x, {0}, {0}, INT64S(2, 4, 4)}, .refused = "shape");
        CHECK(.op = "Resize", .attrs = "mode=linear;antialias=1", .in = {x, {0}, {0}, INT64S(2, 4, 4)}, .refused = "antialias");
}

Test(ops_norm, reductions_of_nothing) {
        struct numbers none = T(F32, 2, DIMS(2, 0), 0), rows = T(F32, 2, DIMS(2, 1), -INFINITY, -INFINITY);
        CHECK(.op = "ReduceMax", .in = {none, INT64S(1, 1)}, .want = {rows});
        CHECK(.op = "ReduceMin", .attrs = "keepdims=0", .in = {none, INT64S(1, -1)}, .want = {T(F32, 1, DIMS(2), INFINITY, INFINITY)});
        CHECK(.op = "ReduceLogSumExp", .in = {none, INT64S(1, 1)}, .want = {rows});
        CHECK(.op = "ReduceMax", .in = {T(BOOL, 2, DIMS(2, 0), 0), INT64S(1, 1)}, .want = {T(BOOL, 2, DIMS(2, 1), 0, 0)});
        CHECK(.op = "ReduceMax", .in = {T(I32, 2, DIMS(2, 0), 0), INT64S(1, 1)}, .refused = "nothing");
}

Test(ops_norm, rows_without_a_length) {
        struct numbers x = T(F32, 2, DIMS(2, 2), 3, -4, 0, 0);
        CHECK(.op = "LpNormalization", .in = {x}, .want = {T(F32, 2, DIMS(2, 2), 0.6, -0.8, 0, 0)}, .tolerance = 1e-6);
        CHECK(.op = "LpNormalization", .attrs = "p=1;axis=0", .in = {x}, .want = {T(F32, 2, DIMS(2, 2), 1, -1, 0, 0)});
}
