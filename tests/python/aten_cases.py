# SPDX-License-Identifier: Apache-2.0
"""Calls of aten ops by hand, for tests/python/test_aten.py: odd sizes, no elements, one element, strides, special values, every dtype, and the
overloads that PyTorch's own samples never reach. Each yields functions that run ops inside the checking mode."""
from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import torch

aten, prims = torch.ops.aten, torch.ops.prims
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
SPECIALS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-30, -1e-30, 1e-41, 20.0, -20.0, 60000.0)
Case = tuple[str, Callable[[], Any]]


def tensor(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    """Random numbers of moderate size."""
    g = torch.Generator().manual_seed(seed + 17 * sum(shape))
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if dtype.is_floating_point:
        return (torch.randn(shape, generator=g) * 3).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -20, 21, shape, generator=g).to(dtype)


def special(dtype: torch.dtype, turn: int = 0) -> torch.Tensor:
    """What an op may stumble over, turned by some places."""
    if dtype.is_floating_point:
        return torch.tensor(SPECIALS[turn:] + SPECIALS[:turn], dtype=torch.float64).to(dtype)
    if dtype == torch.bool:
        return torch.tensor([True, False, False])[torch.arange(19) % 3 - turn % 2]
    info = torch.iinfo(dtype)
    return torch.tensor([info.min, info.max, info.min + 1, 0, 1, 2, 3, 5, 7, 8, 63, 64, 100, 31, 32, 15, 16, 127, 6],
            dtype=dtype).roll(turn)


def forms(dtype: torch.dtype) -> list[torch.Tensor]:
    """Sizes and strides."""
    x = tensor(dtype, 5, 7)
    return [special(dtype), tensor(dtype), tensor(dtype, 1), tensor(dtype, 0, 3), x.t(), x[1:4, ::3], tensor(dtype, 3, 1, 67).expand(3,
            2, 67)]


UNARY = "abs neg sign sgn relu floor ceil round trunc isnan isinf logical_not bitwise_not signbit isposinf isneginf".split()
FUNCTIONS = (
    "exp log log1p expm1 sqrt rsqrt reciprocal tanh sigmoid erf erfc sin cos tan asin acos atan sinh cosh asinh acosh atanh exp2 log2 log10"
).split()  # fmt: skip
ACTIVATIONS = "gelu silu leaky_relu elu celu softplus hardswish hardsigmoid mish hardshrink softshrink relu6 selu log_sigmoid_forward".split()
BINARY = "add sub mul maximum minimum fmod remainder eq ne lt le gt ge logical_and logical_or logical_xor fmax fmin".split()
BITS = "bitwise_and bitwise_or bitwise_xor".split()
SHIFTS = "bitwise_left_shift bitwise_right_shift __lshift__ __rshift__".split()


def _legal(op: str, dtype: torch.dtype) -> bool:
    if op.startswith("bitwise") or op in BITS:
        return not dtype.is_floating_point
    return not (dtype == torch.bool and op in ("neg", "sub", "relu", "fmod", "remainder", "signbit", "floor", "ceil", "round", "trunc",
            "abs"))


def unary() -> Iterator[Case]:
    """One operand."""
    for op in UNARY + FUNCTIONS + ACTIVATIONS:
        for dtype in FLOATS + (INTEGERS + (torch.bool,) if op in UNARY else (torch.int32,) if op in FUNCTIONS else ()):
            if op in UNARY and not _legal(op, dtype):
                continue
            for x in forms(dtype):
                if op in ("sin", "cos", "tan"):
                    x = torch.where((x > 1e4) | (x < -1e4), torch.ones_like(x), x)  # beyond 102,943 docs/numerics.md says otherwise
                if op in ("gelu", "silu", "mish"):
                    x = torch.where(x.isinf(), torch.ones_like(x), x)  # eager's vector and scalar code differ there
                yield f"{op}", lambda op=op, x=x: getattr(aten, op)(x)
    for dtype in FLOATS:
        for x in forms(dtype):
            yield "gelu tanh", lambda x=x: aten.gelu(x, approximate="tanh")
            yield "round.decimals", lambda x=x: aten.round(torch.where(x.abs() > 1e3, 1.0, x).to(x.dtype),
                    decimals=2) if x.dtype == torch.float32 else None
            yield "nan_to_num", lambda x=x: aten.nan_to_num(x, 1.5, 7.0, -7.0)
            yield "threshold", lambda x=x: aten.threshold(x, 0.25, -3.0)
            yield "clamp", lambda x=x: (aten.clamp(x, -0.5, 1.25), aten.clamp(x, 0.1), aten.clamp_max(x, 0.3), aten.hardtanh(x, -0.2, 0.7))
            for exponent in (0, 0.5, 1, 2, 3, -0.5, -1, -2, 1.7):
                yield f"pow {exponent}", lambda x=x, exponent=exponent: aten.pow(x, exponent)
            yield "pow of 2", lambda x=x: aten.pow(2.0, x)


def binary() -> Iterator[Case]:
    """Two operands: tensors that broadcast, numbers, mixed dtypes."""
    for op in BINARY + BITS:
        for dtype in FLOATS + INTEGERS + (torch.bool,):
            if not _legal(op, dtype):
                continue
            fn = getattr(aten, op)
            pairs = [(special(dtype), special(dtype, 5)), (tensor(dtype, 7, 1), tensor(dtype, 1, 9, seed=3)), (tensor(dtype, 4, 6).t(),
                    tensor(dtype, 6, 4, seed=2)), (tensor(dtype, 0, 3), tensor(dtype, 3)), (tensor(dtype, 5), tensor(dtype))]
            for x, y in pairs:
                if op in ("fmod", "remainder") and dtype.is_floating_point:
                    y = torch.where(y.abs() < 1e-35, torch.full_like(y, 3), y)  # eager gives NaN for quotients beyond 2^64
                elif op in ("fmod", "remainder"):
                    y = torch.where((y == 0) | (y == -1) if dtype != torch.uint8 else y == 0, torch.full_like(y, 3), y)
                yield f"{op}", lambda fn=fn, x=x, y=y: fn(x, y)
            if op not in ("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor") and dtype != torch.bool:
                number = 0.3 if dtype.is_floating_point else 3
                yield f"{op} number", lambda fn=fn, x=pairs[1][0], number=number: fn(x, number)
    for dtype in INTEGERS:
        x, bits = special(dtype), torch.iinfo(dtype).bits
        for op in SHIFTS:
            yield op, lambda op=op, x=x, bits=bits: (getattr(aten, op)(x, x.abs() % bits), getattr(aten, op)(x, 3))
        for op in BITS:
            yield op, lambda op=op, x=x: (getattr(aten, op)(x, x.roll(3)), getattr(aten, op)(x, 5))
        for op in BITS + SHIFTS[:2]:
            yield op, lambda op=op, x=x: getattr(getattr(aten, op), "Scalar_Tensor")(5, x.clamp(0, 6))
        yield "remainder", lambda x=x: aten.remainder.Scalar_Tensor(17, x.clamp(1, 6))
    for x in FLOATS + INTEGERS:
        for y in FLOATS + INTEGERS:
            yield "mixed", lambda x=x, y=y: (aten.add(tensor(x, 9), tensor(y, 9)), aten.mul(tensor(x, 9), tensor(y)), aten.lt(tensor(x,
                    9), tensor(y, 9)))
    for dtype in FLOATS + INTEGERS:
        x, y = tensor(dtype, 33), tensor(dtype, 33, seed=4)
        y = torch.where(y == 0, torch.full_like(y, 3), y)
        yield "div", lambda x=x, y=y: (aten.div(x, y), aten.div(x, 3), aten.copysign(x, -2.0), aten.atan2(x, y))
        for mode in ("floor", "trunc", None):
            yield f"div {mode}", lambda x=x, y=y, mode=mode: (aten.div(x, y, rounding_mode=mode), aten.div(x, 3, rounding_mode=mode))
        yield "alpha", lambda x=x, y=y: (aten.add(x, y, alpha=3), aten.sub(x, y, alpha=2), aten.rsub(x, y, alpha=2), aten.rsub(x, 5))
        yield "floor_divide", lambda x=x, y=y: (aten.floor_divide(x, y), aten.floor_divide(x, torch.full_like(x, 3)))
        yield "addcmul", lambda x=x, y=y: (aten.addcmul(x, x, y, value=2), aten.where(x > y, x, y), aten.masked_fill(x, x > 0, 7))
    for dtype in FLOATS:
        x, y, z = tensor(dtype, 5, 9), tensor(dtype, 9, seed=1), tensor(dtype, 5, 1, seed=2)
        yield "lerp", lambda x=x, y=y, z=z: (aten.lerp(x, x.flip(0), z), aten.lerp(x, x.flip(0), 0.7), aten.addcdiv(x, y, z, value=0.5),
                aten.hypot(x, y))
        yield "0-d", lambda x=x: (x * torch.tensor(0.1), x + torch.tensor(0.1), x / torch.tensor(0.3), x * torch.tensor(0.1,
                dtype=torch.float64))


def reductions() -> Iterator[Case]:
    """Sums, extremes, positions, variances, softmax."""
    for dtype in FLOATS + INTEGERS + (torch.bool,):
        for x in (tensor(dtype, 3, 5, 67), tensor(dtype, 4, 130).t(), tensor(dtype, 7), tensor(dtype), special(dtype)):
            axes = [[0], [-1], list(range(x.dim()))] if x.dim() else [[]]
            for axis in axes:
                for keep in (False, True):
                    yield "sum", lambda x=x, axis=axis, keep=keep: aten.sum(x, axis, keep)
                    yield "amax", lambda x=x, axis=axis, keep=keep: (aten.amax(x, axis, keep), aten.amin(x, axis, keep))
                    if dtype.is_floating_point:
                        yield "mean", lambda x=x, axis=axis, keep=keep: aten.mean(x, axis, keep)
                        for c in (0, 1, 2):
                            yield "var", lambda x=x, axis=axis, keep=keep, c=c: (aten.var(x, axis, correction=c, keepdim=keep),
                                    aten.var_mean(x, axis, correction=c, keepdim=keep), aten.std(x, axis, correction=c))
                    yield "any", lambda x=x, axis=axis, keep=keep: (aten.any.dims(x, axis, keep), aten.all.dims(x, axis, keep))
            yield "all", lambda x=x: (aten.sum(x), aten.any(x), aten.all(x), aten.amax(x, []), aten.max(x), aten.min(x))
            if dtype != torch.bool:
                yield "argmax", lambda x=x: (aten.argmax(x), aten.argmin(x, -1), aten.argmax(x, 0, True), aten.max(x, -1), aten.min(x, 0,
                        True), aten.aminmax(x, dim=-1))
            yield "cumsum", lambda x=x: aten.cumsum(x, -1)
            if dtype.is_floating_point:
                yield "softmax", lambda x=x: [f(x, a, False) for f in (aten._softmax, aten._log_softmax) for a in (0,
                        -1)] + [aten.logsumexp(x, [-1])]
                yield "norm", lambda x=x: [aten.linalg_vector_norm(x, o) for o in (0, 1, 2, 3.0, math.inf, -math.inf)]
                yield "prod", lambda x=x: (aten.prod(x[:5] if x.dim() == 1 else x), aten.prod(x, 0))
    yield "empty", lambda: (aten.sum(tensor(torch.float32, 0, 3)), aten.sum(tensor(torch.int64, 3, 0), [1]),
            aten.mean(tensor(torch.float32, 3, 0), [1]), aten.any(tensor(torch.bool, 0)), aten._softmax(tensor(torch.float32, 3, 0), 1,
            False))
    yield "half to float", lambda: (aten._softmax(tensor(torch.float16, 3, 9), 1, False), aten.sum(tensor(torch.float16, 9, 9), [0],
            dtype=torch.float32), aten.mean(tensor(torch.bfloat16, 9, 9), [0], dtype=torch.float32))


def norms() -> Iterator[Case]:
    """Layer, group and batch norm with all their results."""
    for dtype in FLOATS:
        for rest in ((5, 67), (8, 3, 5), (1, 4)):
            x, w, v = tensor(dtype, 6, *rest), tensor(dtype, rest[-1], seed=1), tensor(dtype, rest[-1], seed=2)
            for weight, bias in ((w, v), (None, None), (w, None), (None, v)):
                yield "layer_norm", lambda x=x, weight=weight, bias=bias: aten.native_layer_norm(x, [x.shape[-1]], weight, bias, 1e-5)
            yield "layer_norm over 2", lambda x=x: aten.native_layer_norm(x, x.shape[-2:], None, None, 1e-3)
        for shape in ((2, 6, 5, 3), (3, 4, 7), (2, 8)):
            x, c = tensor(dtype, *shape), shape[1]
            w, v, m, s = (tensor(dtype, c, seed=k) for k in range(4))
            s = s.abs() + 0.5
            for groups in (1, 2, c):
                yield "group_norm", lambda x=x, w=w, v=v, groups=groups: aten.native_group_norm(x, w, v, x.shape[0], x.shape[1], x[0,
                        0].numel(), groups, 1e-5)
            yield "batch_norm", lambda x=x, w=w, v=v, m=m, s=s: (aten._native_batch_norm_legit_no_training(x, w, v, m, s, 0.1, 1e-5),
                    aten._native_batch_norm_legit.no_stats(x, w, v, True, 0.1, 1e-5))
            yield "batch_norm training", lambda x=x, w=w, v=v, m=m, s=s: [aten._native_batch_norm_legit_functional(x, w, v, m, s, t, 0.1,
                    1e-5) for t in (True, False)]
            yield "batch_norm update", lambda x=x, w=w, v=v, m=m, s=s: (aten._batch_norm_with_update_functional(x, w, v, m, s, 0.1,
                    1e-5), aten._batch_norm_no_update(x, w, v, m, s, 0.1, 1e-5))


def movement() -> Iterator[Case]:
    """Views, slices, concats, parts written, rows by number."""
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8):
        x = tensor(dtype, 6, 5, 7)
        yield "views", lambda x=x: (aten.view(x, [30, 7]), aten.permute(x, [2, 0, 1]), aten.transpose(x, 0, 2), aten.t(x[0]),
                aten.unsqueeze(x, -1), aten.squeeze(x[:1]), aten.squeeze(x[:1], 0), aten.expand(x[:, :1], [6, 5, 7]),
                aten._reshape_copy(x, [-1]))
        yield "slices", lambda x=x: (aten.slice(x, 0, 1, 5, 2), aten.slice(x, 2, -3), aten.slice(x, 1, 4, 2), aten.select(x, 1, -2),
                aten.select_copy(x, 0, 3), aten.slice_copy(x, 1, 1, 4), aten.flip(x, [0, 2]), aten.roll(x, [2, -1], [0, 2]), aten.roll(x,
                [9]))
        yield "parts", lambda x=x: (aten.split_with_sizes(x, [1, 2, 3], 0), aten.split(x, 2, 1), aten.unbind(x, 2), aten.cat([x, x[:2],
                x[:0]], 0), aten.stack([x, x], 1), aten.repeat(x, [2, 1, 3]), aten.repeat(x, [2, 1, 1, 1]))
        yield "many parts", lambda x=x: (aten.cat([x] * 70, 2), aten.unbind(aten.view(x, [210]), 0))
        yield "pads", lambda x=x: (aten.constant_pad_nd(x, [1, 2, 0, 3], 1), aten.constant_pad_nd(x, [-1, 2, 0, -2]),
                aten.constant_pad_nd(x, [0, 0]), aten.tril(x, 1), aten.triu(x, -2), aten.diagonal(x, 1, 0, 2), aten.diagonal(x, -2),
                aten.diagonal(x, 9))
        yield "scatters", lambda x=x: (aten.slice_scatter(x, x[1:3] != 0 if x.dtype == torch.bool else x[1:3], 0, 3, 5),
                aten.slice_scatter(x, x[:, :, 2:4].contiguous(), 2, 1, 7, 4), aten.slice_scatter(x, x[:0], 0, 2, 2),
                aten.select_scatter(x, x[:, 0].contiguous(), 1, -1))
        yield "scatter", lambda x=x: (
            aten.scatter.value(x, 1, torch.tensor([0, 4, 2, 1, 0, 3]).reshape(6, 1, 1).expand(6, 1, 7), 1),
            aten.scatter.src(x, -1, torch.full([6, 5, 1], 3), x[:, :, 1:]), aten.scatter.value(x, 0, torch.zeros([0, 5, 7],
                    dtype=torch.int64), 2))
        yield "gradients", lambda x=x: [aten.slice_backward(x[start:end:step], [6, 5, 7], 0, start, end, step)
                                        for start, end, step in ((0, 6, 1), (1, 4, 1), (2, 2, 1), (1, 6, 2), (0, 6, 4), (5, 2**63 - 1,
                                                1))] + [
            aten.select_backward(x, [6, 5, 9, 7], 2, i) for i in (0, 4, -1)]
        yield "as_strided", lambda x=x: [aten.as_strided(x, size, stride, offset) for size, stride, offset in (((5, 6), (1, 5), 0), ((3,
                4), (7, 2), 3), ((4, 3), (1, 1), 2), ((2, 3, 4), (0, 30, 7), 5), ((6, 7), (35, 5), 4), ((1,), (9,), 8), ((0, 2), (1, 1),
                0), ((6, 5, 7), (35, 7, 1), 0), ((5,), (42,), 41))] + [aten.as_strided(x.transpose(0, 2).contiguous().transpose(0, 2),
                (3, 4), (7, 2), 3)]
        i, j = torch.tensor([[0, -1, 5], [2, 3, -6]]), torch.tensor([4, 0, -2])
        yield "index", lambda x=x, i=i, j=j: (aten.index(x, [i]), aten.index(x, [None, j]), aten.index(x, [i, j]), aten.index(x, [i,
                None, j]), aten.index(x, [None, j, j]), aten.index(x, [i.int(), j.int()]), aten._unsafe_index(x, [i, j]), aten.index(x,
                [i[:, :0]]))
        yield "rows", lambda x=x, i=i: (aten.embedding(x[:, 0], i.abs().clamp(max=5)), aten.index_select(x, 1, torch.tensor([0, 4, 4])),
                aten.index_select(x, 2, torch.tensor(3)), aten.gather(x, 1, i.abs().clamp(max=4).reshape(2, 3, 1)), aten.take(x,
                i.abs()), aten.gather(x, 0, i.reshape(2, 3, 1)[:0]))
        yield "copies", lambda x=x: (aten.clone(x), aten.clone(x.t() if x.dim() == 2 else x.mT, memory_format=torch.contiguous_format),
                aten.copy(x, x[:1]), aten.lift_fresh_copy(x), aten.detach_copy(x), prims.clone(x))
    for x in FLOATS + INTEGERS + (torch.bool,):
        for y in FLOATS + INTEGERS + (torch.bool,):
            v = tensor(x, 67).abs() if y == torch.uint8 and x != torch.bool else tensor(x, 67)
            yield "cast", lambda v=v, y=y: (aten._to_copy(v, dtype=y), prims.convert_element_type(v, y))


def creation() -> Iterator[Case]:
    """Fills and ranges."""
    for dtype in FLOATS + INTEGERS + (torch.bool,):
        yield "full", lambda dtype=dtype: (aten.full([3, 5], 1, dtype=dtype), aten.full_like(tensor(torch.float32, 4), 2, dtype=dtype),
                aten.zeros([2, 0], dtype=dtype), aten.ones([7], dtype=dtype), aten.scalar_tensor(1, dtype=dtype), aten.fill(tensor(dtype,
                3), 1), aten.fill(tensor(dtype, 3), torch.tensor(1)))
        if dtype != torch.bool:
            yield "arange", lambda dtype=dtype: (aten.arange(9, dtype=dtype), aten.arange(3, 20, dtype=dtype), aten.arange(3, 40, 5,
                    dtype=dtype), aten.arange(9, 0, -2, dtype=dtype) if dtype != torch.uint8 else None, prims.iota(7, start=2, step=3,
                    dtype=torch.int64, device="cpu", requires_grad=False))
        yield "eye", lambda dtype=dtype: (aten.eye(5, dtype=dtype), aten.eye(3, 6, dtype=dtype))
    yield "fractions", lambda: (aten.arange(0, 1, 0.1), aten.arange(0.5, 9.5, 0.75, dtype=torch.bfloat16))
    yield "triangles", lambda: (aten.tril_indices(5, 7, 1), aten.triu_indices(6, 4, -1))


def windows() -> Iterator[Case]:
    """Windows, and means over them."""
    for dtype in FLOATS:
        x = tensor(dtype, 2, 3, 8, 12)
        yield "adaptive", lambda x=x: [aten._adaptive_avg_pool2d(x, size) for size in ([1, 1], [4, 3], [8, 12])]
    for dtype in (torch.float32, torch.int64, torch.bool):
        x = tensor(dtype, 4, 9, 5)
        yield "unfold", lambda x=x: (
            [aten.unfold(x, *a) for a in ((1, 3, 2), (1, 3, 3), (0, 4, 1), (-1, 2, 2), (1, 7, 4))] + [aten.unfold_copy(x, 1, 2, 2)])


def gradients() -> Iterator[Case]:
    """The gradients that have lowerings."""
    for dtype in FLOATS:
        x, g = torch.cat([tensor(dtype, 67), torch.tensor([0.0, -3.0, 3.0, 25.0, -25.0]).to(dtype)]), tensor(dtype, 72, seed=5)
        s = torch.sigmoid(x)
        yield "activations", lambda x=x, g=g, s=s: (aten.sigmoid_backward(g, s), aten.tanh_backward(g, torch.tanh(x)),
                aten.threshold_backward(g, x, 0.0), aten.silu_backward(g, x), aten.gelu_backward(g, x), aten.gelu_backward(g, x,
                approximate="tanh"), aten.leaky_relu_backward(g, x, 0.1, False), aten.elu_backward(g, 1.0, 1.0, 1.0, False, x),
                aten.softplus_backward(g, x, 1.5, 20.0), aten.hardswish_backward(g, x), aten.hardsigmoid_backward(g, x),
                aten.hardtanh_backward(g, x, -1.0, 1.0), aten.mish_backward(g, x), aten.hardshrink_backward(g, x, 0.5),
                        aten.softshrink_backward(g, x, 0.5), aten.log_sigmoid_backward(g, x, torch.exp(-x.abs())))
        y = tensor(dtype, 6, 12)
        yield "softmax", lambda y=y: (aten._softmax_backward_data(y, torch.softmax(y.flip(0), 1), 1, y.dtype),
                aten._log_softmax_backward_data(y, torch.log_softmax(y.flip(0), 0), 0, y.dtype))


def overloads() -> Iterator[Case]:
    """Spellings that the others do not use."""
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        x, y = tensor(dtype, 6, 5), tensor(dtype, 6, 5, seed=1)
        low, high = tensor(dtype, 5, seed=2), tensor(dtype, 6, 1, seed=3)
        number = 1.5 if dtype.is_floating_point else 2
        yield "numbers", lambda x=x, number=number: [getattr(aten, n).Scalar(x, number) for n in ("add", "sub", "mul", "div")]
        yield "modes", lambda x=x, number=number: [aten.div.Scalar_mode(x, number, rounding_mode=m) for m in ("floor", "trunc")]
        yield "bounds", lambda x=x, low=low, high=high: (aten.clamp.Tensor(x, low, high), aten.clamp_min.Tensor(x, low),
                aten.clamp_max.Tensor(x, high), aten.clamp_min(x, 1), aten.clamp_max(x, 2))
        yield "fills", lambda x=x: (aten.masked_fill.Tensor(x, x > 1, torch.tensor(3)), aten.new_full(x, [3], 2), aten.new_ones(x, [2,
                2]), aten.new_zeros(x, [2, 0]), aten.ones_like(x), aten.zeros_like(x))
        yield "undefined", lambda x=x: (aten.empty.memory_format([3], dtype=x.dtype), aten.empty_like(x), aten.new_empty(x, [2]),
                aten.empty_strided([2], [1], dtype=x.dtype), aten.new_empty_strided(x, [2], [1]))
        yield "pairs", lambda x=x, y=y: (aten.copysign(x, y), aten.pow(x.abs(), y.abs()), aten.any.dim(x, 0), aten.all.dim(x, 1, True))
        yield "copies", lambda x=x: (aten.alias_copy(x), aten.expand_copy(x, [2, 6, 5]), aten.permute_copy(x, [1, 0]),
                aten.transpose_copy(x, 0, 1), aten.view_copy(x, [30]), aten.squeeze_copy.dim(x[:1], 0), aten.unsqueeze_copy(x, 0),
                aten.diagonal_copy(x), aten.as_strided_copy(x, [3], [4]), aten.split_with_sizes_copy(x, [2, 4]))
        yield "views", lambda x=x: (aten.alias(x), aten._unsafe_view(x, [5, 6]), aten.squeeze.dims(x[:1, :1], [0, 1]),
                prims.broadcast_in_dim(x, [6, 2, 5], [0, 2]))
    for dtype in FLOATS:
        x = tensor(dtype, 6, 5)
        masked = torch.where(torch.arange(6)[:, None] == 2, -math.inf, x).to(dtype)
        yield "floats", lambda x=x, masked=masked: (aten.mean(x), aten.std_mean.correction(x, [1]), aten._prelu_kernel(x, x[:1] * 0.1),
                aten._safe_softmax(masked, 1))


GROUPS = {"overloads": overloads, "unary": unary, "binary": binary, "reductions": reductions, "norms": norms, "movement": movement,
        "creation": creation, "windows": windows, "gradients": gradients}
