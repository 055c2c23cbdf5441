# SPDX-License-Identifier: Apache-2.0
"""An FX graph after AOTAutograd as a fragment, and what the run time needs to know beside it.

Placeholders become inputs with the strides that they have, sizes become symbols, nodes with a lowering canonical nodes, all others
*opaque* nodes with declared results. Views that only PyTorch's own nodes read are not in the fragment at all (views.py). A trailing
`aten.copy_` is an output in an input's place.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Iterable, Mapping, Sequence

import torch
import torch.fx
from torch.utils import _pytree as pytree

from autofuse.fragment import Fragment

from . import symbols, views
from .lowering import DTYPE_NAMES, Emitted, GraphBuilder, NotLowered, Value, lower_node, target_name
from .symbols import Dim, Unsupported

aten = torch.ops.aten

#: A tensor that is part of the graph goes into the fragment, and its key, up to this many bytes; larger ones are inputs.
CONSTANT_BYTES = 4096
MAX_OPERANDS = 64
MUTATIONS = {aten.copy_.default}
#: Nodes that only state what the trace assumed.
ASSERTIONS = {"aten._assert_scalar.default", "aten.sym_constrain_range_for_size.default", "aten.sym_constrain_range.default"}


@dataclasses.dataclass(frozen=True)
class Operand:
    """A tensor among an opaque node's arguments: a value of the fragment, and the views from there on."""

    value: int  # which operand of the canonical node
    node: torch.fx.Node  # whose memory it is
    links: tuple[views.Link, ...]
    exact: bool  # the node minds strides


@dataclasses.dataclass
class Opaque:
    """A node that PyTorch runs. `places`: where tensors stand among its flattened arguments."""

    node: torch.fx.Node
    name: str
    inputs: list[str]
    places: dict[int, Operand]
    n_results: int  # tensors that it returns
    results: tuple[int, ...]  # index among the node's results of each output that is declared
    results_alias: bool  # they may lie in an operand's memory
    reason: str


@dataclasses.dataclass(frozen=True)
class Input:
    """How an input of the fragment is fed: by an argument of the call, or by what was known when the graph was compiled."""

    name: str
    arg: int = -1
    tensor: torch.Tensor | None = None
    size: Dim = 0
    dtype: torch.dtype = torch.float32


@dataclasses.dataclass(frozen=True)
class Result:
    """What the call returns at one place: a number, an argument seen through views, or an output of the fragment seen through views."""

    kind: str  # "none", "number", "arg", "tensor" (known at compile time), "output"
    index: int = -1
    links: tuple[views.Link, ...] = ()
    node: torch.fx.Node | None = None  # whose layout it has
    number: Any = None
    tensor: torch.Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Mutation:
    """An argument that the call updates; `output`: the fragment's output with the new elements, or -1: `result` has them."""

    arg: int
    node: torch.fx.Node
    result: Result


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A size: how to read it off the arguments."""

    name: str
    arg: int
    axis: int  # -1: the argument is the number
    low: int
    high: int
    hint: int


def _tensors(arg: Any) -> Iterable[torch.fx.Node]:
    for a in pytree.tree_leaves(arg):
        if isinstance(a, torch.fx.Node):
            yield a


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


class Translation:
    """One graph, translated. `pinned`: nodes that are left to PyTorch whatever their lowering says, and why."""

    def __init__(self, gm: torch.fx.GraphModule, pinned: Mapping[torch.fx.Node, str], in_place: bool = True) -> None:
        self.gm, self.pinned, self.in_place = gm, pinned, in_place
        self.b = GraphBuilder()
        self.device = ""  # "cpu" or "npu", once a tensor tells
        self.chains: dict[torch.fx.Node, views.Chain] = {}
        self.placeholders: list[torch.fx.Node] = []
        self.symbols: list[Symbol] = []
        self.inputs: list[Input] = []
        self.specs: list[tuple[Any, ...]] = []  # name, dtype name, shape, strides, host
        self.opaque: dict[str, Opaque] = {}  # by the canonical node's name
        self.outputs: list[tuple[str, tuple[Dim, ...] | None, str | None]] = []  # value, strides, alias_of
        self.output_nodes: list[torch.fx.Node] = []
        self.results: list[Result] = []
        self.mutations: list[Mutation] = []
        self.constants: dict[str, torch.Tensor] = {}  # by value name, for opaque operands
        self.known: dict[torch.fx.Node, torch.Tensor] = {}  # get_attr tensors
        self.reasons: dict[torch.fx.Node, str] = {}
        self._made_by_kernel: set[torch.fx.Node] = set()
        self._output_index: dict[tuple[torch.fx.Node, bool], int] = {}
        self._translate()

    # ---- reading the graph ----

    def _translate(self) -> None:
        nodes = list(self.gm.graph.nodes)
        self.placeholders = [n for n in nodes if n.op == "placeholder"]
        self._positions = {n: i for i, n in enumerate(self.placeholders)}
        self._find_symbols()
        copies = []
        for node in nodes:
            if node.op == "placeholder":
                self._placeholder(node, self._positions[node])
            elif node.op == "get_attr":
                self._get_attr(node)
            elif node.op == "call_function" and node.target in MUTATIONS:
                copies.append(node)
                self.chains[node] = self.chains.get(node.args[0], views.Chain(node, ()))
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                self._output(node, copies)
            else:
                raise Unsupported(f"the graph has a {node.op}")

    def _shape_env(self) -> Any:
        for node in self.gm.graph.nodes:
            val = node.meta.get("val")
            if isinstance(val, torch.SymInt):
                return val.node.shape_env
            if isinstance(val, torch.Tensor):
                for s in val.shape:
                    if isinstance(s, torch.SymInt):
                        return s.node.shape_env
        return None

    def _find_symbols(self) -> None:
        env = self._shape_env()
        if env is None:
            return
        found: dict[str, Symbol] = {}

        def offer(size: Any, arg: int, axis: int) -> None:
            if not isinstance(size, torch.SymInt):
                return
            expr = symbols.symint_expr(size)
            if expr.is_Symbol and expr.name not in found:
                low, high = symbols.bounds(env, expr)
                hint = env.backed_var_to_val.get(expr) if hasattr(env, "backed_var_to_val") else env.var_to_val.get(expr)
                found[expr.name] = Symbol(expr.name, arg, axis, low, high, int(hint) if hint is not None else -1)

        for i, node in enumerate(self.placeholders):
            offer(node.meta.get("val"), i, -1)
        for i, node in enumerate(self.placeholders):
            val = node.meta.get("val")
            if isinstance(val, torch.Tensor):
                for axis, size in enumerate(val.shape):
                    offer(size, i, axis)
        self.symbols = list(found.values())

    def _check_device(self, val: torch.Tensor) -> None:
        if val.layout != torch.strided or val.is_quantized:
            raise Unsupported(f"a tensor of layout {val.layout}")
        if val.device.type not in ("cpu", "npu"):
            raise Unsupported(f"a tensor on device {val.device.type}")
        if self.device not in ("", val.device.type) and val.ndim > 0:
            raise Unsupported("tensors on the CPU and on an NPU in one graph")
        if val.ndim > 0 or val.device.type == "npu":
            self.device = val.device.type

    def _declare(self, name: str, val: torch.Tensor, stated: bool) -> tuple[Any, ...]:
        """name, dtype, shape, strides of a tensor's memory. Dtypes that no fragment knows are declared as their bytes."""
        self._check_device(val)
        shape, strides = symbols.dims(val.shape), symbols.dims(val.stride())
        if val.dtype in DTYPE_NAMES:
            return (name, DTYPE_NAMES[val.dtype], shape, strides) if stated else (name, DTYPE_NAMES[val.dtype], shape)
        size = val.dtype.itemsize
        wide = tuple(s * size if isinstance(s, int) else f"({s})*{size}" for s in strides)
        return (name, "uint8", shape + (size,), wide + (1,)) if stated else (name, "uint8", shape + (size,))

    def _placeholder(self, node: torch.fx.Node, index: int) -> None:
        val = node.meta.get("val")
        self.chains[node] = views.Chain(node, ())
        if not isinstance(val, torch.Tensor):
            return
        host = val.ndim == 0 and val.dtype == torch.float64 and val.device.type == "cpu"
        name, dtype, shape, strides = self._declare(node.name, val, True)
        self.specs.append((name, dtype, shape, strides, host))
        self.inputs.append(Input(name, arg=index))
        self._bind(node, name, val)

    def _bind(self, node: torch.fx.Node, name: str, val: torch.Tensor) -> None:
        if val.dtype in DTYPE_NAMES:
            self.b.values[node] = Value(name, val.dtype, symbols.dims(val.shape))
        else:
            self.b.values[node] = Value(name, torch.uint8, symbols.dims(val.shape) + (val.dtype.itemsize,))

    def _get_attr(self, node: torch.fx.Node) -> None:
        held: Any = self.gm
        for part in str(node.target).split("."):
            held = getattr(held, part)
        self.chains[node] = views.Chain(node, ())
        if not isinstance(held, torch.Tensor):
            return
        node.meta.setdefault("val", held)
        self.known[node] = held
        if held.dtype in DTYPE_NAMES and held.device.type == "cpu" and held.numel() * held.dtype.itemsize <= CONSTANT_BYTES:
            value = self.b.constant_tensor(held)
            self.b.values[node] = value
            self.constants[value.name] = held
            return
        name, dtype, shape, strides = self._declare(node.name, held, True)
        self.specs.append((name, dtype, shape, strides, False))
        self.inputs.append(Input(name, tensor=held))
        self._bind(node, name, held)

    # ---- nodes ----

    def _call(self, node: torch.fx.Node) -> None:
        val = node.meta.get("val")
        if isinstance(val, (torch.SymInt, int, float, bool, torch.SymBool, torch.SymFloat)):
            unknown = any(_is_tensor(a) for a in _tensors(node.args)) and target_name(node) != "aten.sym_size.int"
            if unknown or isinstance(val, (torch.SymBool, torch.SymFloat)):
                self._number(node)
            return
        if target_name(node) in ASSERTIONS:
            return
        self.chains[node] = views.chain_of(node, self.chains) if self._has_chain(node) else views.Chain(node, ())
        if node.target is operator.getitem:
            self._getitem(node)
            return
        lowered = self._lower(node)
        if isinstance(lowered, NotLowered):
            self._leave(node, lowered.reason)
        else:
            self.b.values[node] = lowered
            self._made_by_kernel.add(node)

    def _number(self, node: torch.fx.Node) -> None:
        name = target_name(node)
        if name.startswith("aten.sym_"):
            return
        raise Unsupported(f"{name} gives a number that only the elements know")

    def _has_chain(self, node: torch.fx.Node) -> bool:
        if node.target is operator.getitem:
            return isinstance(node.args[0], torch.fx.Node) and views.is_view(node.args[0])
        return views.is_view(node)

    def _getitem(self, node: torch.fx.Node) -> None:
        source = node.args[0]
        if source in self._made_by_kernel:
            self._made_by_kernel.add(node)
        values = self.b.values.get(source)
        if isinstance(values, tuple):
            self.b.values[node] = values[node.args[1]]
        elif values is not None:
            self.b.values[node] = values

    def _lower(self, node: torch.fx.Node) -> Any:
        if node in self.pinned:
            return NotLowered(self.pinned[node])
        for a in [node, *_tensors((node.args, node.kwargs))]:
            for val in pytree.tree_leaves(a.meta.get("val")):
                if not isinstance(val, torch.Tensor):
                    continue
                if val.dtype not in DTYPE_NAMES:
                    return NotLowered(f"{val.dtype} has no kernels".replace("torch.", ""))
                if val.dtype == torch.float64 and val.ndim > 0:
                    return NotLowered("float64 tensors stay with the framework")
        return lower_node(self.b, node)

    def _leave(self, node: torch.fx.Node, reason: str) -> None:
        """Emits a node that PyTorch runs."""
        self.reasons[node] = reason
        inputs, places = self._operands(node)
        vals = node.meta.get("val")
        declared = [(i, v) for i, v in enumerate(vals if isinstance(vals, (list, tuple)) else [vals]) if isinstance(v, torch.Tensor)]
        n_results = len(vals) if isinstance(vals, (list, tuple)) else -1
        aliases = views.is_view(node) or not isinstance(node.target, torch._ops.OpOverload)
        effects = self._has_effects(node)
        if not declared and not effects:
            return
        names = [self.b.fresh() for _ in declared]
        outputs = [self._declare(name, v, not views.is_view(node)) for name, (_, v) in zip(names, declared)]
        name = f"n{len(self.b.nodes)}"
        self.b.nodes.append(Emitted(name, "opaque", inputs, outputs, {"effects": True} if effects else {}, target_name(node), node))
        self.opaque[name] = Opaque(node, name, inputs, places, n_results, tuple(i for i, _ in declared), aliases, reason)
        made: list[Value | None] = [None] * max(n_results, 1)
        for value_name, (i, v) in zip(names, declared):
            known = v.dtype in DTYPE_NAMES
            shape = symbols.dims(v.shape)
            made[i] = Value(value_name, v.dtype if known else torch.uint8, shape if known else shape + (v.dtype.itemsize,))
        self.b.values[node] = tuple(made) if n_results >= 0 else made[0]  # type: ignore[assignment]

    def _has_effects(self, node: torch.fx.Node) -> bool:
        if not isinstance(node.target, torch._ops.OpOverload):
            return not isinstance(node.target, torch._ops.HigherOrderOperator)
        return node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags

    def _operands(self, node: torch.fx.Node) -> tuple[list[str], dict[int, Operand]]:
        flat, _ = pytree.tree_flatten((node.args, dict(node.kwargs)))
        inputs: list[str] = []
        places: dict[int, Operand] = {}
        exact = not isinstance(node.target, torch._ops.OpOverload) or node.target.namespace not in ("aten", "prims")
        exact = exact or node.target in views.BY_STRIDE
        for place, a in enumerate(flat):
            if not isinstance(a, torch.fx.Node) or not _is_tensor(a):
                continue
            chain = self._behind(a)
            value = self.b.values[chain.root]
            assert isinstance(value, Value)
            if value.name not in inputs:
                inputs.append(value.name)
            places[place] = Operand(inputs.index(value.name), chain.root, chain.links, exact)
        if len(inputs) > MAX_OPERANDS:
            raise Unsupported(f"{target_name(node)} has {len(inputs)} operands, more than {MAX_OPERANDS}")
        return inputs, places

    def _behind(self, node: torch.fx.Node) -> views.Chain:
        """What PyTorch's own node is handed where it reads this one: memory, and views of it."""
        chain = self.chains[node]
        root_value = self.b.values.get(chain.root)
        if chain.root not in self._made_by_kernel or not isinstance(self.b.values.get(node), Value):
            return chain
        if chain.is_whole and isinstance(root_value, Value):
            return chain
        return views.Chain(node, ())

    # ---- results ----

    def _output(self, node: torch.fx.Node, copies: Sequence[torch.fx.Node]) -> None:
        returned = list(node.args[0]) if isinstance(node.args[0], (list, tuple)) else [node.args[0]]
        self.results = [self._result(r) for r in returned]
        for copy in copies:
            self._mutation(copy)

    def _result(self, r: Any) -> Result:
        if not isinstance(r, torch.fx.Node):
            return Result("none") if r is None else Result("number", number=r)
        val = r.meta.get("val")
        if not isinstance(val, torch.Tensor):
            if r.op == "placeholder":
                return Result("arg", index=self._positions[r], node=r)
            if isinstance(val, (torch.SymInt, int, float, bool)):
                return Result("number", number=symbols.dim(val) if isinstance(val, torch.SymInt) else val)
            raise Unsupported(f"the graph returns {type(val).__name__}")
        chain = self.chains[r]
        if chain.root.op == "placeholder":
            return Result("arg", index=self._positions[chain.root], links=chain.links, node=chain.root)
        if chain.root in self.known:
            return Result("tensor", tensor=self.known[chain.root], links=chain.links, node=chain.root)
        return Result("output", index=self._add_output(chain.root), links=chain.links, node=chain.root)

    def _add_output(self, root: torch.fx.Node, alias_of: str | None = None) -> int:
        key = (root, alias_of is not None)
        if key not in self._output_index or alias_of is not None:
            value = self.b.values[root]
            assert isinstance(value, Value)
            strides = None
            if root in self._made_by_kernel and alias_of is None:
                strides = symbols.dims(root.meta["val"].stride())
            self._output_index[key] = len(self.outputs)
            self.outputs.append((value.name, strides, alias_of))
            self.output_nodes.append(root)
        return self._output_index[key]

    def _mutation(self, copy: torch.fx.Node) -> None:
        target, source = copy.args[0], copy.args[1]
        if not isinstance(target, torch.fx.Node) or target.op != "placeholder":
            raise Unsupported("aten.copy_ to what is no input")
        arg = self._positions[target]
        if not isinstance(source, torch.fx.Node) or not _is_tensor(source):
            raise Unsupported("aten.copy_ of a number")
        chain, old, new = self.chains[source], target.meta["val"], source.meta["val"]
        kernel = chain.root in self._made_by_kernel and not chain.links
        shown = {o.node for o in self.results if o.kind == "output"} | {m.result.node for m in self.mutations}
        fits = old.dtype == new.dtype and symbols.dims(old.shape) == symbols.dims(new.shape) and target in self.b.values
        taken = any(r.kind == "output" and self.b.values.get(r.node) == self.b.values.get(target) for r in self.results)
        if self.in_place and kernel and fits and chain.root not in shown and not taken:
            target_value = self.b.values[target]
            assert isinstance(target_value, Value)
            result = Result("output", index=self._add_output(chain.root, alias_of=target_value.name), node=chain.root)
        else:
            result = self._result(source)
        self.mutations.append(Mutation(arg, target, result))

    # ---- the fragment ----

    @property
    def n_kernel_nodes(self) -> int:
        return sum(e.op != "opaque" for e in self.b.nodes)

    def fragment(self, name: str, target: Mapping[str, Any]) -> Fragment:
        """The fragment, ready to be submitted."""
        f = Fragment(name)
        if any(k in target for k in ("soc", "toolchain", "twin")):
            f.target(target.get("soc"), target.get("toolchain"), target.get("twin", "default"))
        f.numerics(str(target.get("numerics", "strict")))
        for s in self.symbols:
            f.symbol(s.name, min=s.low, max=s.high, hint=s.hint)
        for name_, dtype, shape, strides, host in self.specs:
            f.input(name_, dtype, shape, strides=None if host else strides, host=host)
        for h in self.b.host_scalars.values():
            f.input(h.value.name, DTYPE_NAMES[h.value.dtype], [], host=True)
        for (dtype, shape, data), value in self.b.constants.items():
            f.constant(value.name, dtype, [int(s) for s in shape], data)
        for e in self.b.nodes:
            f.node(e.op, e.inputs, e.outputs, attrs=e.attrs, name=e.name, origin=e.origin)
        for value_name, out_strides, alias_of in self.outputs:
            f.output(value_name, strides=out_strides, alias_of=alias_of)
        return f

    def all_inputs(self) -> list[Input]:
        """In the fragment's order."""
        sizes = [Input(h.value.name, size=h.expr, dtype=h.value.dtype) for h in self.b.host_scalars.values()]
        return self.inputs + sizes
