# SPDX-License-Identifier: Apache-2.0
"""Layer, group and batch norm, forward. In float32, mean first and the mean square of the distances from it, each result rounded once.

Where only the normalised tensor is read, layer and group norm are the canonical composites; where mean and rstd are too, the same operations one by
one: the server fuses them into the same kernel.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from .lower_reduce import mean_and_variance
from .lower_util import binary, lowering, number, opmath, product, reduce, unary, used_results
from .lowering import GraphBuilder, Lowered, NotLowered, Value
from .symbols import Dim


def _optional(b: GraphBuilder, operand: Any, run: torch.dtype) -> Value | None:
    return b.cast(b.value(operand), run) if operand is not None else None


def _affine(b: GraphBuilder, y: Value, weight: Value | None, bias: Value | None, shape: list[Dim]) -> Value:
    if weight is not None:
        y = binary(b, "mul", y, b.reshape(weight, shape))
    return y if bias is None else binary(b, "add", y, b.reshape(bias, shape))


def _normalise(b: GraphBuilder, x: Value, axes: list[int], eps: float) -> tuple[Value, Value, Value]:
    """The normalised x, its mean and 1 / sqrt(variance + eps), these with their axes kept."""
    mean = reduce(b, "reduce_mean", x, axes, True)
    d = binary(b, "sub", x, mean)
    variance = reduce(b, "reduce_mean", binary(b, "mul", d, d), axes, True)
    rstd = unary(b, "rsqrt", binary(b, "add", variance, b.constant(eps, x.dtype)))
    return binary(b, "mul", d, rstd), mean, rstd


def _composite(b: GraphBuilder, op: str, x: Value, weight: Value | None, bias: Value | None, attrs: dict[str, Any]) -> Value:
    """A composite's operands are x, weight, bias; a bias alone comes with a weight of ones."""
    if bias is not None and weight is None:
        weight = b.broadcast(b.constant(1.0, bias.dtype), bias.shape)
    return b.emit(op, [v for v in (x, weight, bias) if v is not None], x.dtype, x.shape, attrs)


def _plain_optional(b: GraphBuilder, operand: Any) -> Value | None:
    return b.value(operand) if operand is not None else None


@lowering("aten.native_layer_norm.default")
def _layer_norm(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, shape = b.value(node.args[0]), b.dims(node.args[1])  # type: ignore[arg-type]
    weight, bias, eps = node.args[2], node.args[3], float(number(node.args[4]))
    first = x.rank - len(shape)
    if not shape or not x.is_float:
        return NotLowered("a norm over no axis")
    if used_results(node) <= {0}:
        y = _composite(b, "layer_norm", x, _plain_optional(b, weight), _plain_optional(b, bias), {"axis": first, "epsilon": eps})
        nothing = b.broadcast(b.constant(0.0, b.dtype(node, 1)), b.shape(node, 1))
        return y, nothing, nothing
    run = opmath(x.dtype)
    y, mean, rstd = _normalise(b, b.cast(x, run), list(range(first, x.rank)), eps)
    y = _affine(b, y, _optional(b, weight, run), _optional(b, bias, run), list(shape))
    return b.cast(y, b.dtype(node, 0)), b.cast(mean, b.dtype(node, 1)), b.cast(rstd, b.dtype(node, 2))


@lowering("aten.native_group_norm.default")
def _group_norm(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, weight, bias = b.value(node.args[0]), node.args[1], node.args[2]
    channels, groups, eps = x.shape[1], int(number(node.args[6])), float(number(node.args[7]))
    if not isinstance(channels, int) or not x.is_float or groups < 1 or channels % groups:
        return NotLowered("channels that are no known multiple of the groups")
    if used_results(node) <= {0}:
        y = _composite(b, "group_norm", x, _plain_optional(b, weight), _plain_optional(b, bias), {"groups": groups, "epsilon": eps})
        nothing = b.broadcast(b.constant(0.0, b.dtype(node, 1)), b.shape(node, 1))
        return y, nothing, nothing
    run, each = opmath(x.dtype), channels // groups
    apart = b.reshape(b.cast(x, run), [x.shape[0], groups, each, product(x.shape[2:])])
    y, mean, rstd = _normalise(b, apart, [2, 3], eps)
    y = b.reshape(_affine(b, y, _optional(b, weight, run), _optional(b, bias, run), [groups, each, 1]), x.shape)
    mean, rstd = (b.reshape(v, b.shape(node, 1)) for v in (mean, rstd))
    return b.cast(y, b.dtype(node, 0)), b.cast(mean, b.dtype(node, 1)), b.cast(rstd, b.dtype(node, 2))


# ---- batch norm ----


def _per_channel(x: Value) -> list[Dim]:
    """The shape of one number per channel that broadcasts with x."""
    return [x.shape[1]] + [1] * (x.rank - 2)


def _inference(b: GraphBuilder, x: Value, weight: Any, bias: Any, mean: Any, var: Any, eps: float) -> Value:
    operands = [b.value(v) for v in (mean, var)]
    scale, shift = _plain_optional(b, weight), _plain_optional(b, bias)
    if shift is not None and scale is None:
        scale = b.broadcast(b.constant(1.0, shift.dtype), shift.shape)
    return b.emit("batch_norm", [x, *operands, *(v for v in (scale, shift) if v is not None)], x.dtype, x.shape, {"epsilon": eps})


def _empty_results(b: GraphBuilder, node: torch.fx.Node, first: int, n: int) -> tuple[Value, ...]:
    """Results that inference leaves without elements, or at least without meaning."""
    return tuple(b.broadcast(b.constant(0, b.dtype(node, i)), b.shape(node, i)) for i in range(first, n))


def _training(b: GraphBuilder, x: Value, weight: Any, bias: Any, eps: float) -> tuple[Value, Value, Value, Value]:
    """y, mean, rstd and the biased variance, in float32, the last three one number per channel."""
    run = opmath(x.dtype)
    wide = b.cast(x, run)
    axes = [i for i in range(x.rank) if i != 1]
    mean, variance = mean_and_variance(b, wide, axes, 0.0, True)  # type: ignore[misc]
    rstd = unary(b, "rsqrt", binary(b, "add", variance, b.constant(eps, run)))
    y = binary(b, "mul", binary(b, "sub", wide, mean), rstd)
    y = _affine(b, y, _optional(b, weight, run), _optional(b, bias, run), _per_channel(x))
    flat = [x.shape[1]]
    return y, b.reshape(mean, flat), b.reshape(rstd, flat), b.reshape(variance, flat)


def _running(b: GraphBuilder, old: Value, new: Value, momentum: float) -> Value:
    """(1 - momentum) old + momentum new, in new's dtype."""
    was = binary(b, "mul", b.cast(old, new.dtype), b.constant(1.0 - momentum, new.dtype))
    return b.cast(binary(b, "add", was, binary(b, "mul", new, b.constant(momentum, new.dtype))), old.dtype)


def _unbiased(b: GraphBuilder, x: Value, variance: Value) -> Value:
    """A biased variance times n / (n - 1)."""
    n = product([x.shape[0], *x.shape[2:]])
    if isinstance(n, str):
        count = b._host_scalar(n, variance.dtype)
        return binary(b, "mul", variance, binary(b, "div", count, binary(b, "sub", count, b.constant(1.0, variance.dtype))))
    return binary(b, "mul", variance, b.constant(n / (n - 1) if n > 1 else float("nan"), variance.dtype))


@lowering("aten._native_batch_norm_legit_no_training.default", "aten._batch_norm_no_update.default")
def _batch_norm_inference(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, weight, bias, mean, var = node.args[:5]
    v = b.value(x)
    if v.rank < 2 or not v.is_float:
        return NotLowered("a batch norm without channels")
    y = _inference(b, v, weight, bias, mean, var, float(number(node.args[6])))
    return (y, *_empty_results(b, node, 1, len(node.meta["val"])))


@lowering("aten._native_batch_norm_legit.no_stats")
def _batch_norm_no_stats(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, weight, bias, training, _, eps = node.args[:6]
    v = b.value(x)
    if v.rank < 2 or not v.is_float or not training:
        return NotLowered("a batch norm without statistics")
    y, mean, rstd, _ = _training(b, v, weight, bias, float(number(eps)))
    return b.cast(y, b.dtype(node, 0)), b.cast(mean, b.dtype(node, 1)), b.cast(rstd, b.dtype(node, 2))


@lowering("aten._native_batch_norm_legit_functional.default", "aten._batch_norm_with_update_functional.default")
def _batch_norm_training(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    """Results: y, mean, rstd (and a reserve), then the running mean and variance as they are afterwards."""
    x, weight, bias, running_mean, running_var = node.args[:5]
    with_update, v = "with_update" in str(node.target), b.value(x)
    training, momentum, eps = (True, *node.args[5:7]) if with_update else node.args[5:8]
    if v.rank < 2 or not v.is_float:
        return NotLowered("a batch norm without channels")
    old = [b.value(running_mean), b.value(running_var)]
    n = len(node.meta["val"])
    if not training:
        y = _inference(b, v, weight, bias, running_mean, running_var, float(number(eps)))
        return (y, *_empty_results(b, node, 1, n - 2), *old)
    y, mean, rstd, variance = _training(b, v, weight, bias, float(number(eps)))
    unbiased = _unbiased(b, v, variance)
    first = [b.cast(y, b.dtype(node, 0)), b.cast(mean, b.dtype(node, 1)), b.cast(rstd, b.dtype(node, 2))]
    rest = [_running(b, o, new, float(number(momentum))) for o, new in zip(old, (mean, unbiased))]
    return (*first, *_empty_results(b, node, 3, n - 2), *rest)
