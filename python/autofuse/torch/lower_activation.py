# SPDX-License-Identifier: Apache-2.0
"""Activations and their gradients. Computed in float32 where eager does, rounded once."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.fx

from .lower_util import arg, binary, compare, lowering, number, opmath, unary, where
from .lowering import GraphBuilder, Lowered, NotLowered, Value


class Calc:
    """Arithmetic on values of one dtype, numbers as constants of it."""

    def __init__(self, b: GraphBuilder, run: torch.dtype) -> None:
        self.b, self.run = b, run

    def of(self, x: Any) -> Value:
        """A value, or a number as a constant."""
        return x if isinstance(x, Value) else self.b.constant(float(x), self.run)

    def __getattr__(self, op: str) -> Callable[..., Value]:
        def call(*operands: Any) -> Value:
            values = [self.of(o) for o in operands]
            if op in ("lt", "le", "gt", "ge", "eq", "ne"):
                return compare(self.b, op, *values)
            if len(values) == 1:
                return unary(self.b, op, values[0])
            return binary(self.b, op, values[0], values[1], self.run)

        return call

    def where(self, condition: Value, x: Any, y: Any) -> Value:
        """x where the condition holds, else y."""
        return where(self.b, condition, self.of(x), self.of(y))


def _operands(b: GraphBuilder, node: torch.fx.Node, n: int) -> tuple[Any, ...]:
    """A calculator and the first n operands in what eager computes in."""
    run = opmath(b.dtype(node))
    return (Calc(b, run), *(b.cast(b.value(v), run) for v in node.args[:n]))


def activation(*targets: str) -> Callable[[Callable[..., Lowered]], Callable[..., Lowered]]:
    """Registers for floats; what is computed is rounded to the result's dtype."""

    def register(fn: Callable[..., Lowered]) -> Callable[..., Lowered]:
        @lowering(*targets)
        def lower(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
            if not b.dtype(node).is_floating_point:
                return NotLowered("an activation of integers")
            v = fn(b, node)
            return b.cast(v, b.dtype(node)) if isinstance(v, Value) else v

        return lower

    return register


def _alpha(node: torch.fx.Node, place: int, name: str, default: float) -> float:
    return float(number(arg(node, place, name, default)))


# ---- forward ----


@activation("aten.gelu.default")
def _gelu(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return unary(b, "gelu", b.value(node.args[0]), approximate=node.kwargs.get("approximate", "none"))


@activation("aten.leaky_relu.default")
def _leaky_relu(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return unary(b, "leaky_relu", b.value(node.args[0]), alpha=_alpha(node, 1, "negative_slope", 0.01))


@activation("aten._prelu_kernel.default")
def _prelu(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, x, weight = _operands(b, node, 2)
    return c.where(c.gt(x, 0), x, c.mul(weight, x))


@activation("aten.elu.default")
def _elu(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, x = _operands(b, node, 1)
    alpha, scale, inner = (_alpha(node, i, n, 1) for i, n in ((1, "alpha"), (2, "scale"), (3, "input_scale")))
    low = c.mul(c.expm1(x if inner == 1 else c.mul(x, inner)), alpha * scale)
    return c.where(c.le(x, 0), low, x if scale == 1 else c.mul(x, scale))


@activation("aten.celu.default")
def _celu(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return unary(b, "celu", b.value(node.args[0]), alpha=_alpha(node, 1, "alpha", 1))


@activation("aten.softplus.default")
def _softplus(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, x = _operands(b, node, 1)
    beta, threshold = _alpha(node, 1, "beta", 1), _alpha(node, 2, "threshold", 20)
    scaled = x if beta == 1 else c.mul(x, beta)
    log = c.log1p(c.exp(scaled))
    return c.where(c.gt(scaled, threshold), x, log if beta == 1 else c.div(log, beta))


@activation("aten.hardswish.default", "aten.hardsigmoid.default")
def _hard(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, x = _operands(b, node, 1)
    gate = unary(b, "clip", c.add(x, 3), min=0.0, max=6.0)
    return c.div(c.mul(x, gate) if "hardswish" in str(node.target) else gate, 6)


@activation("aten.mish.default")
def _mish(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return unary(b, "mish", b.value(node.args[0]))


@activation("aten.threshold.default")
def _threshold(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, at, fill = b.value(node.args[0]), number(node.args[1]), number(node.args[2])
    return where(b, compare(b, "le", x, b.constant(float(at), x.dtype)), b.constant(float(fill), x.dtype), x)


@activation("aten.hardshrink.default", "aten.softshrink.default")
def _shrink(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, x = _operands(b, node, 1)
    at = _alpha(node, 1, "lambd", 0.5)
    if "hardshrink" in str(node.target):
        inside = compare(b, "logical_and", c.ge(x, -at), c.le(x, at))
        return c.where(inside, 0.0, x)
    middle = c.where(compare(b, "ne", x, x), x, 0.0)
    return c.where(c.gt(x, at), c.sub(x, at), c.where(c.lt(x, -at), c.add(x, at), middle))


@lowering("aten.log_sigmoid_forward.default")
def _log_sigmoid(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    """min(x, 0) - log1p(exp(-|x|)); the second result is the exponential where eager keeps one."""
    x = b.value(node.args[0])
    c = Calc(b, opmath(x.dtype))
    v = b.cast(x, c.run)
    e = c.exp(c.neg(c.abs(v)))
    y = b.cast(c.sub(c.minimum(v, 0), c.log1p(e)), x.dtype)
    kept = b.shape(node, 1)
    return y, b.cast(e, b.dtype(node, 1)) if kept == x.shape else b.broadcast(b.constant(0, b.dtype(node, 1)), kept)


# ---- backward ----


@activation("aten.sigmoid_backward.default")
def _sigmoid_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, y = _operands(b, node, 2)
    return c.mul(c.mul(g, c.sub(1, y)), y)


@activation("aten.tanh_backward.default")
def _tanh_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, y = _operands(b, node, 2)
    return c.mul(g, c.mul(c.sub(1, y), c.add(y, 1)))  # 1 - y has no error near 1


@activation("aten.threshold_backward.default")
def _threshold_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    g, x = b.value(node.args[0]), b.value(node.args[1])
    x, at = b.cast(x, b.dtype(node)), float(number(node.args[2]))
    return where(b, compare(b, "le", x, b.constant(at, x.dtype)), b.constant(0.0, g.dtype), g)


@activation("aten.silu_backward.default")
def _silu_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    s = c.sigmoid(x)
    return c.mul(c.mul(g, s), c.add(c.mul(x, c.sub(1, s)), 1))


@activation("aten.gelu_backward.default")
def _gelu_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    if node.kwargs.get("approximate", "none") == "tanh":
        beta, kappa = math.sqrt(2) * (2 / math.sqrt(math.pi)) * 0.5, 0.044715
        square = c.mul(x, x)
        inner = c.mul(c.add(x, c.mul(c.mul(square, x), kappa)), beta)
        t = c.tanh(inner)
        left = c.mul(c.add(t, 1), 0.5)
        slope = c.mul(c.add(c.mul(square, 3 * kappa), 1), beta)
        right = c.mul(c.mul(c.mul(x, 0.5), c.sub(1, c.mul(t, t))), slope)
        return c.mul(g, c.add(left, right))
    cdf = c.mul(c.erfc(c.mul(x, -math.sqrt(0.5))), 0.5)
    pdf = c.mul(c.exp(c.mul(c.mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return c.mul(g, c.add(cdf, c.mul(x, pdf)))


@activation("aten.leaky_relu_backward.default")
def _leaky_relu_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    return c.where(c.gt(x, 0), g, c.mul(g, _alpha(node, 2, "negative_slope", 0.01)))


@activation("aten.elu_backward.default")
def _elu_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g = _operands(b, node, 1)
    alpha, scale, inner, is_result = (number(v) for v in node.args[1:5])
    x = b.cast(b.value(node.args[5]), c.run)
    slope = c.add(x, alpha * scale) if is_result else c.mul(c.exp(c.mul(x, inner)), alpha * scale)
    return c.where(c.le(x, 0), c.mul(c.mul(g, inner), slope), c.mul(g, scale))


@activation("aten.softplus_backward.default")
def _softplus_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    beta, threshold = _alpha(node, 2, "beta", 1), _alpha(node, 3, "threshold", 20)
    scaled = c.mul(x, beta)
    z = c.exp(scaled)
    return c.where(c.gt(scaled, threshold), g, c.div(c.mul(g, z), c.add(z, 1)))


@activation("aten.hardswish_backward.default", "aten.hardsigmoid_backward.default")
def _hard_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    if "hardsigmoid" in str(node.target):
        inside = compare(b, "logical_and", c.gt(x, -3), c.lt(x, 3))
        return c.where(inside, c.mul(g, 1 / 6), 0.0)
    return c.where(c.le(x, -3), 0.0, c.where(c.lt(x, 3), c.mul(g, c.add(c.div(x, 3), 0.5)), g))


@activation("aten.hardtanh_backward.default")
def _hardtanh_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    low, high = number(node.args[2]), number(node.args[3])
    return c.where(compare(b, "logical_or", c.le(x, low), c.ge(x, high)), 0.0, g)


@activation("aten.hardshrink_backward.default", "aten.softshrink_backward.default")
def _shrink_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    at = float(number(node.args[2]))
    return c.where(compare(b, "logical_and", c.ge(x, -at), c.le(x, at)), 0.0, g)


@activation("aten.mish_backward.default")
def _mish_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    t = c.tanh(unary(b, "softplus", x))
    return c.mul(g, c.add(t, c.mul(c.mul(x, c.sigmoid(x)), c.sub(1, c.mul(t, t)))))


@activation("aten.log_sigmoid_backward.default")
def _log_sigmoid_backward(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    c, g, x = _operands(b, node, 2)
    e = c.exp(c.neg(c.abs(x)))
    share = c.div(e, c.add(e, 1))
    below = c.lt(x, 0)
    return c.mul(g, c.sub(c.where(below, 1.0, 0.0), c.mul(c.where(below, 1.0, -1.0), share)))
