# SPDX-License-Identifier: Apache-2.0
"""Tensors from numbers: fills, ranges, positions. Sizes may be expressions, numbers may be sizes."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from .lower_util import HALF, arg, binary, iota, lowering, number
from .lowering import GraphBuilder, Lowered, NotLowered, Value

SMALL = 4096  # elements of a table that may go into a fragment


def _filled(b: GraphBuilder, node: torch.fx.Node, value: Any) -> Lowered:
    dtype = b.dtype(node)
    if isinstance(value, complex):
        return NotLowered("a complex number")
    if isinstance(value, torch.fx.Node) and isinstance(value.meta.get("val"), torch.Tensor):
        return b.broadcast(b.cast(b.value(value), dtype), b.shape(node))
    if not dtype.is_floating_point and isinstance(value, float):
        value = torch.full((), value, dtype=dtype).item()
    return b.broadcast(_number(b, value, dtype), b.shape(node))


def _number(b: GraphBuilder, value: Any, dtype: torch.dtype) -> Value:
    """A number of shape []; sizes come as int64 and are cast on the way."""
    if isinstance(value, torch.fx.Node) and isinstance(value.meta.get("val"), torch.SymInt):
        return b.cast(b.scalar(value, torch.int64), dtype)
    return b.scalar(value, dtype)


@lowering("aten.full.default", "aten.full_like.default", "aten.new_full.default", "aten.fill.Scalar", "aten.fill.Tensor")
def _full(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    place = {"aten.new_full.default": 2}.get(str(node.target), 1)
    return _filled(b, node, arg(node, place, "fill_value" if "full" in str(node.target) else "value"))


@lowering("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default")
def _zeros(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return _filled(b, node, 0)


@lowering("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def _ones(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return _filled(b, node, 1)


@lowering("aten.scalar_tensor.default")
def _scalar_tensor(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return _filled(b, node, node.args[0])


def _is_whole(*values: Any) -> bool:
    return all(not isinstance(v, float) or v == int(v) for v in values)


@lowering("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def _arange(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    name, dtype, shape = str(node.target), b.dtype(node), b.shape(node)
    start = 0 if name.endswith("default") else node.args[0]
    step = arg(node, 2, "step", 1) if name.endswith("start_step") else 1
    size = shape[0]
    known = all(isinstance(v, (int, float)) for v in (start, step))
    if known and dtype.is_floating_point and not _is_whole(start, step):
        if not isinstance(size, int) or size > SMALL:
            return NotLowered("a long range in fractions")
        end = start + step * size  # type: ignore[operator]
        exact = torch.arange(start, end, step, dtype=dtype)[:size] if node.args else None
        return b.constant_tensor(exact) if exact is not None and exact.numel() == size else NotLowered("a range in fractions")
    if known and (dtype not in HALF):
        return iota(b, shape, 0, dtype, start, step)  # type: ignore[arg-type]
    run = torch.int64 if not dtype.is_floating_point or dtype in HALF else dtype
    place = iota(b, shape, 0, run, 0, number(step) if known or isinstance(step, (int, float)) else 1)
    if not isinstance(step, (int, float)):
        place = binary(b, "mul", place, _number(b, step, run), run)
    return b.cast(place if start == 0 else binary(b, "add", place, _number(b, start, run), run), dtype)


@lowering("prims.iota.default")
def _iota(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    start, step = node.kwargs["start"], node.kwargs["step"]
    if isinstance(start, int) and isinstance(step, int):
        return iota(b, b.shape(node), 0, b.dtype(node), start, step)
    return NotLowered("positions that begin at a size")


@lowering("aten.tril_indices.default", "aten.triu_indices.default")
def _triangle_indices(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    rows, columns, offset = node.args[0], node.args[1], arg(node, 2, "offset", 0)
    if not isinstance(rows, int) or not isinstance(columns, int) or not isinstance(offset, int):
        return NotLowered("a triangle of sizes with symbols")
    n = b.shape(node)[1]
    if not isinstance(n, int) or 2 * n > SMALL:
        return NotLowered(f"a table of more than {SMALL} positions")
    table = torch.tril_indices if "tril" in str(node.target) else torch.triu_indices
    return b.constant_tensor(table(rows, columns, offset, dtype=b.dtype(node)))


@lowering("aten.eye.default", "aten.eye.m")
def _eye(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    rows, columns = b.shape(node)
    row, column = iota(b, [rows, 1], 0, torch.int32), iota(b, [1, columns], 1, torch.int32)
    return b.cast(b.emit("eq", [row, column], torch.bool, [rows, columns]), b.dtype(node))


@lowering("aten.empty_like.default", "aten.empty.memory_format", "aten.new_empty.default", "aten.empty_strided.default",
        "aten.new_empty_strided.default")
def _empty(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    """What eager leaves undefined is zero."""
    return _filled(b, node, 0)


