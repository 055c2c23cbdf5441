# SPDX-License-Identifier: Apache-2.0
"""Steps that PyTorch runs itself, between kernels: its own op on the tensors as they lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

import torch
from torch.utils import _pytree as pytree

from autofuse.bundle import FrameworkStep, TensorInfo

from .lowering import DTYPES
from .views import Layout, concrete

if TYPE_CHECKING:
    from .graph import Opaque
    from .plan import Plan, State

Getter = Callable[[list[Any], list[torch.Tensor]], torch.Tensor]
aten = torch.ops.aten

#: Ops whose results are written straight to where the graph wants them.
WRITES: dict[Any, Any] = {
    aten.mm.default: aten.mm.out,
    aten.addmm.default: aten.addmm.out,
    aten.bmm.default: aten.bmm.out,
}


class Call:
    """One such step."""

    def __init__(self, target: Any, template: list[Any], kwargs: dict[str, Any], fills: list[tuple[int, Getter]], rebuild: Any) -> None:
        self.target, self.template, self.kwargs, self.fills, self.rebuild = target, template, kwargs, fills, rebuild
        self.stores: list[tuple[int, Store]] = []  # index among the results, what becomes of it
        self.several = False
        self.place: Place | None = None
        self.buffers: list[int] = []

    def __call__(self, held: list[Any], state: "State") -> None:
        args = self.template.copy()
        temps = state.temps
        for place, get in self.fills:
            args[place] = get(held, temps)
        if self.place is not None:
            self.target(*args, **self.kwargs, out=self.place(held, state))
            return
        if self.rebuild is None:
            result = self.target(*args, **self.kwargs)
        else:
            built, kwargs = self.rebuild(args)
            result = self.target(*built, **kwargs)
        for index, store in self.stores:
            store(result[index] if self.several else result, held, state)


class Place:
    """Where an op writes to: a piece of the temporary block, or an output made now."""

    def __init__(self, plan: "Plan", t: TensorInfo) -> None:
        self.buffer = t.buffer
        self.index = plan.temp_view(t) if plan.bundle.buffers[t.buffer].kind == "temp" else -1
        self.size, self.stride, self.dtype, self.device = t.shape, t.strides, DTYPES[t.dtype], plan.device

    def __call__(self, held: list[Any], state: "State") -> torch.Tensor:
        if self.index >= 0:
            return state.temps[self.index]
        made = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device=self.device)
        held[self.buffer] = made
        state.bases[self.buffer] = made.data_ptr()
        return made


class Store:
    """What becomes of a result: it stands in for the buffer where it is laid out as declared, else it is copied."""

    def __init__(self, plan: "Plan", t: TensorInfo, dtype: torch.dtype, alias: bool) -> None:
        self.buffer, self.alias = t.buffer, alias
        plain = dtype == DTYPES[t.dtype]
        self.size = t.shape if plain else t.shape[:-1]
        self.stride = t.strides if plain else tuple(s // dtype.itemsize for s in t.strides[:-1])
        plan.held_temps.add(t.buffer)
        plan.held_layouts[t.buffer] = Layout(self.size, self.stride)

    def _fits(self, t: torch.Tensor) -> bool:
        stride = t.stride()
        return stride == self.stride or all(n <= 1 or a == b for n, a, b in zip(self.size, stride, self.stride))

    def __call__(self, t: torch.Tensor, held: list[Any], state: "State") -> None:
        if self.alias or not self._fits(t):
            t = torch.empty_strided(self.size, self.stride, dtype=t.dtype, device=t.device).copy_(t)
        held[self.buffer] = t
        state.bases[self.buffer] = t.data_ptr()


def _holds_nodes(arg: Any) -> bool:
    return any(isinstance(a, torch.fx.Node) for a in pytree.tree_leaves(arg))


def build_call(plan: "Plan", opaque: "Opaque", step: FrameworkStep, getters: Mapping[int, Getter]) -> Call:
    """The step for one opaque node."""
    node = opaque.node
    leaves, spec = pytree.tree_flatten((concrete(tuple(node.args), plan.values), concrete(dict(node.kwargs), plan.values)))
    flat = not any(_holds_nodes(a) for a in node.args if isinstance(a, (list, tuple, dict))) and not _holds_nodes(dict(node.kwargs))
    metas = node.meta.get("val")
    metas = list(metas) if isinstance(metas, (list, tuple)) else [metas]
    if flat:
        args = list(concrete(tuple(node.args), plan.values))
        where = _argument_places(node)
        call = Call(node.target, args, concrete(dict(node.kwargs), plan.values), [(where[p], g) for p, g in getters.items()], None)
    else:
        call = Call(node.target, leaves, {}, list(getters.items()), lambda built: pytree.tree_unflatten(built, spec))
    call.buffers = [t.buffer for t in step.inputs + step.outputs]
    if node.target in WRITES and flat and len(step.outputs) == 1 and plan.bundle.buffers[step.outputs[0].buffer].kind in ("temp", "output"):
        call.target = WRITES[node.target]
        call.place = Place(plan, step.outputs[0])
        return call
    call.several = opaque.n_results >= 0
    for index, t in zip(opaque.results, step.outputs):
        call.stores.append((index, Store(plan, t, metas[index].dtype, opaque.results_alias)))
    return call


def _argument_places(node: torch.fx.Node) -> dict[int, int]:
    """Place among the flattened arguments -> index among the positional ones."""
    places, at = {}, 0
    for i, a in enumerate(node.args):
        places[at] = i
        at += len(pytree.tree_leaves(a))
    return places
