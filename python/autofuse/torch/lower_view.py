# SPDX-License-Identifier: Apache-2.0
"""Movement: views, slices, pads, concats, what is written into a part of a copy.

Values are logical: a view is the op that gives its elements. as_strided alone looks at memory: at that of a value whose elements lie dense, by the
strides that eager gives it.
"""

from __future__ import annotations

import sys
from typing import Any, Sequence

import torch
import torch.fx

from . import symbols
from .lower_util import (
    add,
    arg,
    axes_of,
    axis_of,
    binary,
    compare,
    concat,
    iota,
    lowering,
    mul,
    number,
    permute,
    product,
    rounded,
    slice_axis,
    sub,
    where,
)
from .lowering import GraphBuilder, Lowered, NotLowered, Value
from .symbols import Dim

# ---- the same elements in the same order ----


@lowering("aten.view.default", "aten._unsafe_view.default", "aten._reshape_copy.default", "aten.view_copy.default", "aten.squeeze.default",
          "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default", "aten.squeeze_copy.dim", "aten.unsqueeze_copy.default")  # fmt: skip
def _reshape(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return b.reshape(b.value(node.args[0]), b.shape(node))


@lowering("aten.expand.default", "aten.expand_copy.default", "prims.broadcast_in_dim.default")
def _expand(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    if str(node.target).startswith("prims"):
        places = [number(p) for p in node.args[2]]  # type: ignore[union-attr]
        apart: list[Dim] = [1] * len(b.shape(node))
        for axis, place in enumerate(places):
            apart[int(place)] = x.shape[axis]
        x = b.reshape(x, apart)
    return b.broadcast(x, b.shape(node))


# ---- other places ----


@lowering("aten.permute.default", "aten.permute_copy.default")
def _permute(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    return permute(b, x, [axis_of(int(number(d)), x.rank) for d in node.args[1]])  # type: ignore[union-attr]


@lowering("aten.transpose.int", "aten.t.default", "aten.transpose_copy.int")
def _transpose(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    if x.rank < 2:
        return x
    i, j = (0, 1) if "aten.t." in str(node.target) else (axis_of(int(number(d)), x.rank) for d in node.args[1:3])
    order = list(range(x.rank))
    order[i], order[j] = j, i
    return permute(b, x, order)


def _bound(given: Any, size: Dim, otherwise: Dim, b: GraphBuilder) -> Dim | None:
    """Where a slice begins or ends, from the front; None where symbols do not tell."""
    if given is None:
        return otherwise
    place = b.dim(given)
    if isinstance(place, int) and place >= sys.maxsize:
        return size
    if isinstance(place, int) and isinstance(size, int):
        return min(max(place + size if place < 0 else place, 0), size)
    if isinstance(place, int) and place < 0:
        return add(size, place)
    return place


@lowering("aten.slice.Tensor", "aten.slice_copy.Tensor")
def _slice(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, axis = b.value(node.args[0]), axis_of(int(arg(node, 1, "dim", 0)), b.value(node.args[0]).rank)
    step = int(number(arg(node, 4, "step", 1)))
    start = _bound(arg(node, 2, "start"), x.shape[axis], 0, b)
    length = b.shape(node)[axis]
    if start is None or (isinstance(length, str) and step != 1):
        return NotLowered("a slice in steps over a size with symbols")
    return slice_axis(b, x, axis, start if length != 0 else 0, length, step)


@lowering("aten.select.int", "aten.select_copy.int")
def _select(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    axis = axis_of(int(number(node.args[1])), x.rank)  # type: ignore[arg-type]
    return b.reshape(slice_axis(b, x, axis, _index(b, node.args[2], x.shape[axis]), 1), b.shape(node))


def _index(b: GraphBuilder, given: Any, size: Dim) -> Dim:
    place = b.dim(given)
    return add(size, place) if isinstance(place, int) and place < 0 else place


def _pieces(b: GraphBuilder, x: Value, axis: int, sizes: Sequence[Dim]) -> tuple[Value, ...]:
    if len(sizes) == 1:
        return (x,)
    if len(sizes) <= 64:
        shapes = [[size if i == axis else d for i, d in enumerate(x.shape)] for size in sizes]
        return b.emit_several("split", [x], [(x.dtype, shape) for shape in shapes], {"axis": axis, "sizes": list(sizes)})
    parts, at = [], 0
    for size in sizes:
        parts.append(slice_axis(b, x, axis, at, size))
        at = add(at, size)  # type: ignore[assignment]
    return tuple(parts)


@lowering("aten.split_with_sizes.default", "aten.split.Tensor", "aten.split_with_sizes_copy.default")
def _split(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    axis = axis_of(int(arg(node, 2, "dim", 0)), x.rank)
    sizes = [symbols.dim(part.shape[axis]) for part in node.meta["val"]]
    return _pieces(b, x, axis, sizes)


@lowering("aten.unbind.int")
def _unbind(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    axis = axis_of(int(arg(node, 1, "dim", 0)), x.rank)
    n = len(node.meta["val"])
    return tuple(b.reshape(p, b.shape(node, i)) for i, p in enumerate(_pieces(b, x, axis, [1] * n))) if n else ()


@lowering("aten.cat.default")
def _cat(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    dtype, rank = b.dtype(node), len(b.shape(node))
    given = [b.value(v) for v in node.args[0]]  # type: ignore[union-attr]
    parts = [b.cast(v, dtype) for v in given if not (v.rank == 1 and v.shape == (0,) and rank != 1)]  # an old spelling of nothing
    axis = axis_of(int(arg(node, 1, "dim", 0)), rank)
    parts = [p for p in parts if p.shape[axis] != 0] or parts
    return concat(b, parts, axis) if parts else b.broadcast(b.constant(0, dtype), b.shape(node))


@lowering("aten.stack.default")
def _stack(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    shape = b.shape(node)
    axis = axis_of(int(arg(node, 1, "dim", 0)), len(shape))
    unit = [1 if i == axis else d for i, d in enumerate(shape)]
    return concat(b, [b.reshape(b.cast(b.value(v), b.dtype(node)), unit) for v in node.args[0]], axis)  # type: ignore[union-attr]


@lowering("aten.flip.default")
def _flip(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    axes = axes_of(node.args[1], x.rank) if node.args[1] else []
    for axis in axes:
        size = x.shape[axis]
        if size not in (0, 1):
            x = slice_axis(b, x, axis, sub(size, 1), size, -1)
    return x


@lowering("aten.roll.default")
def _roll(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, shape = b.value(node.args[0]), b.shape(node)
    shifts = [node.args[1]] if isinstance(node.args[1], int) else list(node.args[1])  # type: ignore[arg-type]
    axes = arg(node, 2, "dims", ())
    axes = [axes] if isinstance(axes, int) else list(axes)
    if not axes:
        x = b.reshape(x, [product(x.shape)])
    for shift, axis in zip(shifts, [axis_of(a, x.rank) for a in axes] or [0]):
        size = x.shape[axis]
        if not isinstance(size, int) or not isinstance(shift, int):
            return NotLowered("a roll over a size with symbols")
        at = shift % size if size else 0
        if at:
            x = concat(b, [slice_axis(b, x, axis, size - at, at), slice_axis(b, x, axis, 0, size - at)], axis)
    return b.reshape(x, shape)


@lowering("aten.repeat.default")
def _repeat(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, repeats = b.value(node.args[0]), list(b.dims(node.args[1]))  # type: ignore[arg-type]
    x = b.reshape(x, [1] * (len(repeats) - x.rank) + list(x.shape))
    if all(r == 1 for r in repeats):
        return x
    if any(r == 0 for r in repeats):
        return b.broadcast(b.constant(0, x.dtype), b.shape(node))
    return b.emit("tile", [x], x.dtype, b.shape(node), {"repeats": repeats})


@lowering("aten.constant_pad_nd.default")
def _pad(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, given, fill = b.value(node.args[0]), list(b.dims(node.args[1])), arg(node, 2, "value", 0)  # type: ignore[arg-type]
    low: list[Dim] = [0] * x.rank
    high: list[Dim] = [0] * x.rank
    for k in range(len(given) // 2):
        low[x.rank - 1 - k], high[x.rank - 1 - k] = given[2 * k], given[2 * k + 1]
    for axis in range(x.rank):
        cut = [-v if isinstance(v, int) and v < 0 else 0 for v in (low[axis], high[axis])]
        if any(cut):
            x = slice_axis(b, x, axis, cut[0], sub(x.shape[axis], sum(cut)))
            low[axis], high[axis] = (max(v, 0) if isinstance(v, int) else v for v in (low[axis], high[axis]))
    if all(v == 0 for v in low + high):
        return x
    value = b.scalar(rounded(number(fill), x.dtype), x.dtype)
    return b.emit("pad", [x, value], x.dtype, b.shape(node), {"low": low, "high": high})


@lowering("aten.tril.default", "aten.triu.default")
def _triangle(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    return b.emit(str(node.target).split(".")[1], [x], x.dtype, x.shape, {"diagonal": int(number(arg(node, 1, "diagonal", 0)))})


@lowering("aten.diagonal.default", "aten.diagonal_copy.default")
def _diagonal(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    offset, i, j = int(arg(node, 1, "offset", 0)), axis_of(int(arg(node, 2, "dim1", 0)), x.rank), axis_of(int(arg(node, 3, "dim2", 1)), x.rank)
    shape = b.shape(node)
    rows, columns = x.shape[i], x.shape[j]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return NotLowered("a diagonal of sizes with symbols")
    if shape[-1] == 0:
        return b.broadcast(b.constant(0, x.dtype), shape)
    rest = [k for k in range(x.rank) if k not in (i, j)]
    x = permute(b, x, rest + [i, j])
    x = b.reshape(x, [*x.shape[:-2], rows * columns])
    start = offset if offset >= 0 else -offset * columns
    return slice_axis(b, x, x.rank - 1, start, shape[-1], columns + 1)


# ---- writing into a part ----


def _replace(b: GraphBuilder, x: Value, part: Value, axis: int, start: Dim, length: Dim) -> Value:
    """x with `length` elements of an axis from `start` on taken from part."""
    after = sub(sub(x.shape[axis], start), length)
    pieces = [slice_axis(b, x, axis, 0, start)] if start != 0 else []
    pieces.append(part)
    if after != 0:
        pieces.append(slice_axis(b, x, axis, add(start, length), after))
    return concat(b, pieces, axis)


def _spread(b: GraphBuilder, part: Value, axis: int, step: int, span: int) -> Value:
    """Each element of an axis and step - 1 zeros behind it, of which `span` in all."""
    low, high = [0] * (part.rank + 1), [0] * (part.rank + 1)
    high[axis + 1] = step - 1
    before, length, after = list(part.shape[:axis]), part.shape[axis], list(part.shape[axis + 1 :])
    apart = b.reshape(part, [*before, length, 1, *after])
    wide = b.emit("pad", [apart], part.dtype, [*before, length, step, *after], {"low": low, "high": high})
    return slice_axis(b, b.reshape(wide, [*before, mul(length, step), *after]), axis, 0, span)


def _in_zeros(b: GraphBuilder, part: Value, axis: int, start: Dim, size: Dim) -> Value:
    """A part with zeros on both sides along an axis, `size` in all."""
    low: list[Dim] = [start if i == axis else 0 for i in range(part.rank)]
    high: list[Dim] = [sub(sub(size, start), part.shape[axis]) if i == axis else 0 for i in range(part.rank)]
    if all(v == 0 for v in low + high):
        return part
    return b.emit("pad", [part], part.dtype, [size if i == axis else d for i, d in enumerate(part.shape)], {"low": low, "high": high})


@lowering("aten.slice_backward.default")
def _slice_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    grad, shape = b.value(node.args[0]), b.shape(node)
    axis, step = axis_of(int(number(node.args[2])), grad.rank), int(number(node.args[5]))  # type: ignore[arg-type]
    start, length, size = _bound(node.args[3], shape[axis], 0, b), grad.shape[axis], shape[axis]
    if 0 in grad.shape:
        return b.broadcast(b.constant(0, grad.dtype), shape)
    if start is None or (step != 1 and not all(isinstance(v, int) for v in (start, length, size))):
        return NotLowered("a slice in steps over a size with symbols")
    if step != 1:
        grad = _spread(b, grad, axis, step, min(length * step, size - start))  # type: ignore[operator]
    return _in_zeros(b, grad, axis, start, size)


@lowering("aten.select_backward.default")
def _select_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    grad, shape = b.value(node.args[0]), b.shape(node)
    axis = axis_of(int(number(node.args[2])), len(shape))  # type: ignore[arg-type]
    grad = b.reshape(grad, [1 if i == axis else d for i, d in enumerate(shape)])
    return _in_zeros(b, grad, axis, _index(b, node.args[3], shape[axis]), shape[axis])


@lowering("aten.slice_scatter.default")
def _slice_scatter(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, part = b.value(node.args[0]), b.value(node.args[1])
    axis, step = axis_of(int(arg(node, 2, "dim", 0)), x.rank), int(number(arg(node, 5, "step", 1)))
    start, length, size = _bound(arg(node, 3, "start"), x.shape[axis], 0, b), part.shape[axis], x.shape[axis]
    part = b.cast(part, x.dtype)
    if start is None:
        return NotLowered("a slice of a size with symbols")
    if length == 0:
        return x
    if step == 1:
        return _replace(b, x, part, axis, start, length)
    if not all(isinstance(v, int) for v in (start, length, size)):
        return NotLowered("a slice in steps over a size with symbols")
    span = min(length * step, size - start)  # type: ignore[operator]
    spread = _spread(b, part, axis, step, span)
    inside = slice_axis(b, x, axis, start, span)
    place = iota(b, [span if i == axis else 1 for i in range(x.rank)], axis, torch.int32)
    hit = compare(b, "eq", binary(b, "remainder", place, b.constant(step, torch.int32)), b.constant(0, torch.int32))
    return _replace(b, x, where(b, hit, spread, inside), axis, start, span)


@lowering("aten.select_scatter.default")
def _select_scatter(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, part = b.value(node.args[0]), b.value(node.args[1])
    axis = axis_of(int(number(node.args[2])), x.rank)  # type: ignore[arg-type]
    part = b.reshape(b.cast(part, x.dtype), [1 if i == axis else d for i, d in enumerate(x.shape)])
    return _replace(b, x, part, axis, _index(b, node.args[3], x.shape[axis]), 1)


# ---- memory ----


def _in_memory_order(b: GraphBuilder, operand: torch.fx.Node) -> Value | None:
    """A value's elements as they lie in memory, one axis; None where eager would not lay them dense from offset 0."""
    held, x = operand.meta["val"], b.value(operand)
    sizes, strides = list(held.shape), list(held.stride())
    if not all(isinstance(v, int) for v in [*sizes, *strides, held.storage_offset()]) or held.storage_offset() != 0:
        return None
    order = sorted(range(x.rank), key=lambda i: (-strides[i], i))
    dense = 1
    for i in reversed(order):
        if sizes[i] != 1 and strides[i] != dense:
            return None
        dense *= sizes[i]
    return b.reshape(permute(b, x, order), [dense])


def _walk(b: GraphBuilder, flat: Value, sizes: list[int], strides: list[int], offset: int) -> Value:
    """flat at offset + sum of index * stride, by slices and reshapes where the strides nest, else by a gather."""
    n, shape = int(flat.shape[0]), tuple(sizes)  # type: ignore[arg-type]
    moving = sorted((i for i in range(len(sizes)) if sizes[i] != 1 and strides[i] != 0), key=lambda i: -strides[i])
    nested = _nested(b, flat, [(sizes[i], strides[i]) for i in moving], offset, n)
    if nested is None:
        place = b.constant(offset, torch.int64)
        for i, size in enumerate(sizes):
            if i in moving:
                step = iota(b, [size if k == i else 1 for k in range(len(sizes))], i, torch.int64, 0, strides[i])
                place = binary(b, "add", step, place, torch.int64)
        place = b.broadcast(place, shape)
        return b.emit("gather", [flat, place], flat.dtype, shape, {"axis": 0})
    back = sorted(range(len(moving)), key=lambda k: moving[k])
    unit = [sizes[i] if i in moving else 1 for i in range(len(sizes))]
    return b.broadcast(b.reshape(permute(b, nested, back), unit), shape)


def _nested(b: GraphBuilder, flat: Value, axes: list[tuple[int, int]], offset: int, n: int) -> Value | None:
    """Axes by falling strides where each stride is a multiple of the next and holds what lies below it: slices of reshapes."""
    v, have = slice_axis(b, flat, 0, offset, n - offset), n - offset
    done: list[Dim] = []
    for k, (size, stride) in enumerate(axes):
        below = sum((s - 1) * t for s, t in axes[k + 1 :]) + 1
        if below > stride or (k > 0 and axes[k - 1][1] % stride):
            return None
        if size * stride > have:
            if (size - 1) * stride + below > have:
                return None
            low, high = [0] * (len(done) + 1), [0] * (len(done) + 1)
            high[-1] = size * stride - have
            v = b.emit("pad", [v], flat.dtype, [*done, size * stride], {"low": low, "high": high})
        else:
            v = slice_axis(b, v, len(done), 0, size * stride)
        done.append(size)
        have = stride
        v = b.reshape(v, [*done, stride])
    return b.reshape(slice_axis(b, v, len(done), 0, 1), done)


@lowering("aten.as_strided.default", "aten.as_strided_copy.default")
def _as_strided(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    sizes, strides = list(b.dims(node.args[1])), list(b.dims(node.args[2]))  # type: ignore[arg-type]
    offset = arg(node, 3, "storage_offset")
    offset = 0 if offset is None else b.dim(offset)
    if not all(isinstance(v, int) for v in [*sizes, *strides, offset]):
        return NotLowered("as_strided over sizes with symbols")
    if 0 in sizes:
        return b.broadcast(b.constant(0, b.dtype(node)), sizes)
    flat = _in_memory_order(b, node.args[0])  # type: ignore[arg-type]
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides))  # type: ignore[operator]
    if flat is None or last >= flat.shape[0]:  # type: ignore[operator]
        return NotLowered("as_strided of memory that is not this tensor's alone")
    return _walk(b, flat, sizes, strides, offset)  # type: ignore[arg-type]
