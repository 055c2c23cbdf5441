# SPDX-License-Identifier: Apache-2.0
"""Reductions, running sums, softmax and its kin."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.fx

from .lower_util import (
    arg,
    axes_of,
    axis_of,
    binary,
    compare,
    lowering,
    number,
    opmath,
    reduce,
    unary,
    used_results,
    where,
)
from .lowering import GraphBuilder, Lowered, NotLowered, Value

# ---- sums, extremes ----


def _plain(b: GraphBuilder, node: torch.fx.Node, op: str, axes: Any, keepdims: bool) -> Lowered:
    x, dtype = b.value(node.args[0]), b.dtype(node)
    listed = axes_of(axes, x.rank)
    if dtype.is_floating_point or x.is_float:
        x = b.cast(x, dtype)
    if not dtype.is_floating_point and dtype != x.dtype and dtype not in (torch.int64, torch.int32):
        return NotLowered(f"integers reduced into {str(dtype).removeprefix('torch.')}")
    if not listed:
        return b.cast(x, dtype)
    run = dtype if dtype.is_floating_point or x.dtype != torch.int64 else torch.int64
    return b.cast(reduce(b, op, x, listed, keepdims, run), dtype)


@lowering("aten.sum.default", "aten.sum.dim_IntList")
def _sum(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return _plain(b, node, "reduce_sum", arg(node, 1, "dim") if "dim" in str(node.target) else None, bool(arg(node, 2, "keepdim", False)))


@lowering("aten.mean.default", "aten.mean.dim")
def _mean(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return _plain(b, node, "reduce_mean", arg(node, 1, "dim") if "dim" in str(node.target) else None, bool(arg(node, 2, "keepdim", False)))


@lowering("aten.prod.default", "aten.prod.dim_int")
def _prod(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    if not b.dtype(node).is_floating_point:
        return NotLowered("products of integers are int64")
    return _plain(b, node, "reduce_prod", arg(node, 1, "dim") if "dim" in str(node.target) else None, bool(arg(node, 2, "keepdim", False)))


@lowering("aten.amax.default", "aten.amin.default")
def _extreme(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    axes = axes_of(arg(node, 1, "dim", ()), x.rank)
    op = "reduce_max" if "amax" in str(node.target) else "reduce_min"
    return reduce(b, op, x, axes, bool(arg(node, 2, "keepdim", False))) if axes else x


@lowering("aten.max.default", "aten.min.default")
def _extreme_of_all(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    return reduce(b, "reduce_max" if ".max." in str(node.target) else "reduce_min", x, range(x.rank), False) if x.rank else x


@lowering("aten.aminmax.default")
def _aminmax(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, axis, keep = b.value(node.args[0]), arg(node, 1, "dim"), bool(arg(node, 2, "keepdim", False))
    axes = axes_of(axis, x.rank)
    return tuple(reduce(b, op, x, axes, keep) if axes else x for op in ("reduce_min", "reduce_max"))


def _position(b: GraphBuilder, op: str, x: Value, axis: int | None, keepdims: bool, shape: Any) -> Value:
    """arg_max or arg_min. bool counts as uint8."""
    if x.rank == 0:
        return b.constant(0, torch.int64)
    x = b.cast(x, torch.uint8) if x.dtype == torch.bool else x
    return b.emit(op, [x], torch.int64, shape, {"keepdims": keepdims} if axis is None else {"axis": axis, "keepdims": keepdims})


@lowering("aten.argmax.default", "aten.argmin.default")
def _argmax(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, axis = b.value(node.args[0]), arg(node, 1, "dim")
    op = "arg_max" if "argmax" in str(node.target) else "arg_min"
    return _position(b, op, x, None if axis is None else axis_of(axis, x.rank), bool(arg(node, 2, "keepdim", False)), b.shape(node))


@lowering("aten.max.dim", "aten.min.dim")
def _max_dim(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, keep = b.value(node.args[0]), bool(arg(node, 2, "keepdim", False))
    most, used = ".max." in str(node.target), used_results(node)
    if x.rank == 0:
        return x, b.constant(0, torch.int64)
    axis = axis_of(number(node.args[1]), x.rank)  # type: ignore[arg-type]
    value = reduce(b, "reduce_max" if most else "reduce_min", x, [axis], keep)
    if 1 not in used:
        return value, b.broadcast(b.constant(0, torch.int64), value.shape)
    return value, _position(b, "arg_max" if most else "arg_min", x, axis, keep, b.shape(node, 1))


@lowering("aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim", "aten.all.dims")
def _any(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, name = b.value(node.args[0]), str(node.target)
    axes = axes_of(None if name.endswith("default") else arg(node, 1, "dim"), x.rank)
    if name.endswith("dims") and arg(node, 1, "dim") == []:
        axes = list(range(x.rank))
    x = b.cast(x, torch.bool)
    v = reduce(b, "reduce_any" if ".any." in name else "reduce_all", x, axes, bool(arg(node, 2, "keepdim", False))) if axes else x
    return b.cast(v, b.dtype(node))


# ---- variance ----


def mean_and_variance(b: GraphBuilder, x: Value, axes: list[int], correction: float, keepdims: bool) -> tuple[Value, Value] | NotLowered:
    """Of float32 x: two passes. The mean keeps its axes, the variance as keepdims says."""
    mean = reduce(b, "reduce_mean", x, axes, True)
    if correction == 0:
        d = binary(b, "sub", x, mean)
        return mean, reduce(b, "reduce_mean", unary(b, "square", d), axes, keepdims)
    kept = [1 if i in axes else d for i, d in enumerate(x.shape)]
    shape = kept if keepdims else [d for i, d in enumerate(x.shape) if i not in axes]
    return mean, b.emit("var", [x], x.dtype, shape, {"axes": axes, "keepdims": keepdims, "correction": correction})


@lowering("aten.var.correction", "aten.std.correction", "aten.var_mean.correction", "aten.std_mean.correction")
def _var(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    name, x = str(node.target), b.value(node.args[0])
    axes, keep, given = arg(node, 1, "dim"), node.kwargs.get("keepdim", False), node.kwargs.get("correction")
    correction = 1.0 if given is None else float(number(given))
    if not x.is_float:
        return NotLowered("a variance of integers")
    if x.rank == 0:
        x = b.reshape(x, [1])
        axes, keep = [0], False
    listed = axes_of(axes, x.rank)
    result = mean_and_variance(b, b.cast(x, opmath(x.dtype)), listed, correction, bool(keep))
    if isinstance(result, NotLowered):
        return result
    mean, var = result
    var = b.cast(unary(b, "sqrt", var) if ".std" in name else var, x.dtype)
    return (var, b.cast(b.reshape(mean, var.shape), x.dtype)) if "_mean" in name else var


# ---- norms of vectors ----


@lowering("aten.linalg_vector_norm.default")
def _vector_norm(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, order, dtype = b.value(node.args[0]), number(arg(node, 1, "ord", 2)), b.dtype(node)
    axes = axes_of(arg(node, 2, "dim"), x.rank)
    if not x.is_float:
        return NotLowered("a norm of integers")
    shape, run = b.shape(node), opmath(dtype)
    x = unary(b, "abs", b.cast(x, run))
    if not axes:
        return b.cast(x, dtype) if order != 0 else b.cast(b.cast(x, torch.bool), dtype)
    attrs = {"axes": axes, "keepdims": bool(arg(node, 3, "keepdim", False))}
    if order in (math.inf, -math.inf):
        v = b.emit("reduce_max" if order > 0 else "reduce_min", [x], run, shape, attrs)
    elif order in (1, 2):
        v = b.emit("reduce_sum" if order == 1 else "reduce_l2", [x], run, shape, attrs)
    elif order == 0:
        v = b.emit("reduce_sum", [b.cast(compare(b, "ne", x, b.constant(0, run)), run)], run, shape, attrs)
    else:
        power = b.emit("reduce_sum", [binary(b, "pow", x, b.constant(float(order), run), run)], run, shape, attrs)
        v = binary(b, "pow", power, b.constant(1.0 / float(order), run), run)
    return b.cast(v, dtype)


# ---- running sums ----


@lowering("aten.cumsum.default")
def _cumsum(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, dtype = b.value(node.args[0]), b.dtype(node)
    if dtype.is_floating_point:
        x = b.cast(x, dtype)
    elif dtype not in (torch.int64, torch.int32) or (x.dtype == torch.int64 and dtype != torch.int64):
        return NotLowered(f"a running sum into {str(dtype).removeprefix('torch.')}")
    if x.rank == 0:
        return b.cast(x, dtype)
    return b.emit("cumsum", [x], dtype, x.shape, {"axis": axis_of(number(node.args[1]), x.rank)})  # type: ignore[arg-type]


# ---- softmax ----


def _over_axis(b: GraphBuilder, op: str, x: Value, axis: int, dtype: torch.dtype) -> Value:
    flat = b.reshape(x, [1]) if x.rank == 0 else x
    v = b.emit(op, [flat], flat.dtype, flat.shape, {"axis": axis_of(axis, flat.rank)})
    return b.cast(b.reshape(v, x.shape), dtype)


@lowering("aten._softmax.default", "aten._log_softmax.default", "aten._safe_softmax.default")
def _softmax(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, dtype, name = b.value(node.args[0]), b.dtype(node), str(node.target)
    if x.dtype != dtype or not x.is_float:
        x = b.cast(x, dtype)
    op = "log_softmax" if "log" in name else "softmax"
    y = _over_axis(b, op, x, int(number(node.args[1])), dtype)
    if "_safe" not in name or x.rank == 0:
        return y
    masked = compare(b, "eq", x, b.constant(-math.inf, x.dtype))
    return where(b, reduce(b, "reduce_all", masked, [axis_of(int(number(node.args[1])), x.rank)], True), b.constant(0.0, dtype), y)


@lowering("aten._softmax_backward_data.default", "aten._log_softmax_backward_data.default")
def _softmax_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    grad, y, dtype = b.value(node.args[0]), b.value(node.args[1]), b.dtype(node)
    run = opmath(grad.dtype)
    g, y = b.cast(grad, run), b.cast(y, run)
    axes = [axis_of(int(number(node.args[2])), y.rank)] if y.rank else []

    def total(v: Value) -> Value:
        return reduce(b, "reduce_sum", v, axes, True) if axes else v

    if "_log_" in str(node.target):
        return b.cast(binary(b, "sub", g, binary(b, "mul", unary(b, "exp", y), total(g), run), run), dtype)
    return b.cast(binary(b, "mul", binary(b, "sub", g, total(binary(b, "mul", g, y, run)), run), y, run), dtype)


@lowering("aten.logsumexp.default")
def _logsumexp(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, dtype = b.value(node.args[0]), b.dtype(node)
    axes = axes_of(node.args[1], x.rank)
    x = b.cast(x, dtype)
    if not axes:
        return x
    return b.emit("logsumexp", [x], dtype, b.shape(node), {"axes": axes, "keepdims": bool(arg(node, 2, "keepdim", False))})
