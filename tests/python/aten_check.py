# SPDX-License-Identifier: Apache-2.0
"""Each aten op that PyTorch runs, lowered, evaluated by the reference (tests/tools/evaluate.c) and compared with what eager gave.

`Checked` is a dispatch mode: inside it every op that has a lowering is checked on the very tensors that it gets, and what the decompositions that the
front end uses make of an op is checked piece by piece. The rule: ops that are exact give eager's bits (all NaNs are one); others are, against the same
op in float64, at most twice as far off as eager, and a few units in the last place.
"""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from autofuse.torch import aten as table  # noqa: F401
from autofuse.torch.lowering import DTYPE_NAMES, LOWERINGS, GraphBuilder, NotLowered, Value, lower_node

ROOT = os.environ.get("AF_BUILD_ROOT", os.path.join(os.path.dirname(__file__), "../../build"))
MANTISSA = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}

#: Results that must have eager's bits.
EXACT = set(
    "abs neg sign sgn relu floor ceil round trunc square bitwise_not isnan isinf isfinite isposinf isneginf signbit logical_not nan_to_num mul maximum "
    "minimum fmod bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ bitwise_left_shift __lshift__ bitwise_right_shift __rshift__ "
    "sub rsub add div copysign fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor where masked_fill clamp clamp_min clamp_max hardtanh "
    "_to_copy convert_element_type clone contiguous lift_fresh_copy positive alias detach copy amax amin max min aminmax argmax argmin any all "
    "view _unsafe_view reshape _reshape_copy view_copy squeeze unsqueeze squeeze_copy unsqueeze_copy flatten expand expand_copy broadcast_to "
    "broadcast_in_dim permute permute_copy transpose t transpose_copy slice slice_copy select select_copy split_with_sizes split chunk unbind cat stack flip roll repeat "
    "constant_pad_nd tril triu diagonal diagonal_copy slice_scatter select_scatter as_strided as_strided_copy full full_like new_full fill zeros ones "
    "zeros_like ones_like new_zeros new_ones scalar_tensor arange iota tril_indices triu_indices eye embedding index_select gather take index scatter slice_backward select_backward unfold unfold_copy hardshrink_backward softshrink_backward "
    "_unsafe_index threshold threshold_backward hardshrink reciprocal detach_copy alias_copy split_with_sizes_copy lift_fresh"
    .split()
)  # fmt: skip
#: max(x, 0) of -0.0 is 0.0 here and whichever comes first there.
OF_ZEROS = {"relu", "hardtanh", "clamp", "clamp_min", "clamp_max"}
UNDEFINED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}


class Reference:
    """The evaluating process."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """A new process."""
        tool = os.path.join(ROOT, "tests/tools/evaluate")
        self.process = subprocess.Popen([tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, text: bytes, inputs: list[torch.Tensor], outputs: list[Value]) -> list[torch.Tensor] | str:
        """The outputs of a fragment, or why it was refused."""
        data = [raw(t) for t in inputs]
        to, back = self.process.stdin, self.process.stdout
        assert to is not None and back is not None
        to.write(b"%d\n" % len(text) + text)
        to.flush()
        line = back.readline()
        if line == b"fragment\n":
            to.write(b"".join(data))
            to.flush()
            line = back.readline()
        if line != b"ok\n":
            words = line.split()
            if len(words) > 1:
                return back.read(int(words[1])).decode()
            self.close()
            self.start()
            return f"the evaluating process ended: {line!r}"
        found = []
        for v in outputs:
            n = 1
            for d in v.shape:
                n *= int(d)
            data = back.read(n * v.dtype.itemsize)
            found.append(torch.frombuffer(bytearray(data), dtype=v.dtype).reshape([int(d) for d in v.shape]) if n else torch.empty([int(d) for d in v.shape], dtype=v.dtype))
        return found

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def raw(t: torch.Tensor) -> bytes:
    """A tensor's elements in row-major order."""
    t = t.detach().resolve_conj().resolve_neg()
    return torch.empty(t.shape, dtype=t.dtype).copy_(t).reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""


def fragment_text(b: GraphBuilder, inputs: list[tuple[Value, bool]], outputs: list[Value]) -> bytes:
    """The builder's graph as JSON. inputs: values, and whether each is passed by value."""

    def tensor(name: str, dtype: str, shape: Any) -> dict[str, Any]:
        return {"name": name, "dtype": dtype, "shape": list(shape)}

    def number(v: Any) -> Any:
        if isinstance(v, float) and (v != v or v in (float("inf"), -float("inf"))):
            return {"inf": "inf", "-inf": "-inf"}.get(str(v), "nan")
        if isinstance(v, (list, tuple)):
            return [number(x) for x in v]
        return str(v) if isinstance(v, int) and not isinstance(v, bool) and abs(v) > 2**53 else v

    return json.dumps(
        {
            "schema": "autofuse.fragment/1",
            "name": "t",
            "inputs": [{**tensor(v.name, DTYPE_NAMES[v.dtype], v.shape), **({"host": True} if host else {})} for v, host in inputs],
            "constants": [{**tensor(v.name, dtype, shape), "bits": data.hex()} for (dtype, shape, data), v in b.constants.items()],
            "nodes": [
                {"name": n.name, "op": n.op, "inputs": n.inputs, "attrs": {k: number(v) for k, v in n.attrs.items()}, "origin": n.origin,
                 "outputs": [tensor(*o[:3]) for o in n.outputs]}
                for n in b.nodes
            ],
            "outputs": [v.name for v in outputs],
        }
    ).encode()  # fmt: skip


def node_of(func: Any, args: Any, kwargs: Any, result: Any, every: bool) -> tuple[torch.fx.Node, list[torch.fx.Node]]:
    """A call as an FX node that something returns; every: all its results are read, else the first. And its tensors as placeholders."""
    graph = torch.fx.Graph()
    places: dict[int, torch.fx.Node] = {}

    def held(v: Any) -> Any:
        if not isinstance(v, torch.Tensor):
            return v
        if id(v) not in places:
            places[id(v)] = graph.placeholder(f"a{len(places)}")
            places[id(v)].meta["val"] = v
        return places[id(v)]

    args, kwargs = pytree.tree_map(held, (args, kwargs))
    node = graph.call_function(func, tuple(args), dict(kwargs))
    node.meta["val"] = result
    if isinstance(result, (tuple, list)):
        import operator

        returned: Any = [graph.call_function(operator.getitem, (node, i)) for i in range(len(result) if every else 1)]
    else:
        returned = node
    graph.output(returned)
    return node, list(places.values())


def same_bits(x: torch.Tensor, y: torch.Tensor, signs: bool = True) -> bool:
    """Whether two tensors agree in every bit; all NaNs are one, and -0.0 is not 0.0 unless signs is false."""
    if x.dtype.is_floating_point:
        equal = (x == y) & ((torch.signbit(x) == torch.signbit(y)) | (not signs)) | (x.isnan() & y.isnan())
    else:
        equal = x == y
    return bool(equal.all())


def wide(v: Any) -> Any:
    """Floats as float64."""
    if isinstance(v, torch.Tensor) and v.dtype in MANTISSA:
        return v.to(torch.float64)
    return torch.float64 if isinstance(v, torch.dtype) and v in MANTISSA else v


def too_far(ours: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor | None, ulps: float, size: torch.Tensor | None = None) -> str:
    """Empty, or by how much ours is further off than it may be. size: what units in the last place are of, where not of the result."""
    if not torch.equal(ours.isnan(), eager.isnan()):
        return "NaN elsewhere"
    o, e = ours.double(), eager.double()
    x = exact.double() if exact is not None and exact.shape == e.shape else e
    finite = o.isfinite() & e.isfinite() & x.isfinite()
    beside = ~finite & ~ours.isnan() & x.isfinite() & e.isfinite()
    if bool(beside.any()) or bool((e.isinf() & (o != e) & x.isinf()).any()):
        return "infinite elsewhere"
    if not bool(finite.any()):
        return ""
    m = size.double().broadcast_to(e.shape)[finite] if size is not None else x[finite].abs()
    o, e, x = o[finite], e[finite], x[finite]
    unit = 2.0 ** -MANTISSA[ours.dtype]
    least = torch.finfo(ours.dtype).smallest_normal * unit * 2
    allowed = 2 * (e - x).abs().max() + ulps * 2 * unit * m + 2 * least
    over = ((o - x).abs() - allowed).max()
    return f"off by {(o - x).abs().max():.3g}, eager by {(e - x).abs().max():.3g}, allowed {allowed.max():.3g}" if float(over) > 0 else ""


class Checked(TorchDispatchMode):
    """Checks every op inside it. `failures`: texts; `checked`: how often each op was; `left`: why some were not lowered."""

    def __init__(self, decompositions: dict[Any, Any]) -> None:
        super().__init__()
        self.reference = Reference()
        self.decompositions = decompositions
        self.failures: list[str] = []
        self.checked: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.fragments: Any = None  # called with name, text, inputs
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not func._schema.is_mutable and str(func) in LOWERINGS:
            self.check(func, args, kwargs, result)
        if not func._schema.is_mutable and func in self.decompositions:
            with self:
                self.decompositions[func](*args, **kwargs)
        return result

    def check(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One call, unless one of these dtypes, sizes and numbers was checked."""
        what = f"{func} {describe(args)} {describe(kwargs)}"
        if what in self.seen:
            return
        self.seen.add(what)
        if isinstance(result, (tuple, list)) and len(result) > 1:
            self.check_one(func, args, kwargs, result, False)
        self.check_one(func, args, kwargs, result, True)

    def check_one(self, func: Any, args: Any, kwargs: Any, result: Any, every: bool) -> None:
        """One call, all results or the first."""
        name = str(func)
        node, places = node_of(func, args, kwargs, result, every)
        b = GraphBuilder()
        inputs = []
        for p in places:
            t = p.meta["val"]
            if t.dtype in DTYPE_NAMES and t.layout == torch.strided:
                host = t.ndim == 0 and t.dtype == torch.float64
                b.values[p] = Value(p.name, t.dtype, tuple(t.shape))
                inputs.append((b.values[p], host, t))
        lowered = lower_node(b, node)
        if isinstance(lowered, NotLowered):
            self.left.setdefault(f"{name}: {lowered.reason}", str([tuple(t.shape) for _, _, t in inputs]))
            return
        values = list(lowered) if isinstance(lowered, tuple) else [lowered]
        wanted = list(result) if isinstance(result, (tuple, list)) else [result]
        if not every:
            values, wanted = values[:1], wanted[:1]
        self.checked[name] = self.checked.get(name, 0) + 1
        where = f"{name} {describe(args)} {describe(kwargs)}"
        for v, w in zip(values, wanted):
            if v.dtype != w.dtype or tuple(v.shape) != tuple(w.shape):
                self.failures.append(f"{where}: lowered to {v.dtype}{list(v.shape)}, eager gives {w.dtype}{list(w.shape)}")
                return
        text = fragment_text(b, [(v, host) for v, host, _ in inputs], values)
        if self.fragments:
            self.fragments(name, text, [t for _, _, t in inputs])
        got = self.reference.run(text, [t for _, _, t in inputs], values)
        if isinstance(got, str):
            self.failures.append(f"{where}: {got.strip()}")
            return
        if func._schema.name.split("::")[1] not in UNDEFINED:
            self.compare(func, args, kwargs, got, wanted, where)

    def compare(self, func: Any, args: Any, kwargs: Any, got: list[torch.Tensor], wanted: list[torch.Tensor], where: str) -> None:
        """Against eager by the rule."""
        exact: Any = None
        for i, (g, w) in enumerate(zip(got, wanted)):
            w = w.detach().resolve_conj().resolve_neg()
            if same_bits(g, w, func._schema.name.split("::")[1] not in OF_ZEROS):
                continue
            why = "other bits" if not g.dtype.is_floating_point or is_exact(func, args, kwargs) else ""
            if not why:
                if exact is None:
                    exact = self.in_float64(func, args, kwargs)
                one = exact[i] if isinstance(exact, (tuple, list)) else exact
                size = self.size_of_terms(func, args, kwargs, i)
                why = too_far(g, w, one if isinstance(one, torch.Tensor) else None, 1 if g.dtype != torch.float32 else 8, size)
            if why:
                self.failures.append(f"{where} result {i}: {why}\n    ours {shown(g, w)}\n    eager {shown(w, g)}")

    def size_of_terms(self, func: Any, args: Any, kwargs: Any, result: int) -> torch.Tensor | None:
        """Of sums: the same sum of magnitudes, which their error is relative to. Of a norm's mean: the largest magnitude."""
        if of_sums(func):
            return self.in_float64(func, *pytree.tree_map(magnitude, (args, kwargs)))
        return args[0].abs().max() if "norm" in func._schema.name and result == 1 and args[0].numel() else None

    def in_float64(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The same call on float64; False where there is none."""
        try:
            wide_args, wide_kwargs = pytree.tree_map(wide, (args, kwargs))
            return func(*wide_args, **wide_kwargs)
        except (RuntimeError, NotImplementedError, TypeError):
            return False

    def close(self) -> None:
        """Ends the evaluating process."""
        self.reference.close()


def is_exact(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether the result must have eager's bits: not where eager contracts (alpha) or rounds in between."""
    name = func._schema.name.split("::")[1]
    if name in ("add", "sub", "rsub"):
        return kwargs.get("alpha", args[2] if len(args) > 2 else 1) == 1
    if name == "arange":
        return not any(isinstance(a, float) and a != int(a) for a in args)
    return name in EXACT and not (name == "div" and "rounding_mode" in kwargs)


def of_sums(func: Any) -> bool:
    """Whether errors are relative to the sum of magnitudes."""
    return func._schema.name.split("::")[1] in ("sum", "mean", "cumsum")


def magnitude(v: Any) -> Any:
    """A float tensor's absolute values."""
    return v.abs() if isinstance(v, torch.Tensor) and v.dtype in MANTISSA else v


def describe(v: Any) -> str:
    """Arguments, tensors by dtype, shape and strides."""
    if isinstance(v, torch.Tensor):
        strides = "" if v.is_contiguous() else f"@{list(v.stride())}"
        return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}{strides}"
    if isinstance(v, (list, tuple)):
        return "(" + ", ".join(describe(x) for x in v) + ")"
    return str({k: describe(x) for k, x in v.items()}) if isinstance(v, dict) else str(v)


def shown(t: torch.Tensor, other: torch.Tensor) -> str:
    """The first elements that differ."""
    differ = ~((t == other) | (t.isnan() & other.isnan() if t.dtype.is_floating_point else torch.zeros_like(t, dtype=torch.bool)))
    if t.dtype.is_floating_point:
        differ |= (torch.signbit(t) != torch.signbit(other)) & ~t.isnan()
    places = differ.flatten().nonzero().flatten()[:4].tolist()
    return f"{int(differ.sum())}/{t.numel()} at {places}: {[t.flatten()[i].item() for i in places]}"
