# SPDX-License-Identifier: Apache-2.0
"""Windows that lie side by side: reshapes, and one reduction. Others would be read once for each of their elements and stay PyTorch's."""

from __future__ import annotations

import torch
import torch.fx

from .lower_util import axis_of, lowering, number, permute, reduce, slice_axis
from .lowering import GraphBuilder, Lowered, NotLowered


def _known(b: GraphBuilder, node: torch.fx.Node) -> bool:
    return all(isinstance(d, int) and d > 0 for d in [*b.value(node.args[0]).shape[-2:], *b.shape(node)[-2:]])


@lowering("aten._adaptive_avg_pool2d.default")
def _adaptive_avg_pool2d(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, shape = b.value(node.args[0]), b.shape(node)
    if not _known(b, node) or not x.is_float or any(d % n for d, n in zip(x.shape[-2:], shape[-2:])):  # type: ignore[operator]
        return NotLowered("windows of several sizes, or of sizes with symbols")
    (rows, columns), (height, width) = shape[-2:], [d // n for d, n in zip(x.shape[-2:], shape[-2:])]  # type: ignore[operator]
    apart = b.reshape(x, [*x.shape[:-2], rows, height, columns, width])
    return reduce(b, "reduce_mean", apart, [x.rank - 1, x.rank + 1], False)


@lowering("aten.unfold.default", "aten.unfold_copy.default")
def _unfold(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    """Windows along an axis; their elements are the last axis."""
    x, shape = b.value(node.args[0]), b.shape(node)
    size, step = int(number(node.args[2])), int(number(node.args[3]))  # type: ignore[arg-type]
    axis = axis_of(int(number(node.args[1])), x.rank)  # type: ignore[arg-type]
    if x.rank == 0 or not isinstance(shape[axis], int) or 0 in shape or (step != size and shape[axis] != 1):
        return NotLowered("windows that overlap or leave gaps, of nothing, or of sizes with symbols")
    n = int(shape[axis])
    x = slice_axis(b, x, axis, 0, n * size)
    apart = b.reshape(x, [*x.shape[:axis], n, size, *x.shape[axis + 1 :]])
    return permute(b, apart, [*range(axis + 1), *range(axis + 2, x.rank + 1), axis + 1])
