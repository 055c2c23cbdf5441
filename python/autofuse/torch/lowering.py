# SPDX-License-Identifier: Apache-2.0
"""How aten ops become canonical ops: the registry of lowerings and the builder that they write to.

A lowering is `fn(b: GraphBuilder, node: torch.fx.Node) -> Value | tuple[Value, ...] | NotLowered`, registered with
`@lowers("aten.add.Tensor")`. It reads the node's operands with `b.value(arg)`, their dtypes and shapes from the values, the result's from
`b.dtype(node)` and `b.shape(node)`, and writes nodes with `b.emit`. Values are logical: row-major, without strides; a view is an op like
any other. What returns NotLowered, or has no lowering, stays with PyTorch.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Any, Callable, Iterable, Sequence, Union

import torch
import torch.fx

from . import symbols
from .symbols import Dim

#: The dtypes that a fragment knows.
DTYPE_NAMES: dict[torch.dtype, str] = {
    torch.bool: "bool",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}
DTYPES: dict[str, torch.dtype] = {name: dtype for dtype, name in DTYPE_NAMES.items()}


@dataclasses.dataclass(frozen=True)
class Value:
    """A value of the fragment. `fixed` is the number where it is a scalar constant that `b.value` or `b.scalar` made."""

    name: str
    dtype: torch.dtype
    shape: tuple[Dim, ...]
    fixed: Union[int, float, bool, None] = dataclasses.field(default=None, compare=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype.is_floating_point


@dataclasses.dataclass(frozen=True)
class NotLowered:
    """Why a node stays with PyTorch: the text behind `$reason:`."""

    reason: str


Lowered = Union[Value, tuple[Value, ...], NotLowered]
Lowering = Callable[["GraphBuilder", torch.fx.Node], Lowered]

#: "aten.add.Tensor" -> how it is lowered.
LOWERINGS: dict[str, Lowering] = {}


def lowers(*targets: str) -> Callable[[Lowering], Lowering]:
    """Registers a lowering for overloads by their full names, as `aten.add.Tensor`. A second one for the same name is an error."""

    def register(fn: Lowering) -> Lowering:
        for target in targets:
            if target in LOWERINGS:
                raise ValueError(f"{target} has a lowering already")
            LOWERINGS[target] = fn
        return fn

    return register


def target_name(node: torch.fx.Node) -> str:
    """The framework's name of a node: `aten.add.Tensor`, `prims.convert_element_type.default`, `_operator.getitem`."""
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return torch.fx.node._get_qualified_name(node.target) if callable(node.target) else str(node.target)


@dataclasses.dataclass
class Emitted:
    """One canonical node as it goes into the fragment."""

    name: str
    op: str
    inputs: list[str]
    outputs: list[tuple[Any, ...]]  # name, dtype name, shape[, strides]
    attrs: dict[str, Any]
    origin: str
    source: torch.fx.Node


@dataclasses.dataclass(frozen=True)
class HostScalar:
    """A scalar that is passed by value at every call: the value of a size expression."""

    value: Value
    expr: Dim


class GraphBuilder:
    """What lowerings write to. Whoever drives it sets `node` to the FX node that is being lowered."""

    def __init__(self) -> None:
        self.nodes: list[Emitted] = []
        self.constants: dict[tuple[str, tuple[Dim, ...], bytes], Value] = {}
        self.host_scalars: dict[tuple[Dim, torch.dtype], HostScalar] = {}
        self.values: dict[torch.fx.Node, Union[Value, tuple[Value, ...]]] = {}
        self.node: torch.fx.Node | None = None
        self._n_values = 0

    # ---- reading ----

    def value(self, arg: Any, like: torch.dtype | None = None) -> Value:
        """The canonical value of an operand: a node's, or a scalar as `scalar(arg, like)` gives it.

        Without `like` a Python bool is a bool, an int an int64 and a float a float64 constant of shape [].
        """
        if isinstance(arg, torch.fx.Node) and not isinstance(arg.meta.get("val"), (torch.SymInt, int, float)):
            found = self.values[arg]
            if isinstance(found, tuple):
                raise TypeError(f"{arg.name} has {len(found)} values: take one by getitem")
            return found
        if like is not None:
            return self.scalar(arg, like)
        if isinstance(arg, bool):
            return self.scalar(arg, torch.bool)
        if isinstance(arg, float):
            return self.scalar(arg, torch.float64)
        return self.scalar(arg, torch.int64)

    def has(self, arg: Any) -> bool:
        """Whether an operand is a tensor (and neither None nor a number)."""
        return isinstance(arg, torch.fx.Node) and isinstance(arg.meta.get("val"), torch.Tensor)

    def meta(self, node: torch.fx.Node, index: int | None = None) -> torch.Tensor:
        """The fake tensor of a node, or of one of its results."""
        val = node.meta["val"]
        return val if index is None else val[index]

    def dtype(self, node: torch.fx.Node, index: int | None = None) -> torch.dtype:
        """The dtype of a node's result."""
        return self.meta(node, index).dtype

    def shape(self, node: torch.fx.Node, index: int | None = None) -> tuple[Dim, ...]:
        """The shape of a node's result, each an int or an expression."""
        return symbols.dims(self.meta(node, index).shape)

    def dim(self, arg: Any) -> Dim:
        """A size among the arguments (an int, or a node that is a SymInt) as int or expression."""
        if isinstance(arg, torch.fx.Node):
            arg = arg.meta["val"]
        return symbols.dim(arg)

    def dims(self, args: Iterable[Any]) -> tuple[Dim, ...]:
        """The same for a list of sizes."""
        return tuple(self.dim(a) for a in args)

    # ---- writing ----

    def fresh(self) -> str:
        """A name that no other value has."""
        self._n_values += 1
        return f"t{self._n_values}"

    def emit(
        self, op: str, inputs: Sequence[Value], dtype: torch.dtype, shape: Sequence[Dim], attrs: dict[str, Any] | None = None
    ) -> Value:
        """One canonical node with one result."""
        return self.emit_several(op, inputs, [(dtype, shape)], attrs)[0]

    def emit_several(
        self, op: str, inputs: Sequence[Value], outputs: Sequence[tuple[torch.dtype, Sequence[Dim]]], attrs: dict[str, Any] | None = None
    ) -> tuple[Value, ...]:
        """One canonical node with several results (`split`)."""
        results = tuple(Value(self.fresh(), dtype, tuple(shape)) for dtype, shape in outputs)
        assert self.node is not None
        self.nodes.append(
            Emitted(
                name=f"n{len(self.nodes)}",
                op=op,
                inputs=[v.name for v in inputs],
                outputs=[(v.name, DTYPE_NAMES[v.dtype], v.shape) for v in results],
                attrs=dict(attrs or {}),
                origin=target_name(self.node),
                source=self.node,
            )
        )
        return results

    def constant(self, number: Any, dtype: torch.dtype, shape: Sequence[int] = ()) -> Value:
        """A constant whose elements all are one number, rounded once to dtype. Equal ones are one value."""
        tensor = torch.full(tuple(shape), number, dtype=torch.float64 if isinstance(number, float) else dtype).to(dtype)
        return self.constant_tensor(tensor, fixed=number if not shape else None)

    def constant_tensor(self, tensor: torch.Tensor, fixed: Any = None) -> Value:
        """A constant with a tensor's elements (on the CPU). Equal ones are one value."""
        data = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        key = (DTYPE_NAMES[tensor.dtype], tuple(tensor.shape), data)
        if key not in self.constants:
            self.constants[key] = Value(f"c{len(self.constants)}", tensor.dtype, tuple(tensor.shape), fixed)
        return self.constants[key]

    def scalar(self, arg: Any, dtype: torch.dtype) -> Value:
        """A number of shape [] in a dtype; a size (SymInt) becomes a scalar that is passed by value at every call.

        Where eager keeps a scalar wider than the tensors that it meets (a float32 number beside bfloat16 tensors), ask for that dtype.
        """
        if isinstance(arg, torch.fx.Node):
            arg = arg.meta["val"]
        if isinstance(arg, torch.SymInt):
            size = symbols.dim(arg)
            if isinstance(size, str):
                return self._host_scalar(size, dtype)
            arg = size
        if isinstance(arg, (torch.SymFloat, torch.SymBool)):
            raise symbols.Unsupported(f"the number {arg} is computed from sizes")
        return self.constant(arg, dtype)

    def _host_scalar(self, size: str, dtype: torch.dtype) -> Value:
        key = (size, dtype)
        if key not in self.host_scalars:
            self.host_scalars[key] = HostScalar(Value(f"size{len(self.host_scalars)}", dtype, ()), size)
        return self.host_scalars[key].value

    # ---- helpers ----

    def cast(self, v: Value, dtype: torch.dtype) -> Value:
        """v in another dtype; v itself where it has it."""
        if v.dtype == dtype:
            return v
        endless = isinstance(v.fixed, float) and not math.isfinite(v.fixed)
        if v.fixed is not None and not v.shape and not (endless and not dtype.is_floating_point):
            return self.scalar(_stored(v.fixed, v.dtype), dtype)
        return self.emit("cast", [v], dtype, v.shape)

    def broadcast(self, v: Value, shape: Sequence[Dim]) -> Value:
        """v spread to a shape by numpy's rules; v itself where it has it."""
        shape = tuple(shape)
        return v if v.shape == shape else self.emit("broadcast", [v], v.dtype, shape, {"shape": list(shape)})

    def reshape(self, v: Value, shape: Sequence[Dim]) -> Value:
        """v's elements in row-major order under another shape; v itself where it has it."""
        shape = tuple(shape)
        return v if v.shape == shape else self.emit("reshape", [v], v.dtype, shape, {"shape": list(shape)})


def _stored(number: Any, dtype: torch.dtype) -> Any:
    """A number as a constant of dtype holds it."""
    if dtype == torch.float64 or not dtype.is_floating_point:
        return number
    if dtype == torch.float32 and math.isfinite(number) and abs(number) < 3e38:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    return torch.tensor(number, dtype=dtype).item()


CUBE = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward")


def why_not(node: torch.fx.Node) -> str:
    """Why a node that has no lowering stays with PyTorch."""
    name = target_name(node).split(".")
    if name[0] == "aten" and (name[1] in CUBE or name[1].startswith("_scaled_dot_product")):
        return "no template for op class cube"
    if isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags:
        return "random numbers are the framework's"
    return "no canonical op"


def lower_node(b: GraphBuilder, node: torch.fx.Node) -> Lowered:
    """Lowers one node by the registry. What a lowering had emitted before it gave up is dropped again."""
    lowering = LOWERINGS.get(target_name(node))
    if lowering is None:
        return NotLowered(why_not(node))
    mark = len(b.nodes)
    b.node = node
    try:
        result = lowering(b, node)
    except symbols.Unsupported as why:
        result = NotLowered(str(why))
    if isinstance(result, NotLowered):
        del b.nodes[mark:]
    return result
