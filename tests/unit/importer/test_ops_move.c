/* SPDX-License-Identifier: Apache-2.0 */
/* What the node tests do not show of movement: old forms, negative amounts, wrap-around, uneven pieces, batches, refusals. */
#include "tests/unit/importer/one_node.h"

Test(ops_move, slice_in_all_its_forms) {
        struct numbers x = T(F32, 1, DIMS(5), 0, 1, 2, 3, 4), m = T(F32, 2, DIMS(2, 3), 0, 1, 2, 3, 4, 5);
        CHECK(.op = "Slice", .in = {x, INT64S(1, -2), INT64S(1, 100)}, .want = {T(F32, 1, DIMS(2), 3, 4)});
        CHECK(.op = "Slice", .in = {x, INT64S(1, 4), INT64S(1, -100), INT64S(1, 0), INT64S(1, -2)}, .want = {T(F32, 1, DIMS(3), 4, 2, 0)});
        CHECK(.op = "Slice", .in = {x, INT64S(1, 100), INT64S(1, 0), INT64S(1, 0), INT64S(1, -3)}, .want = {T(F32, 1, DIMS(2), 4, 1)});
        CHECK(.op = "Slice", .in = {x, INT64S(1, 3), INT64S(1, 2)}, .want = {T(F32, 1, DIMS(0), 0)});
        CHECK(.op = "Slice", .opset = 1, .attrs = "starts=1,;ends=-1,;axes=1,", .in = {m}, .want = {T(F32, 2, DIMS(2, 1), 1, 4)});
        CHECK(.op = "Slice", .in = {m, INT64S(2, 1, 0), INT64S(2, 2, 9), INT64S(2, -2, -1), INT64S(2, 1, 2)},
              .want = {T(F32, 2, DIMS(1, 2), 3, 5)});
        CHECK(.op = "Slice", .in = {x, INT64S(1, 0), INT64S(1, 2), INT64S(1, 0), INT64S(1, 0)}, .refused = "shape");
}

Test(ops_move, split_into_stated_and_uneven_pieces) {
        struct numbers x = T(I32, 1, DIMS(7), 0, 1, 2, 3, 4, 5, 6);
        CHECK(.op = "Split", .opset = 18, .attrs = "num_outputs=3", .in = {x},
              .want = {T(I32, 1, DIMS(3), 0, 1, 2), T(I32, 1, DIMS(3), 3, 4, 5), T(I32, 1, DIMS(1), 6)});
        CHECK(.op = "Split", .opset = 6, .attrs = "split=2,5;axis=0", .in = {x},
              .want = {T(I32, 1, DIMS(2), 0, 1), T(I32, 1, DIMS(5), 2, 3, 4, 5, 6)});
        CHECK(.op = "Split", .in = {x, INT64S(2, 0, 7)}, .want = {T(I32, 1, DIMS(0), 0), x});
        CHECK(.op = "Split", .in = {x, INT64S(2, 5, 7)}, .want = {x, x}, .refused = "shape");
}

Test(ops_move, pad_modes) {
        struct numbers x = T(F32, 1, DIMS(4), 1, 2, 3, 4), m = T(I32, 2, DIMS(2, 2), 1, 2, 3, 4);
        CHECK(.op = "Pad", .in = {x, INT64S(2, -1, 2)}, .want = {T(F32, 1, DIMS(5), 2, 3, 4, 0, 0)});
        CHECK(.op = "Pad", .in = {x, INT64S(2, 1, -3), T(F32, 0, DIMS(0), NAN)}, .want = {T(F32, 1, DIMS(2), NAN, 1)});
        CHECK(.op = "Pad", .opset = 2, .attrs = "pads=1,1;value=7.5", .in = {x}, .want = {T(F32, 1, DIMS(6), 7.5, 1, 2, 3, 4, 7.5)});
        CHECK(.op = "Pad", .attrs = "mode=reflect", .in = {x, INT64S(2, 3, 2)}, .want = {T(F32, 1, DIMS(9), 4, 3, 2, 1, 2, 3, 4, 3, 2)});
        CHECK(.op = "Pad", .attrs = "mode=reflect", .in = {x, INT64S(2, 0, 3)}, .want = {T(F32, 1, DIMS(7), 1, 2, 3, 4, 3, 2, 1)});
        CHECK(.op = "Pad", .attrs = "mode=edge", .in = {x, INT64S(2, 2, 1)}, .want = {T(F32, 1, DIMS(7), 1, 1, 1, 2, 3, 4, 4)});
        CHECK(.op = "Pad", .attrs = "mode=wrap", .in = {x, INT64S(2, 2, 1)}, .want = {T(F32, 1, DIMS(7), 3, 4, 1, 2, 3, 4, 1)});
        CHECK(.op = "Pad", .attrs = "mode=reflect", .in = {x, INT64S(2, 4, 0)}, .refused = "shape");
        CHECK(.op = "Pad", .in = {m, INT64S(2, 1, 0), T(I32, 1, DIMS(1), 9), INT64S(1, -1)},
              .want = {T(I32, 2, DIMS(2, 3), 9, 1, 2, 9, 3, 4)});
        CHECK(.op = "Pad", .attrs = "mode=edge", .in = {m, INT64S(4, 1, 0, 0, 1)},
              .want = {T(I32, 2, DIMS(3, 3), 1, 2, 2, 1, 2, 2, 3, 4, 4)});
}

Test(ops_move, concat_tile_transpose) {
        struct numbers a = T(I8, 2, DIMS(1, 2), 1, 2), b = T(I8, 2, DIMS(2, 2), 3, 4, 5, 6);
        CHECK(.op = "Concat", .attrs = "axis=-2", .in = {a, b}, .want = {T(I8, 2, DIMS(3, 2), 1, 2, 3, 4, 5, 6)});
        CHECK(.op = "Concat", .opset = 1, .in = {b, b}, .want = {T(I8, 2, DIMS(2, 4), 3, 4, 3, 4, 5, 6, 5, 6)});
        CHECK(.op = "Tile", .in = {a, INT64S(2, 2, 2)}, .want = {T(I8, 2, DIMS(2, 4), 1, 2, 1, 2, 1, 2, 1, 2)});
        CHECK(.op = "Tile", .opset = 1, .in = {a, INT64S(1, 3), INT64S(1, 1)}, .want = {T(I8, 2, DIMS(1, 6), 1, 2, 1, 2, 1, 2)});
        CHECK(.op = "Transpose", .attrs = "perm=-1,0", .in = {b}, .want = {T(I8, 2, DIMS(2, 2), 3, 5, 4, 6)});
        CHECK(.op = "Transpose", .attrs = "perm=0,", .in = {b}, .refused = "shape");
}

Test(ops_move, gathers) {
        struct numbers x = T(F32, 2, DIMS(2, 3), 0, 1, 2, 3, 4, 5);
        CHECK(.op = "GatherElements", .attrs = "axis=1", .in = {x, T(I64, 2, DIMS(2, 1), -1, 0)}, .want = {T(F32, 2, DIMS(2, 1), 2, 3)});
        CHECK(.op = "Gather", .attrs = "axis=-1", .in = {x, T(I32, 2, DIMS(1, 2), 2, -3)}, .want = {T(F32, 3, DIMS(2, 1, 2), 2, 0, 5, 3)});
        CHECK(.op = "GatherND", .in = {x, T(I64, 2, DIMS(2, 2), 0, -1, -1, 1)}, .want = {T(F32, 1, DIMS(2), 2, 4)});
        CHECK(.op = "GatherND", .attrs = "batch_dims=1", .in = {x, T(I64, 2, DIMS(2, 1), -1, 1)}, .want = {T(F32, 1, DIMS(2), 2, 4)});
        CHECK(.op = "GatherND", .in = {x, T(I64, 2, DIMS(1, 1), -1)}, .want = {T(F32, 2, DIMS(1, 3), 3, 4, 5)});
        CHECK(.op = "GatherND", .attrs = "batch_dims=2", .in = {x, T(I64, 2, DIMS(2, 1), 0, 0)}, .refused = "shape");
}

Test(ops_move, one_hot_wraps_and_leaves_out) {
        struct numbers values = T(F32, 1, DIMS(2), -1, 5), depth = T(I64, 0, DIMS(0), 3);
        CHECK(.op = "OneHot", .in = {T(I32, 1, DIMS(4), 0, -1, 3, -4), depth, values},
              .want = {T(F32, 2, DIMS(4, 3), 5, -1, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1)});
        CHECK(.op = "OneHot", .attrs = "axis=0", .in = {T(I64, 1, DIMS(2), 1, 2), depth, values},
              .want = {T(F32, 2, DIMS(3, 2), -1, -1, 5, -1, -1, 5)});
}

Test(ops_move, triangles_and_sums) {
        struct numbers m = T(I32, 2, DIMS(2, 3), 1, 2, 3, 4, 5, 6);
        CHECK(.op = "Trilu", .in = {m, T(I64, 0, DIMS(0), 1)}, .want = {T(I32, 2, DIMS(2, 3), 0, 2, 3, 0, 0, 6)});
        CHECK(.op = "Trilu", .attrs = "upper=0", .in = {m}, .want = {T(I32, 2, DIMS(2, 3), 1, 0, 0, 4, 5, 0)});
        CHECK(.op = "CumSum", .in = {m, T(I32, 0, DIMS(0), -1)}, .want = {T(I32, 2, DIMS(2, 3), 1, 3, 6, 4, 9, 15)});
        CHECK(.op = "CumSum", .attrs = "exclusive=1;reverse=1", .in = {m, T(I64, 1, DIMS(1), 1)},
              .want = {T(I32, 2, DIMS(2, 3), 5, 3, 0, 11, 6, 0)});
}

Test(ops_move, sequences_backwards_and_blocks) {
        struct numbers m = T(F32, 2, DIMS(3, 2), 0, 1, 2, 3, 4, 5);
        CHECK(.op = "ReverseSequence", .attrs = "time_axis=0;batch_axis=1", .in = {m, INT64S(2, 2, 3)},
              .want = {T(F32, 2, DIMS(3, 2), 2, 5, 0, 3, 4, 1)});
        CHECK(.op = "SpaceToDepth", .attrs = "blocksize=2", .in = {T(I8, 4, DIMS(1, 1, 2, 4), 0, 1, 2, 3, 4, 5, 6, 7)},
              .want = {T(I8, 4, DIMS(1, 4, 1, 2), 0, 2, 1, 3, 4, 6, 5, 7)});
        struct numbers two = T(I8, 4, DIMS(1, 2, 2, 2), 0, 1, 2, 3, 4, 5, 6, 7);
        CHECK(.op = "SpaceToDepth", .attrs = "blocksize=2;mode=CRD", .in = {two},
              .want = {T(I8, 4, DIMS(1, 8, 1, 1), 0, 1, 2, 3, 4, 5, 6, 7)});
        CHECK(.op = "SpaceToDepth", .attrs = "blocksize=2;mode=DCR", .in = {two},
              .want = {T(I8, 4, DIMS(1, 8, 1, 1), 0, 4, 1, 5, 2, 6, 3, 7)});
        CHECK(.op = "DepthToSpace", .attrs = "blocksize=2", .in = {T(I8, 4, DIMS(1, 4, 1, 2), 0, 2, 1, 3, 4, 6, 5, 7)},
              .want = {T(I8, 4, DIMS(1, 1, 2, 4), 0, 1, 2, 3, 4, 5, 6, 7)});
}

Test(ops_move, parameters_beyond_all_bounds) {
        struct numbers x = T(I8, 1, DIMS(3), 1, 2, 3);
        CHECK(.op = "Slice", .in = {x, INT64S(1, -9e18), INT64S(1, 9e18), INT64S(1, 0), INT64S(1, 9e18)}, .want = {T(I8, 1, DIMS(1), 1)});
        CHECK(.op = "Slice", .in = {x, INT64S(1, 9e18), INT64S(1, -9e18), INT64S(1, 0), INT64S(1, -9e18)}, .want = {T(I8, 1, DIMS(1), 3)});
        CHECK(.op = "Pad", .in = {x, INT64S(2, -9e18, 0)}, .want = {T(I8, 1, DIMS(0), 0)});
        CHECK(.op = "Split", .in = {x, INT64S(2, 1, 1)}, .want = {x, x}, .refused = "shape");
        CHECK(.op = "DepthToSpace", .attrs = "blocksize=4294967296", .in = {T(I8, 4, DIMS(1, 4, 1, 1), 0, 0, 0, 0)}, .refused = "shape");
        CHECK(.op = "MaxPool", .attrs = "kernel_shape=2,;pads=9223372036854775807,0", .in = {T(I8, 3, DIMS(1, 1, 2), 0, 0)},
              .refused = "shape");
        CHECK(.op = "Upsample", .opset = 9, .in = {T(F32, 1, DIMS(2), 0, 4), T(F32, 1, DIMS(1), NAN)}, .refused = "shape");
}
