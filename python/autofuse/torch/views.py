# SPDX-License-Identifier: Apache-2.0
"""Views: which nodes only look at another's memory, and how to look at it again at run time.

PyTorch's own nodes read views without a copy (a matrix product reads a transposed weight where it lies), so what is handed to them is the
memory behind the views and the way to the view: a *chain* of view nodes, folded into one size, stride and offset once the sizes are
known.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Callable, Mapping

import torch
import torch.fx

from . import symbols

aten = torch.ops.aten

#: Views that show every element of what they look at.
WHOLE = {
    aten.view.default,
    aten._unsafe_view.default,
    aten.permute.default,
    aten.transpose.int,
    aten.t.default,
    aten.expand.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.alias.default,
    aten.detach.default,
}
#: What these show depends on the strides that they find.
BY_STRIDE = {aten.as_strided.default}
_RESHAPES = {aten.view.default, aten._unsafe_view.default}


@dataclasses.dataclass(frozen=True)
class Link:
    """One view; `index`: which of its results, for views that give several."""

    node: torch.fx.Node
    index: int | None


@dataclasses.dataclass(frozen=True)
class Chain:
    """The node whose memory is looked at, and the views from it on."""

    root: torch.fx.Node
    links: tuple[Link, ...]

    @property
    def is_whole(self) -> bool:
        return all(link.node.target in WHOLE for link in self.links)

    @property
    def by_stride(self) -> bool:
        return any(link.node.target in BY_STRIDE for link in self.links)


def is_view(node: torch.fx.Node) -> bool:
    """Whether a node's results lie in its first operand's memory."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    if node.target is aten._unsafe_view.default:
        return True
    schema = node.target._schema
    return bool(schema.returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def chain_of(node: torch.fx.Node, chains: Mapping[torch.fx.Node, Chain]) -> Chain:
    """The chain that ends with a node; `chains` has those of the nodes before it."""
    if node.op == "call_function" and node.target is operator.getitem and is_view(node.args[0]):
        before = chains[node.args[0].args[0]]
        return Chain(before.root, before.links + (Link(node.args[0], int(node.args[1])),))
    if is_view(node) and isinstance(node.meta.get("val"), torch.Tensor):
        before = chains[node.args[0]]
        return Chain(before.root, before.links + (Link(node, None),))
    return Chain(node, ())


def concrete(arg: Any, values: Mapping[str, int]) -> Any:
    """Arguments of a node with every size as the number that it is now. Tensors stay nodes."""

    def one(a: torch.fx.Node) -> Any:
        val = a.meta.get("val")
        if isinstance(val, torch.SymInt):
            return symbols.evaluate(symbols.dim(val), values)
        return val if isinstance(val, (int, float, bool)) else a

    def each(a: Any) -> Any:
        if isinstance(a, torch.fx.Node):
            return one(a)
        if isinstance(a, torch.SymInt):
            return symbols.evaluate(symbols.dim(a), values)
        if isinstance(a, (list, tuple)):
            return type(a)(each(x) for x in a) if type(a) in (list, tuple) else [each(x) for x in a]
        if isinstance(a, dict):
            return {k: each(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(each(a.start), each(a.stop), each(a.step))
        return a

    return each(arg)


def _step(link: Link, values: Mapping[str, int]) -> Callable[[torch.Tensor], torch.Tensor]:
    args, kwargs = concrete(link.node.args[1:], values), concrete(dict(link.node.kwargs), values)
    target, index = link.node.target, link.index

    def look(t: torch.Tensor) -> torch.Tensor:
        if target in _RESHAPES:
            return t.reshape(args[0])
        result = target(t, *args, **kwargs)
        return result if index is None else result[index]

    return look


Look = Callable[[torch.Tensor], torch.Tensor]


def look_through(links: tuple[Link, ...], values: Mapping[str, int]) -> Look:
    """The views of a chain, one after another. Where no view can show it, as eager's strides could, it is a copy."""
    steps = [_step(link, values) for link in links]

    def look(t: torch.Tensor) -> torch.Tensor:
        for step in steps:
            t = step(t)
        return t

    return look


@dataclasses.dataclass(frozen=True)
class Layout:
    """Size, stride, and offset in elements from where the memory starts."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    def probe(self, dtype: torch.dtype) -> torch.Tensor:
        """A tensor without memory that has this layout."""
        extent = self.offset + 1 + sum((n - 1) * s for n, s in zip(self.size, self.stride)) if all(self.size) else self.offset
        return torch.empty(max(extent, 0), dtype=dtype, device="meta").as_strided(self.size, self.stride, self.offset)

    @staticmethod
    def of(t: torch.Tensor) -> "Layout":
        return Layout(tuple(t.shape), tuple(t.stride()), t.storage_offset())


def fold(layout: Layout, dtype: torch.dtype, look: Look) -> Layout | None:
    """What a chain shows of memory of one layout, as a layout of the same memory; None where it is a copy."""
    probe = layout.probe(dtype)
    shown = look(probe)
    same = shown.untyped_storage()._cdata == probe.untyped_storage()._cdata and shown.dtype == dtype
    return Layout.of(shown) if same else None
