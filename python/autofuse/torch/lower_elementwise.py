# SPDX-License-Identifier: Apache-2.0
"""Elementwise aten ops: arithmetic, comparisons, bits, choices, casts.

Dtypes meet as eager has them. Where eager rounds a number to a 16-bit dtype before it meets the tensor (add, sub, pow, fmod, comparisons) it is
rounded here too; mul, div and what computes in float32 take it unrounded.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.fx

from .lower_util import (
    HALF,
    KIND,
    arg,
    as_dtype,
    binary,
    broadcast_shape,
    compare,
    lowering,
    number,
    operands_in,
    opmath,
    promoted,
    rounded,
    unary,
    where,
)
from .lowering import GraphBuilder, Lowered, NotLowered, Value

# ---- one operand ----

_SAME = {
    "abs": "abs", "neg": "neg", "sign": "sign", "sgn": "sign", "relu": "relu", "floor": "floor", "ceil": "ceil", "round": "round",
    "trunc": "trunc", "bitwise_not": "bitwise_not",
}  # fmt: skip
_TO_FLOAT = {
    "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "tanh": "tanh",
    "sigmoid": "sigmoid", "erf": "erf", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
    "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "exp2": "exp2", "log2": "log2", "log10": "log10", "erfc": "erfc",
    "silu": "silu",
}  # fmt: skip


def _same(op: str) -> Any:
    def lower(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
        x = b.value(node.args[0])
        if x.dtype == torch.bool and op != "bitwise_not":
            return x if op in ("abs", "sign", "relu", "floor", "ceil", "round", "trunc") else NotLowered(f"{op} of bool")
        return unary(b, op, x)

    return lower


def _to_float(op: str) -> Any:
    def lower(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
        return unary(b, op, b.cast(b.value(node.args[0]), b.dtype(node)))

    return lower


for _name, _op in _SAME.items():
    lowering(f"aten.{_name}.default")(_same(_op))
for _name, _op in _TO_FLOAT.items():
    lowering(f"aten.{_name}.default")(_to_float(_op))


def _is(op: str) -> Any:
    def lower(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
        x = b.value(node.args[0])
        return unary(b, op, b.cast(x, torch.int8) if x.dtype == torch.bool else x, torch.bool)

    return lower


for _name in ("isnan", "isinf"):
    lowering(f"aten.{_name}.default")(_is(_name))


@lowering("aten.isposinf.default", "aten.isneginf.default")
def _signed_inf(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    x = x if x.is_float else b.cast(x, torch.float32)
    return compare(b, "eq", x, b.constant(math.inf if "pos" in str(node.target) else -math.inf, x.dtype))


@lowering("aten.signbit.default")
def _signbit(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    if x.dtype == torch.bool:
        return NotLowered("signbit of bool")
    if x.is_float:
        x = binary(b, "copysign", b.constant(1.0, x.dtype), x, x.dtype)
    return compare(b, "lt", x, b.constant(0, x.dtype))


@lowering("aten.round.decimals")
def _round_decimals(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, decimals = b.value(node.args[0]), int(arg(node, 1, "decimals", 0))
    if not x.is_float:
        return NotLowered("decimals of integers")
    if decimals == 0:
        return unary(b, "round", x)
    run = opmath(x.dtype)
    scale = b.constant(float(10 ** abs(decimals)), run)
    y = b.cast(x, run)
    first, last = ("mul", "div") if decimals > 0 else ("div", "mul")
    y = binary(b, last, unary(b, "round", binary(b, first, y, scale, run)), scale, run)
    return b.cast(y, x.dtype)


@lowering("aten.logical_not.default")
def _logical_not(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return unary(b, "logical_not", b.value(node.args[0]), torch.bool)


@lowering("aten.nan_to_num.default")
def _nan_to_num(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x = b.value(node.args[0])
    if not x.is_float:
        return x
    info = torch.finfo(x.dtype)
    nan, high, low = (number(v) if v is not None else d for v, d in zip([arg(node, i, n) for i, n in ((1, "nan"), (2, "posinf"), (3, "neginf"))],
                                                                       (0.0, info.max, info.min)))  # fmt: skip
    for special, given in ((math.inf, high), (-math.inf, low)):
        x = where(b, compare(b, "eq", x, b.constant(special, x.dtype)), b.constant(float(given), x.dtype), x)
    return where(b, unary(b, "isnan", x, torch.bool), b.constant(float(nan), x.dtype), x)


# ---- two operands ----

_ARITHMETIC = {
    "mul": ("mul", True), "maximum": ("maximum", False), "minimum": ("minimum", False), "fmod": ("fmod", False), "remainder": ("remainder", False),
    "bitwise_and": ("bitwise_and", False), "bitwise_or": ("bitwise_or", False), "bitwise_xor": ("bitwise_xor", False),
    "bitwise_left_shift": ("shift_left", False), "__lshift__": ("shift_left", False), "bitwise_right_shift": ("shift_right", False),
    "__rshift__": ("shift_right", False),
}  # fmt: skip



def _overloads(name: str) -> list[str]:
    """Those that take a tensor."""
    packet = getattr(torch.ops.aten, name)
    return [o for o in packet.overloads() if any(str(a.type) == "Tensor" for a in getattr(packet, o)._schema.arguments)]


_ON_BOOL = {"mul": "logical_and", "add": "logical_or", "maximum": "logical_or", "minimum": "logical_and"}


def _pair(b: GraphBuilder, node: torch.fx.Node, op: str, unrounded: bool) -> Lowered:
    dtype = promoted(node.args[:2])
    (x, y), run = operands_in(b, node.args[:2], dtype, unrounded)
    if dtype == torch.bool:
        if op in _ON_BOOL:
            return compare(b, _ON_BOOL[op], x, y)
        if not op.startswith("bitwise"):
            return NotLowered(f"{op} of bool")
    return b.cast(b.broadcast(binary(b, op, x, y, run), b.shape(node)), b.dtype(node))


def _arithmetic(op: str, unrounded: bool) -> Any:
    return lambda b, node: _pair(b, node, op, unrounded)


for _name, (_op, _unrounded) in _ARITHMETIC.items():
    for _overload in ("default", "Tensor", "Scalar", "Scalar_Tensor"):
        if _overload in _overloads(_name):
            lowering(f"aten.{_name}.{_overload}")(_arithmetic(_op, _unrounded))


@lowering("aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar")
def _add(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    op = "add" if ".add." in str(node.target) else "sub"
    alpha = arg(node, 2, "alpha", 1)
    if alpha == 1:
        return _pair(b, node, op, False)
    return _scaled(b, node, node.args[0], node.args[1], alpha, op)


@lowering("aten.rsub.Tensor", "aten.rsub.Scalar")
def _rsub(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return _scaled(b, node, node.args[1], node.args[0], arg(node, 2, "alpha", 1), "sub")


def _scaled(b: GraphBuilder, node: torch.fx.Node, x: Any, y: Any, alpha: Any, op: str) -> Lowered:
    """x + alpha y, in float32 for 16-bit floats, alpha rounded to those."""
    dtype = promoted([x, y])
    (vx, vy), _ = operands_in(b, [x, y], dtype)
    if dtype == torch.bool:
        return NotLowered(f"{op} of bool with alpha")
    run = opmath(dtype) if alpha != 1 else dtype
    vx, vy = b.cast(vx, run), b.cast(vy, run)
    if alpha != 1:
        vy = binary(b, "mul", vy, b.scalar(rounded(number(alpha), dtype) if dtype in HALF else alpha, run), run)
    return b.cast(binary(b, op, vx, vy, run), b.dtype(node))


@lowering("aten.div.Tensor", "aten.div.Scalar")
def _div(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    dtype = promoted(node.args[:2], KIND.INT_TO_FLOAT)
    (x, y), run = operands_in(b, node.args[:2], dtype, True)
    return b.cast(binary(b, "div", x, y, run), b.dtype(node))


@lowering("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.floor_divide.default")
def _div_mode(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    mode = "floor" if "floor_divide" in str(node.target) else node.kwargs.get("rounding_mode")
    if mode is None:
        return _div(b, node)
    dtype = promoted(node.args[:2])
    if dtype == torch.bool:
        return NotLowered("whole quotients of bool")
    if mode == "trunc" and dtype in HALF and b.has(node.args[1]) and b.value(node.args[1]).rank > 0:
        (x, y), run = operands_in(b, node.args[:2], dtype)  # eager rounds this quotient before it makes it whole
        return unary(b, "trunc", binary(b, "div", x, y, run))
    (x, y), run = operands_in(b, node.args[:2], dtype, True)
    return b.cast(binary(b, f"{mode}_div", x, y, run), b.dtype(node))


@lowering("aten.atan2.default", "aten.hypot.default", "aten.copysign.Tensor", "aten.copysign.Scalar")
def _float_pair(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    op = str(node.target).split(".")[1]
    (x, y), run = operands_in(b, node.args[:2], promoted(node.args[:2], KIND.INT_TO_FLOAT))
    return b.cast(binary(b, op, x, y, run), b.dtype(node))


@lowering("aten.fmax.default", "aten.fmin.default")
def _without_nan(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    (x, y), run = operands_in(b, node.args[:2], promoted(node.args[:2]))
    greater = ".fmax." in str(node.target)
    if run == torch.bool:
        return compare(b, "logical_or" if greater else "logical_and", x, y)
    best = binary(b, "maximum" if greater else "minimum", x, y, run)
    if not run.is_floating_point:
        return best
    best = where(b, unary(b, "isnan", y, torch.bool), x, best)
    return where(b, unary(b, "isnan", x, torch.bool), y, best)


# Exponents that eager's kernels treat apart, in its order of operations.
def _special_power(b: GraphBuilder, x: Value, exponent: float) -> Value | None:
    if exponent == 2:
        return unary(b, "square", x)
    if exponent in (0.5, -0.5):
        return None if x.dtype == torch.float16 else unary(b, "sqrt" if exponent > 0 else "rsqrt", x)
    if exponent == -1:
        return unary(b, "reciprocal", x)
    if exponent not in (3, -2):
        return None
    run = opmath(x.dtype)
    y = b.cast(x, run)
    power = binary(b, "mul", unary(b, "square", y), y, run) if exponent == 3 else unary(b, "reciprocal", unary(b, "square", y))
    return b.cast(power, x.dtype)


@lowering("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def _pow(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    base, exponent = node.args[:2]
    dtype = promoted([base, exponent], KIND.BOOL_TO_LONG)
    if b.has(base) and not b.has(exponent) and not isinstance(exponent, torch.fx.Node):
        if exponent == 0 or exponent == 1:
            x = b.cast(b.value(base), dtype)
            return x if exponent == 1 else b.broadcast(b.constant(1, dtype), b.shape(node))
        if dtype.is_floating_point:
            special = _special_power(b, b.cast(b.value(base), dtype), float(exponent))
            if special is not None:
                return special
    (x, y), run = operands_in(b, [base, exponent], dtype)
    return b.cast(binary(b, "pow", x, y, run), b.dtype(node))


# ---- comparisons and logic ----


def _compare(op: str) -> Any:
    def lower(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
        (x, y), _ = operands_in(b, node.args[:2], promoted(node.args[:2]))
        return compare(b, op, x, y)

    return lower


for _op in ("eq", "ne", "lt", "le", "gt", "ge"):
    for _overload in ("Tensor", "Scalar"):
        lowering(f"aten.{_op}.{_overload}")(_compare(_op))


@lowering("aten.logical_and.default", "aten.logical_or.default", "aten.logical_xor.default")
def _logical(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, y = b.value(node.args[0]), b.value(node.args[1])
    return compare(b, str(node.target).split(".")[1], as_bool(b, x), as_bool(b, y))


def as_bool(b: GraphBuilder, x: Value) -> Value:
    """Whether each element is not zero."""
    return b.cast(x, torch.bool)


# ---- choices ----


@lowering("aten.where.self")
def _where(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    condition, x, y = node.args[:3]
    dtype = b.dtype(node)
    values = [as_dtype(b, v, dtype) for v in (x, y)]
    return where(b, as_bool(b, b.value(condition)), *values)


@lowering("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def _masked_fill(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, mask, value = node.args[:3]
    v = b.value(x)
    return b.broadcast(where(b, as_bool(b, b.value(mask)), as_dtype(b, value, v.dtype), v), b.shape(node))


def _limit(b: GraphBuilder, x: Value, op: str, bound: Any) -> Value:
    return x if bound is None else binary(b, op, x, as_dtype(b, bound, x.dtype), x.dtype)


@lowering("aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_min.Tensor", "aten.clamp_max.default",
          "aten.clamp_max.Tensor", "aten.hardtanh.default")  # fmt: skip
def _clamp(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    name = str(node.target)
    low, high = arg(node, 1, "min"), arg(node, 2, "max")
    if "clamp_max" in name:
        low, high = None, arg(node, 1, "max")
    if "hardtanh" in name:
        low, high = arg(node, 1, "min_val", -1), arg(node, 2, "max_val", 1)
    dtype = promoted([node.args[0], low, high]) if "hardtanh" not in name else b.dtype(node)
    x = b.cast(b.value(node.args[0]), dtype)
    if dtype == torch.bool:
        return NotLowered("bounds of bool")
    fixed = [v for v in (low, high) if v is None or isinstance(v, (int, float))]
    if len(fixed) == 2 and dtype != torch.int64:
        attrs = {k: rounded(v, dtype) for k, v in (("min", low), ("max", high)) if v is not None}
        if not any(isinstance(v, float) and math.isnan(v) for v in attrs.values()):
            return unary(b, "clip", x, **attrs)
    return b.broadcast(_limit(b, _limit(b, x, "maximum", low), "minimum", high), b.shape(node))


# ---- casts and copies ----


@lowering("aten._to_copy.default", "prims.convert_element_type.default")
def _to_copy(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    x, of = b.value(node.args[0]), node.args[0].meta["val"]  # type: ignore[union-attr]
    if of.device != b.meta(node).device:
        return NotLowered("a copy to another device")
    dtype = b.dtype(node)
    return b.cast(x, dtype)


@lowering("aten.clone.default", "aten.lift_fresh_copy.default", "prims.clone.default")
def _clone(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return b.value(node.args[0])


@lowering("aten.alias.default", "aten.detach.default", "aten.lift_fresh.default", "aten.detach_copy.default", "aten.alias_copy.default")
def _alias(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    return b.value(node.args[0])


@lowering("aten.copy.default")
def _copy(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    src = b.cast(b.value(node.args[1]), b.dtype(node))
    return b.broadcast(src, b.shape(node))


# ---- three operands ----


def _float32(b: GraphBuilder, operands: list[Any], dtype: torch.dtype) -> list[Value]:
    """Operands in what eager computes in, numbers unrounded."""
    return [as_dtype(b, o, opmath(dtype)) for o in operands]


@lowering("aten.addcmul.default", "aten.addcdiv.default")
def _addc(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    dtype = promoted(node.args[:3])
    x, s, t = _float32(b, list(node.args[:3]), dtype)
    value, run = arg(node, 3, "value", 1), opmath(dtype)
    if not dtype.is_floating_point and "addcdiv" in str(node.target):
        return NotLowered("addcdiv of integers")
    if value != 1:
        s = binary(b, "mul", b.scalar(value, run), s, run)
    return b.cast(binary(b, "add", x, binary(b, "mul" if "addcmul" in str(node.target) else "div", s, t, run), run), b.dtype(node))


@lowering("aten.lerp.Scalar", "aten.lerp.Tensor")
def _lerp(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    dtype = b.dtype(node)
    if not dtype.is_floating_point:
        return NotLowered("lerp of integers")
    operands = _float32(b, list(node.args[:3]), dtype)
    run = opmath(dtype)
    shape = broadcast_shape(*(v.shape for v in operands))
    return b.cast(b.emit("lerp", [b.cast(v, run) for v in operands], run, shape), dtype)
