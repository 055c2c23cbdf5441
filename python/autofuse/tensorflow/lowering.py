# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's ops as nodes of a fragment. A row is a function of the op and its operands; NotLowered says why an op stays TensorFlow's."""
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import tensorflow as tf

Dim = Union[int, str]
"""A size, or an expression over the symbols."""
DTYPES = {"bool": "bool", "int8": "int8", "uint8": "uint8", "int16": "int16", "int32": "int32", "int64": "int64", "float16": "float16",
          "bfloat16": "bfloat16", "float32": "float32"}
FLOATS = ("float16", "bfloat16", "float32")


class NotLowered(Exception):
    """The op stays TensorFlow's; the text says why."""


class Val(NamedTuple):
    """A value of the fragment."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]


class Known(NamedTuple):
    """A value that is known while the graph is read: an array, whose integers may be expressions (an object array then)."""

    value: np.ndarray
    dtype: str


Operand = Union[Val, Known]


class Builder:
    """Collects the nodes of one TensorFlow op."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.nodes: list[dict[str, Any]] = []
        self.constants: list[dict[str, Any]] = []

    def emit(self, kind: str, inputs: Sequence[Operand], shape: Sequence[Dim], dtype: str | None = None, /, **attrs: Any) -> Val:
        """One node; its name and that of its value follow from the op's."""
        vals = [self.val(i) for i in inputs]
        out = Val(f"{self.op.name}/{len(self.nodes)}", dtype or vals[0].dtype, tuple(shape))
        self.nodes.append({"name": f"{self.op.name}#{len(self.nodes)}", "op": kind, "inputs": [v.name for v in vals],
                           "origin": self.op.type, "attrs": {k: v for k, v in attrs.items() if v is not None},
                           "outputs": [{"name": out.name, "dtype": out.dtype, "shape": list(out.shape)}]})
        return out

    def val(self, operand: Operand) -> Val:
        """An operand as a value; what is known becomes a constant."""
        if isinstance(operand, Val):
            return operand
        if operand.value.dtype == object:
            raise NotLowered("a size of the graph as data")
        if operand.dtype not in DTYPES:
            raise NotLowered(f"dtype {operand.dtype}")
        value = Val(f"{self.op.name}/c{len(self.constants)}", operand.dtype, operand.value.shape)
        self.constants.append({"name": value.name, "dtype": value.dtype, "shape": list(value.shape), "bits": operand.value.tobytes().hex()})
        return value

    def scalar(self, like: Operand, number: float) -> Known:
        """A number of an operand's dtype."""
        dtype = dtype_of(like)
        return Known(np.array(number, tf.as_dtype(dtype).as_numpy_dtype), dtype)


def dtype_of(x: Operand) -> str:
    """Of either kind of operand."""
    return x.dtype


def shape_of(x: Operand) -> tuple[Dim, ...]:
    """Of either kind of operand."""
    return x.shape if isinstance(x, Val) else tuple(x.value.shape)


def broadcast(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """numpy's rule, where sizes are the same number or the same expression."""
    rank = max(len(s) for s in shapes)
    out: list[Dim] = []
    for i in range(rank):
        sizes = {s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0} - {1}
        if len(sizes) > 1:
            raise NotLowered("shapes are not known to broadcast")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def ints(x: Operand) -> list[int]:
    """A parameter as plain numbers."""
    if not isinstance(x, Known) or x.value.dtype == object:
        raise NotLowered("a parameter that is not known")
    return [int(v) for v in np.ravel(x.value)]


def product(dims: Sequence[Dim]) -> Dim:
    """An expression where one of them is."""
    number, names = 1, []
    for d in dims:
        if isinstance(d, str):
            names.append(f"({d})")
        else:
            number *= d
    if not names or number == 0:
        return number
    return "*".join(names + ([str(number)] if number != 1 else []))


def sized(x: Operand, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
    """A target shape with its -1 filled in."""
    if -1 not in sizes:
        return tuple(sizes)
    have, rest, at = list(shape_of(x)), [s for s in sizes if s != -1], list(sizes).index(-1)
    for s in list(rest):  # what stands on both sides
        if s in have:
            have.remove(s)
            rest.remove(s)
    top, below = product(have), product(rest)
    if isinstance(top, int) and isinstance(below, int):
        left: Dim = top // below if below else 0
    else:
        left = top if below == 1 else f"({top})//({below})"
    return tuple(left if i == at else s for i, s in enumerate(sizes))


def unary(kind: str, **attrs: Any) -> Callable[..., Val]:
    """A row of the table."""
    return lambda b, x: b.emit(kind, [x], shape_of(x), **attrs)


def predicate(kind: str) -> Callable[..., Val]:
    """A row of the table whose result is a bool."""
    return lambda b, x: b.emit(kind, [x], shape_of(x), "bool")


def binary(kind: str, dtype: str | None = None) -> Callable[..., Val]:
    """A row of the table."""
    return lambda b, x, y: b.emit(kind, [x, y], broadcast(shape_of(x), shape_of(y)), dtype or dtype_of(x))


def _axes(x: Operand, given: Operand) -> list[int]:
    rank = len(shape_of(x))
    return sorted({a % rank for a in ints(given)}) if rank else []


def reduce(kind: str) -> Callable[..., Val]:
    """Axes are the second operand."""
    def run(b: Builder, x: Operand, given: Operand) -> Val:
        axes, keep = _axes(x, given), bool(b.op.get_attr("keep_dims"))
        shape = [1 if i in axes else d for i, d in enumerate(shape_of(x)) if keep or i not in axes]
        return b.emit(kind, [x], shape, axes=axes, keepdims=keep) if axes else b.emit("reshape", [x], shape, shape=shape)
    return run


def _cast(b: Builder, x: Operand) -> Val:
    to = tf.as_dtype(b.op.get_attr("DstT")).name
    if to not in DTYPES or b.op.get_attr("Truncate"):
        raise NotLowered(f"dtype {to}")
    return b.emit("cast", [x], shape_of(x), to)


def _reshape(b: Builder, x: Operand, to: Operand) -> Val:
    if not isinstance(to, Known):
        raise NotLowered("a shape that is not known")
    shape = sized(x, [d if isinstance(d, str) else int(d) for d in np.ravel(to.value)])
    return b.emit("reshape", [x], shape, shape=list(shape))


def _expand_dims(b: Builder, x: Operand, axis: Operand) -> Val:
    shape = list(shape_of(x))
    at = ints(axis)[0]
    shape.insert(at + len(shape) + 1 if at < 0 else at, 1)
    return b.emit("reshape", [x], shape, shape=shape)


def _squeeze(b: Builder, x: Operand) -> Val:
    shape, given = shape_of(x), [int(a) % max(len(shape_of(x)), 1) for a in b.op.get_attr("squeeze_dims")]
    if not given and any(isinstance(d, str) for d in shape):
        raise NotLowered("a size that may be 1")
    left = [d for i, d in enumerate(shape) if not (i in given if given else d == 1)]
    return b.emit("reshape", [x], left, shape=left)


def _transpose(b: Builder, x: Operand, perm: Operand) -> Val:
    order = [p % len(shape_of(x)) for p in ints(perm)]
    return b.emit("transpose", [x], [shape_of(x)[p] for p in order], perm=order)


def _to_shape(b: Builder, x: Operand, to: Operand) -> Val:
    if not isinstance(to, Known):
        raise NotLowered("a shape that is not known")
    shape = [d if isinstance(d, str) else int(d) for d in np.ravel(to.value)]
    broadcast(shape, shape_of(x))
    return b.emit("broadcast", [x], shape, shape=shape)


def _tile(b: Builder, x: Operand, times: Operand) -> Val:
    """What repeats an axis of one element."""
    if not isinstance(times, Known):
        raise NotLowered("a shape that is not known")
    repeats = [d if isinstance(d, str) else int(d) for d in np.ravel(times.value)]
    if any(d != 1 and r != 1 for d, r in zip(shape_of(x), repeats)):
        if any(isinstance(r, str) for r in repeats):
            raise NotLowered("a number of copies that is a size")
        return b.emit("tile", [x], [product([d, r]) for d, r in zip(shape_of(x), repeats)], repeats=repeats)
    shape = [d if r == 1 else r for d, r in zip(shape_of(x), repeats)]
    return b.emit("broadcast", [x], shape, shape=shape)


def _fill(b: Builder, dims: Operand, value: Operand) -> Val:
    return _to_shape(b, value, dims)


def _concat(b: Builder, *operands: Operand) -> Val:
    xs, axis = operands[:-1], ints(operands[-1])[0] % len(shape_of(operands[0]))
    shape = list(shape_of(xs[0]))
    sizes = [shape_of(x)[axis] for x in xs]
    for x in xs:
        if [d for i, d in enumerate(shape_of(x)) if i != axis] != [d for i, d in enumerate(shape) if i != axis] or len(xs) > 64:
            raise NotLowered("shapes are not known to be alike")
    numbers = [s for s in sizes if isinstance(s, int)]
    shape[axis] = sum(numbers) if len(numbers) == len(sizes) else "+".join(f"({s})" for s in sizes)
    return b.emit("concat", list(xs), shape, axis=axis)


def _pack(b: Builder, *xs: Operand) -> Val:
    rank = len(shape_of(xs[0]))
    axis = int(b.op.get_attr("axis")) % (rank + 1)
    wide = [*shape_of(xs[0])[:axis], 1, *shape_of(xs[0])[axis:]]
    if len(xs) > 64 or any(shape_of(x) != shape_of(xs[0]) for x in xs):
        raise NotLowered("shapes are not known to be alike")
    parts = [b.emit("reshape", [x], wide, shape=wide) for x in xs]
    return b.emit("concat", parts, [*wide[:axis], len(xs), *wide[axis + 1:]], axis=axis)


def _gather(b: Builder, x: Operand, index: Operand, axis: Operand) -> Val:
    at = ints(axis)[0] % max(len(shape_of(x)), 1)
    if b.op.get_attr("batch_dims"):
        raise NotLowered("batch_dims")
    return b.emit("gather", [x, index], [*shape_of(x)[:at], *shape_of(index), *shape_of(x)[at + 1:]], axis=at)


def _softmax(kind: str) -> Callable[..., Val]:
    return lambda b, x: b.emit(kind, [x], shape_of(x), axis=len(shape_of(x)) - 1)


def _bias_add(b: Builder, x: Operand, bias: Operand) -> Val:
    if b.op.get_attr("data_format") != b"NHWC":
        bias = b.emit("reshape", [bias], (shape := [*shape_of(bias)] + [1] * (len(shape_of(x)) - 2)), shape=shape)
    return b.emit("add", [x, bias], broadcast(shape_of(x), shape_of(bias)))


def _where(b: Builder, c: Operand, x: Operand, y: Operand) -> Val:
    if b.op.type == "Select" and shape_of(c) != shape_of(x):
        raise NotLowered("a condition of another shape")
    return b.emit("where", [c, x, y], broadcast(shape_of(c), shape_of(x), shape_of(y)), dtype_of(x))


def _sum_of(b: Builder, *xs: Operand) -> Val:
    total = b.val(xs[0])
    for x in xs[1:]:
        total = b.emit("add", [total, x], broadcast(shape_of(total), shape_of(x)))
    return total


def _squared_difference(b: Builder, x: Operand, y: Operand) -> Val:
    return b.emit("square", [d := b.emit("sub", [x, y], broadcast(shape_of(x), shape_of(y)))], d.shape)


def _div_no_nan(b: Builder, x: Operand, y: Operand) -> Val:
    shape, zero = broadcast(shape_of(x), shape_of(y)), b.scalar(x, 0)
    return b.emit("where", [b.emit("eq", [y, zero], shape_of(y), "bool"), zero, b.emit("div", [x, y], shape)], shape, dtype_of(x))


def _clip(b: Builder, x: Operand, low: Operand, high: Operand) -> Val:
    y = b.emit("maximum", [x, low], broadcast(shape_of(x), shape_of(low)))
    return b.emit("minimum", [y, high], broadcast(y.shape, shape_of(high)))


def _same(b: Builder, x: Operand) -> Val:
    return b.val(x)


def _all_of(number: float) -> Callable[..., Val]:
    return lambda b, x: b.emit("broadcast", [b.scalar(x, number)], shape_of(x), shape=list(shape_of(x)))


def _gradient(rule: Callable[[Builder, Operand, Operand], Val]) -> Callable[..., Val]:
    """A rule for operands of one shape."""
    def run(b: Builder, x: Operand, y: Operand) -> Val:
        if shape_of(x) != shape_of(y):
            raise NotLowered("shapes are not known to be alike")
        return rule(b, x, y)
    return run


def _mul(b: Builder, x: Operand, y: Operand) -> Val:
    return b.emit("mul", [x, y], broadcast(shape_of(x), shape_of(y)))


def _tanh_grad(b: Builder, y: Operand, dy: Operand) -> Val:
    return _mul(b, dy, b.emit("sub", [b.scalar(y, 1), b.emit("square", [y], shape_of(y))], shape_of(y), dtype_of(y)))


def _sigmoid_grad(b: Builder, y: Operand, dy: Operand) -> Val:
    return _mul(b, _mul(b, dy, y), b.emit("sub", [b.scalar(y, 1), y], shape_of(y), dtype_of(y)))


def _sqrt_grad(b: Builder, y: Operand, dy: Operand) -> Val:
    return b.emit("div", [_mul(b, dy, b.scalar(y, 0.5)), y], shape_of(y))


def _rsqrt_grad(b: Builder, y: Operand, dy: Operand) -> Val:
    return _mul(b, _mul(b, b.scalar(y, -0.5), dy), _mul(b, _mul(b, y, y), y))


def _reciprocal_grad(b: Builder, y: Operand, dy: Operand) -> Val:
    return _mul(b, b.emit("neg", [dy], shape_of(dy)), _mul(b, y, y))


def _relu_grad(high: float | None) -> Callable[[Builder, Operand, Operand], Val]:
    def run(b: Builder, dy: Operand, x: Operand) -> Val:
        passes = b.emit("gt", [x, b.scalar(x, 0)], shape_of(x), "bool")
        if high is not None:
            passes = b.emit("logical_and", [passes, b.emit("lt", [x, b.scalar(x, high)], shape_of(x), "bool")], shape_of(x), "bool")
        return b.emit("where", [passes, dy, b.scalar(dy, 0)], shape_of(x), dtype_of(dy))
    return run


def _softplus_grad(b: Builder, dy: Operand, x: Operand) -> Val:
    return _mul(b, dy, b.emit("sigmoid", [x], shape_of(x)))


UNARY = {"Abs": "abs", "Neg": "neg", "Sign": "sign", "Relu": "relu", "Exp": "exp", "Log": "log", "Log1p": "log1p", "Expm1": "expm1",
         "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Reciprocal": "reciprocal", "Inv": "reciprocal", "Tanh": "tanh", "Sigmoid": "sigmoid",
         "Erf": "erf",
         "Erfc": "erfc", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh",
         "Cosh": "cosh",
         "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Floor": "floor", "Ceil": "ceil", "Round": "round", "Rint": "round",
         "Square": "square", "Invert": "bitwise_not", "Softplus": "softplus", "Softsign": "softsign"}
BINARY = {"Add": "add", "AddV2": "add", "Sub": "sub", "Mul": "mul", "RealDiv": "div", "Maximum": "maximum", "Minimum": "minimum",
          "Pow": "pow",
          "FloorDiv": "floor_div", "FloorMod": "remainder", "TruncateDiv": "trunc_div", "TruncateMod": "fmod", "Mod": "fmod",
          "Atan2": "atan2",
          "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor"}
COMPARE = {"Equal": "eq", "NotEqual": "ne", "Less": "lt", "LessEqual": "le", "Greater": "gt", "GreaterEqual": "ge",
           "LogicalAnd": "logical_and", "LogicalOr": "logical_or"}
REDUCE = {"Sum": "reduce_sum", "Mean": "reduce_mean", "Max": "reduce_max", "Min": "reduce_min", "Prod": "reduce_prod", "Any": "reduce_any",
          "All": "reduce_all"}
ROWS: dict[str, Callable[..., Val]] = {
    **{k: unary(v) for k, v in UNARY.items()}, **{k: binary(v) for k, v in BINARY.items()},
    **{k: binary(v, "bool") for k, v in COMPARE.items()}, **{k: reduce(v) for k, v in REDUCE.items()},
    "LogicalNot": predicate("logical_not"), "IsNan": predicate("isnan"), "IsInf": predicate("isinf"),
    "IsFinite": predicate("isfinite"), "Relu6": unary("clip", min=0, max=6), "Elu": unary("elu", alpha=1.0),
    "LeakyRelu": lambda b, x: b.emit("leaky_relu", [x], shape_of(x), alpha=float(b.op.get_attr("alpha"))),
    "Cast": _cast, "Reshape": _reshape, "ExpandDims": _expand_dims, "Squeeze": _squeeze, "Transpose": _transpose, "BroadcastTo": _to_shape,
    "Fill": _fill, "Tile": _tile, "ConcatV2": _concat, "Pack": _pack, "GatherV2": _gather, "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"), "BiasAdd": _bias_add, "SelectV2": _where, "Select": _where, "AddN": _sum_of,
    "SquaredDifference": _squared_difference, "DivNoNan": _div_no_nan, "ClipByValue": _clip, "ZerosLike": _all_of(0),
    "OnesLike": _all_of(1),
    "Identity": _same, "StopGradient": _same, "PreventGradient": _same, "TanhGrad": _gradient(_tanh_grad),
    "SigmoidGrad": _gradient(_sigmoid_grad),
    "SqrtGrad": _gradient(_sqrt_grad), "RsqrtGrad": _gradient(_rsqrt_grad), "ReciprocalGrad": _gradient(_reciprocal_grad),
    "InvGrad": _gradient(_reciprocal_grad), "ReluGrad": _gradient(_relu_grad(None)), "Relu6Grad": _gradient(_relu_grad(6)),
    "SoftplusGrad": _gradient(_softplus_grad),
}
FLOATS_ALONE = frozenset(("Exp", "Log", "Log1p", "Expm1", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Tanh", "Sigmoid", "Erf", "Erfc", "RealDiv",
                          "Softmax", "LogSoftmax", "Mean", "Softplus", "Softsign", "Elu", "LeakyRelu", "DivNoNan",
                          # with integers TensorFlow refuses a division by zero
                          "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"))


def lower(op: Any, operands: Sequence[Operand]) -> tuple[Val, Builder]:
    """The op's result and nodes. NotLowered where it has no kernel."""
    row = ROWS.get(op.type)
    if row is None:
        raise NotLowered(f"op {op.type}")
    for x in operands:
        if dtype_of(x) not in DTYPES:
            raise NotLowered(f"dtype {dtype_of(x)}")
    if op.type in FLOATS_ALONE and dtype_of(operands[0]) not in FLOATS:
        raise NotLowered(f"dtype {dtype_of(operands[0])} of {op.type}")
    b = Builder(op)
    return row(b, *operands), b
