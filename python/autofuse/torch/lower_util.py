# SPDX-License-Identifier: Apache-2.0
"""What lowerings share: type promotion, computing in float32, arithmetic on sizes, axes."""

from __future__ import annotations

import functools
import numbers
from typing import Any, Callable, Sequence, Union

import torch
import torch.fx
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from torch._prims_common import elementwise_dtypes

from . import symbols
from .lowering import DTYPE_NAMES, GraphBuilder, Lowered, Lowering, NotLowered, Value, lowers, target_name
from .symbols import Dim

HALF = (torch.float16, torch.bfloat16)
#: Of a scalar argument or a tensor: what promotion looks at.
Operand = Union[torch.fx.Node, numbers.Number, None]


def _tensors(val: Any) -> list[torch.Tensor]:
    """The tensors of a node's `val`."""
    if isinstance(val, (tuple, list)):
        return [t for v in val for t in _tensors(v)]
    return [val] if isinstance(val, torch.Tensor) else []


def _by_value(node: torch.fx.Node) -> bool:
    """Whether an operand is a number that the call passes by value: such a one may be float64."""
    val = node.meta.get("val")
    return node.op == "placeholder" and isinstance(val, torch.Tensor) and val.dim() == 0 and val.device.type == "cpu"


def _why_not(b: GraphBuilder, node: torch.fx.Node) -> str | None:
    """What no kernel takes: dtypes and layouts, of any operand or result."""
    devices = set()
    for n in [node, *node.all_input_nodes]:
        for t in _tensors(n.meta.get("val")):
            if t.layout != torch.strided:
                return f"the layout {t.layout}"
            if t.dtype not in DTYPE_NAMES:
                return f"{str(t.dtype).removeprefix('torch.')} is no dtype of a fragment"
            if t.dtype == torch.float64 and (n is node or not _by_value(n)):
                return "float64 tensors have no kernels"
            devices.add(t.device if t.dim() else None)
    return "tensors of several devices" if len(devices - {None}) > 1 else None


def _is_view(node: torch.fx.Node) -> bool:
    """Whether a node's result lies in its operand's memory."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    returns = node.target._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _is_returned(node: torch.fx.Node) -> bool:
    """Whether the graph returns a node's memory, seen through views, or writes it into an input's place."""
    seen, waiting = {node}, [node]
    while waiting:
        for user in waiting.pop().users:
            if user.op == "output" or target_name(user) == "aten.copy_.default":
                return True
            if user not in seen and (_is_view(user) or target_name(user) == "_operator.getitem"):
                seen.add(user)
                waiting.append(user)
    return False


def _of_its_own(b: GraphBuilder, node: torch.fx.Node, mark: int, result: Lowered) -> Lowered:
    """A result that is a value from before is copied where the graph returns it: the caller owns what it gets. A cast to its dtype is a copy."""
    if isinstance(result, NotLowered) or _is_view(node):
        return result
    made = {output[0] for emitted in b.nodes[mark:] for output in emitted.outputs}
    values = result if isinstance(result, tuple) else (result,)
    if all(v.name in made for v in values) or not _is_returned(node):
        return result
    owned = tuple(v if v.name in made else b.emit("cast", [v], v.dtype, v.shape) for v in values)
    return owned if isinstance(result, tuple) else owned[0]


def lowering(*targets: str) -> Callable[[Lowering], Lowering]:
    """As `lowers`, for what is defined on the dtypes that kernels have."""

    def register(fn: Lowering) -> Lowering:
        @functools.wraps(fn)
        def guarded(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
            why = _why_not(b, node)
            mark = len(b.nodes)
            return NotLowered(why) if why else _of_its_own(b, node, mark, fn(b, node))

        lowers(*targets)(guarded)
        return guarded

    return register


# ---- arguments ----


def arg(node: torch.fx.Node, index: int, name: str, default: Any = None) -> Any:
    """An argument by position or by name."""
    if index < len(node.args):
        return node.args[index]
    return node.kwargs.get(name, default)


def number(value: Any) -> Union[int, float, bool]:
    """A scalar argument that is known; raises Unsupported through the builder's dims where it is a size."""
    if isinstance(value, torch.fx.Node):
        value = value.meta["val"]
    if isinstance(value, (int, float, bool)):
        return value
    raise symbols.Unsupported(f"the number {value} is not known")


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front; rank 0 counts as 1."""
    return axis + max(rank, 1) if axis < 0 else axis


def axes_of(axes: Any, rank: int) -> list[int]:
    """Axes of a reduction from the front, in order; None and [] are all."""
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return list(range(rank))
    listed = [axes] if isinstance(axes, int) else list(axes)
    return sorted({axis_of(a, rank) for a in listed}) if rank else []


def used_results(node: torch.fx.Node) -> set[int]:
    """Which results of a node with several are read; all of them where something takes the tuple whole."""
    used: set[int] = set()
    for user in node.users:
        if target_name(user) != "_operator.getitem":
            return set(range(len(node.meta["val"])))
        used.add(int(user.args[1]))  # type: ignore[arg-type]
    return used


# ---- dtypes ----


def opmath(dtype: torch.dtype) -> torch.dtype:
    """What eager computes in where a kernel does more than one operation: float32 for the 16-bit floats."""
    return torch.float32 if dtype in HALF else dtype


def _meta(operand: Any) -> Any:
    return operand.meta["val"] if isinstance(operand, torch.fx.Node) else operand


def promoted(operands: Sequence[Any], kind: KIND = KIND.DEFAULT) -> torch.dtype:
    """The dtype that operands meet in, as eager has it: scalars do not widen tensors of their kind, 0-d tensors not those with axes."""
    vals = [_meta(o) for o in operands if o is not None]
    vals = [v.node.hint if isinstance(v, torch.SymFloat) else v for v in vals]
    computed, result = elementwise_dtypes(*vals, type_promotion_kind=kind)
    return result if computed in (torch.float32,) and result in HALF else computed


def as_dtype(b: GraphBuilder, operand: Any, dtype: torch.dtype) -> Value:
    """An operand in a dtype; a number as a constant of it."""
    return b.cast(b.value(operand), dtype) if b.has(operand) else b.scalar(operand, dtype)


def operands_in(b: GraphBuilder, operands: Sequence[Any], dtype: torch.dtype, unrounded: bool = False) -> tuple[list[Value], torch.dtype]:
    """
    The operands of an arithmetic op, and the dtype that it runs in. Numbers are rounded to dtype; with `unrounded` they and tensors without axes
    enter a 16-bit op as float32, as eager's mul and div take them.
    """
    tensors = [b.value(o) for o in operands if b.has(o)]
    wide = unrounded and dtype in HALF and any(v.is_float and v.dtype != dtype for v in tensors)
    run = torch.float32 if wide else dtype

    def one(o: Any) -> Value:
        if b.has(o):
            return b.cast(b.value(o), run)
        return b.scalar(o, opmath(dtype)) if unrounded else b.cast(b.scalar(rounded(o, dtype), dtype), run)

    return [one(o) for o in operands], run


def rounded(value: Any, dtype: torch.dtype) -> Any:
    """A number as dtype holds it; what is not known stays."""
    if isinstance(value, float) and dtype in HALF:
        return torch.tensor(value, dtype=torch.float64).to(dtype).item()
    return value


# ---- nodes ----


def unary(b: GraphBuilder, op: str, v: Value, dtype: torch.dtype | None = None, **attrs: Any) -> Value:
    """A node whose result has its operand's shape."""
    return b.emit(op, [v], dtype or v.dtype, v.shape, attrs)


def broadcast_shape(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """numpy's rule; a size that is 1 gives way, equal ones are one."""
    rank = max((len(s) for s in shapes), default=0)
    out: list[Dim] = []
    for i in range(rank):
        dims = [s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0]
        wide = [d for d in dims if d != 1]
        known = [d for d in wide if isinstance(d, int)]
        out.append(known[0] if known else wide[0] if wide else 1)
    return tuple(out)


def tensor_dtype(*values: Value) -> torch.dtype:
    """The dtype of a node over these: that of the tensors; scalar constants may be wider."""
    for v in values:
        if v.rank > 0:
            return v.dtype
    for v in values:
        if v.fixed is None:
            return v.dtype
    return values[0].dtype


def binary(b: GraphBuilder, op: str, x: Value, y: Value, dtype: torch.dtype | None = None, **attrs: Any) -> Value:
    """A node over two values that broadcast."""
    return b.emit(op, [x, y], dtype or tensor_dtype(x, y), broadcast_shape(x.shape, y.shape), attrs)


def compare(b: GraphBuilder, op: str, x: Value, y: Value) -> Value:
    """eq, lt, … and logical_*: to bool."""
    return binary(b, op, x, y, torch.bool)


def where(b: GraphBuilder, condition: Value, x: Value, y: Value) -> Value:
    """x where the condition holds, else y."""
    return b.emit("where", [condition, x, y], tensor_dtype(x, y), broadcast_shape(condition.shape, x.shape, y.shape))


def reduce(b: GraphBuilder, op: str, v: Value, axes: Sequence[int], keepdims: bool, dtype: torch.dtype | None = None) -> Value:
    """A reduction over axes counted from the front."""
    kept = [1 if i in axes else d for i, d in enumerate(v.shape)]
    shape = kept if keepdims else [d for i, d in enumerate(v.shape) if i not in axes]
    return b.emit(op, [v], dtype or v.dtype, shape, {"axes": list(axes), "keepdims": keepdims})


def permute(b: GraphBuilder, v: Value, order: Sequence[int]) -> Value:
    """Axis i of the result is axis order[i] of v."""
    if list(order) == list(range(v.rank)):
        return v
    return b.emit("transpose", [v], v.dtype, [v.shape[i] for i in order], {"perm": list(order)})


def slice_axis(b: GraphBuilder, v: Value, axis: int, start: Dim, length: Dim, step: int = 1) -> Value:
    """`length` elements along an axis from `start` on; all of them lie inside."""
    if start == 0 and length == v.shape[axis] and step == 1:
        return v
    starts: list[Dim] = [0] * v.rank
    stops: list[Dim] = list(v.shape)
    steps = [1] * v.rank
    starts[axis], steps[axis] = start, step
    if length == 0:
        stops[axis] = start
    elif step > 0:
        stops[axis] = add(start, mul(length, step) if step == 1 else sub(mul(length, step), step - 1))
    else:
        stops[axis] = add(add(start, mul(sub(length, 1), step)), -1)
    shape = [length if i == axis else d for i, d in enumerate(v.shape)]
    return b.emit("slice", [v], v.dtype, shape, {"starts": starts, "stops": stops, "steps": steps})


def concat(b: GraphBuilder, parts: Sequence[Value], axis: int) -> Value:
    """Values one behind another along an axis; more than 64 are put together in steps."""
    parts = list(parts)
    while len(parts) > 1:
        group, rest = parts[:64], parts[64:]
        size: Dim = 0
        for p in group:
            size = add(size, p.shape[axis])
        shape = [size if i == axis else d for i, d in enumerate(group[0].shape)]
        parts = [b.emit("concat", group, group[0].dtype, shape, {"axis": axis})] + rest
    return parts[0]


def iota(b: GraphBuilder, shape: Sequence[Dim], axis: int, dtype: torch.dtype, start: float = 0, step: float = 1) -> Value:
    """start + step * (index along the axis)."""
    return b.emit("iota", [], dtype, shape, {"shape": list(shape), "axis": axis, "start": start, "step": step})


# ---- sizes ----


def _infix(op: str, x: Dim, y: Dim) -> Dim:
    return f"(({x}){op}({y}))"


def add(x: Dim, y: Dim) -> Dim:
    """x + y"""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    return y if x == 0 else x if y == 0 else sub(x, -y) if isinstance(y, int) and y < 0 else _infix("+", x, y)


def sub(x: Dim, y: Dim) -> Dim:
    """x - y"""
    if isinstance(x, int) and isinstance(y, int):
        return x - y
    return x if y == 0 else add(x, -y) if isinstance(y, int) and y < 0 else _infix("-", x, y)


def mul(x: Dim, y: Dim) -> Dim:
    """x * y"""
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    return y if x == 1 else x if y == 1 else 0 if x == 0 or y == 0 else _infix("*", x, y)


def product(dims: Sequence[Dim]) -> Dim:
    """The number of elements of a shape."""
    return functools.reduce(mul, dims, 1)
