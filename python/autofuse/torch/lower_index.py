# SPDX-License-Identifier: Apache-2.0
"""Rows by number: embedding, index_select, gather, index. Where eager raises for an index out of range the result is 0; nothing outside is read."""

from __future__ import annotations

import torch
import torch.fx

from .lower_util import (
    as_dtype,
    axis_of,
    binary,
    broadcast_shape,
    compare,
    iota,
    lowering,
    number,
    permute,
    product,
    rounded,
    slice_axis,
    where,
)
from .lowering import GraphBuilder, Lowered, NotLowered, Value
from .symbols import Dim


def _as_index(b: GraphBuilder, index: Value) -> Value:
    return index if index.dtype in (torch.int32, torch.int64) else b.cast(index, torch.int64 if index.dtype == torch.int64 else torch.int32)


def take(b: GraphBuilder, x: Value, axis: int, index: Value) -> Value:
    """numpy's take: the index's axes stand in the axis's place."""
    shape = [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]]
    return b.emit("gather", [x, _as_index(b, index)], x.dtype, shape, {"axis": axis})


@lowering("aten.embedding.default")
def _embedding(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return take(b, b.value(node.args[0]), 0, b.value(node.args[1]))


@lowering("aten.index_select.default")
def _index_select(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, index = b.value(node.args[0]), b.value(node.args[2])
    if x.rank == 0:
        return b.reshape(x, b.shape(node))
    index = b.reshape(index, [1]) if index.rank == 0 else index
    return take(b, x, axis_of(int(number(node.args[1])), x.rank), index)  # type: ignore[arg-type]


@lowering("aten.gather.default")
def _gather(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, index, shape = b.value(node.args[0]), b.value(node.args[2]), b.shape(node)
    axis = int(number(node.args[1]))  # type: ignore[arg-type]
    if 0 in shape:
        return b.broadcast(b.constant(0, x.dtype), shape)
    if x.rank == 0 or index.rank == 0:
        rank = max(x.rank, index.rank, 1)
        x, index = (b.reshape(v, [1] * rank) if v.rank == 0 else v for v in (x, index))
    v = b.emit("gather_elements", [x, _as_index(b, index)], x.dtype, index.shape, {"axis": axis_of(axis, x.rank)})
    return b.reshape(v, shape)


@lowering("aten.scatter.value", "aten.scatter.src")
def _scatter(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    """One place per row: chosen by its position. Several could meet in one place: these stay PyTorch's."""
    x, index = b.value(node.args[0]), b.value(node.args[2])
    if 0 in index.shape:
        return x
    if x.rank == 0 or index.rank != x.rank:
        return NotLowered("a scatter of scalars")
    axis = axis_of(int(number(node.args[1])), x.rank)  # type: ignore[arg-type]
    if index.shape[axis] != 1 or any(index.shape[i] != d for i, d in enumerate(x.shape) if i != axis):
        return NotLowered("a scatter to several places of a row, or of some rows")
    index = _as_index(b, index)
    place = iota(b, [d if i == axis else 1 for i, d in enumerate(x.shape)], axis, index.dtype)
    if str(node.target).endswith("src"):
        source = b.value(node.args[3])
        for i, d in enumerate(index.shape):
            source = slice_axis(b, source, i, 0, d)
    else:
        source = as_dtype(b, rounded(node.args[3], x.dtype), x.dtype)
    return where(b, compare(b, "eq", place, index), source, x)


@lowering("aten.take.default")
def _take(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    return take(b, b.reshape(x, [product(x.shape)]), 0, b.value(node.args[1]))


def _from_front(b: GraphBuilder, index: Value, size: Dim) -> tuple[Value, Value]:
    """An index counted from the front, and whether it is in range."""
    n = b.constant(size, torch.int64) if isinstance(size, int) else b._host_scalar(size, torch.int64)
    zero = b.constant(0, torch.int64)
    front = where(b, compare(b, "lt", index, zero), binary(b, "add", index, n, torch.int64), index)
    return front, compare(b, "logical_and", compare(b, "ge", front, zero), compare(b, "lt", front, n))


def _linear(b: GraphBuilder, indices: list[Value], sizes: list[Dim]) -> Value:
    """Several indices as one into their axes merged; -2^62 where one is out of range."""
    shape = broadcast_shape(*(i.shape for i in indices))
    place: Value | None = None
    inside: Value | None = None
    for index, size in zip(indices, sizes):
        front, fits = _from_front(b, b.cast(index, torch.int64), size)
        n = b.constant(size, torch.int64) if isinstance(size, int) else b._host_scalar(size, torch.int64)
        place = front if place is None else binary(b, "add", binary(b, "mul", place, n, torch.int64), front, torch.int64)
        inside = fits if inside is None else compare(b, "logical_and", inside, fits)
    assert place is not None and inside is not None
    return b.broadcast(where(b, inside, place, b.constant(-(2**62), torch.int64)), shape)


@lowering("aten.index.Tensor", "aten._unsafe_index.Tensor")
def _index(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, given = b.value(node.args[0]), list(node.args[1])  # type: ignore[arg-type]
    places = [i for i, index in enumerate(given) if index is not None]
    indices = [b.value(given[i]) for i in places]
    if any(i.dtype in (torch.bool, torch.uint8) for i in indices):
        return NotLowered("a mask as an index: how many it picks is not known")
    if not places or 0 in b.shape(node):
        return b.broadcast(x if not places else b.constant(0, x.dtype), b.shape(node))
    if len(places) == 1:
        return take(b, x, places[0], indices[0])
    together = places == list(range(places[0], places[-1] + 1))
    front = places[0] if together else 0
    rest = [i for i in range(x.rank) if i not in places]
    x = permute(b, x, rest[:front] + places + rest[front:])
    sizes = list(x.shape[front : front + len(places)])
    merged = b.reshape(x, [*x.shape[:front], product(sizes), *x.shape[front + len(places) :]])
    return take(b, merged, front, _linear(b, indices, sizes))


