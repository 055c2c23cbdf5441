# SPDX-License-Identifier: Apache-2.0
"""A graph as stages: what has kernels as fragments, one per stage, and between them the ops that stay TensorFlow's.

A value's stage is how many TensorFlow ops are in a row before it; what can be fused of one stage is one fragment, which can wait for
nothing that waits for it.
"""
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from autofuse.tensorflow.lowering import DTYPES, Dim, Known, NotLowered, Operand, Val, lower, product, shape_of

CONSTANT_BYTES = 4096
"""Larger constants are fed, as variables are."""


class Symbol(NamedTuple):
    """A size of the graph's inputs that is not in the graph: one of the input `tensor`, and what it was at the first call."""

    name: str
    tensor: str
    hint: int


class Stage(NamedTuple):
    """fragment: JSON. inputs, outputs: names of the graph's tensors. ops: the op of each node. symbols: operand and axis that each has its
    size from. aliases: tensors that are others of the graph."""

    fragment: str
    inputs: list[str]
    outputs: list[str]
    ops: list[str]
    symbols: list[tuple[int, int]]
    aliases: dict[str, str]


class Left(NamedTuple):
    """An op that stays TensorFlow's."""

    name: str
    op: str
    reason: str

    def __str__(self) -> str:
        return f"Fallback {self.op} $reason: {self.reason}"


class Cut(NamedTuple):
    """first: ops without operands; then stages[i] before ops[i], for each i. All are TensorFlow's; those of one i are independent."""

    stages: list[Stage | None]
    first: list[Any]
    ops: list[list[Any]]
    left: list[Left]


class _Reader:
    def __init__(self, graph: Any, shapes: Mapping[str, tuple[Dim, ...]], refused: Mapping[str, str]) -> None:
        self.graph, self.refused = graph, refused
        self.values: dict[str, Operand] = {}
        self.stage: dict[str, int] = {}
        self.nodes: dict[int, list[tuple[str, dict[str, Any]]]] = {}
        self.constants: dict[int, list[dict[str, Any]]] = {}
        self.fused: set[str] = set()
        self.reasons: dict[str, str] = {}
        for name, shape in shapes.items():
            tensor = graph.get_tensor_by_name(name)
            self.stage[name] = 0
            if tensor.dtype.name in DTYPES:
                self.values[name] = Val(name, tensor.dtype.name, shape)

    def read(self) -> None:
        """Every op: fed, known, fused or left."""
        for op in self.graph.get_operations():
            if op.outputs and all(t.name in self.stage for t in op.outputs):
                continue  # fed
            known = self.known(op)
            if known is None and self.fuse(op):
                continue
            self.leave(op)
            for t, value in zip(op.outputs, known or ()):
                self.values[t.name] = value

    def fuse(self, op: Any) -> bool:
        """Whether the op became nodes."""
        try:
            if op.name in self.refused:
                raise NotLowered(self.refused[op.name])
            if op.type == "Const" or len(op.outputs) != 1:
                raise NotLowered(f"op {op.type}")
            at = max((self.stage[t.name] for t in op.inputs if isinstance(self.values.get(t.name), Val)), default=0)
            out, built = lower(op, [self.operand(t.name, at) for t in op.inputs])
        except NotLowered as e:
            self.reasons[op.name] = str(e)
            return False
        name = op.outputs[0].name
        self.values[name], self.stage[name] = out, at
        self.nodes.setdefault(at, []).extend((op.name, n) for n in built.nodes)
        self.constants.setdefault(at, []).extend(built.constants)
        self.fused.add(op.name)
        return True

    def operand(self, name: str, at: int) -> Operand:
        """A tensor as an operand in stage `at`: what another stage made comes in by the tensor's name."""
        value = self.values.get(name)
        if value is None:
            raise NotLowered("an operand of unknown size or dtype")
        return Val(name, value.dtype, value.shape) if isinstance(value, Val) and self.stage[name] != at else value

    def leave(self, op: Any) -> None:
        """Its results are values of the next stage, where TensorFlow knows their sizes."""
        at = max((self.stage[t.name] for t in op.inputs), default=-1)
        for t in op.outputs:
            self.stage[t.name] = at + 1
            shape = self.result_shape(op, t)
            if shape is not None and t.dtype.name in DTYPES:
                self.values[t.name] = Val(t.name, t.dtype.name, shape)

    def result_shape(self, op: Any, t: Any) -> tuple[Dim, ...] | None:
        if t.shape.is_fully_defined():
            return tuple(t.shape.as_list())
        operands = [self.values.get(i.name) for i in op.inputs]
        if op.type in ("MatMul", "BatchMatMulV2") and all(isinstance(x, Val) for x in operands):
            a, b = [x.shape for x in operands if isinstance(x, Val)]
            flags = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
            rows, columns = a[-1 if op.get_attr(flags[0]) else -2], b[-2 if op.get_attr(flags[1]) else -1]
            return (*a[:-2], rows, columns) if a[:-2] == b[:-2] else None
        return None

    def known(self, op: Any) -> list[Known] | None:
        """Results that follow from sizes and constants alone."""
        types = [t.dtype.name for t in op.outputs]
        if op.type == "Const":
            value = tf.make_ndarray(op.get_attr("value"))
            return [Known(value, types[0])] if value.nbytes <= CONSTANT_BYTES and value.dtype != object else None
        operands = [self.values.get(t.name) for t in op.inputs]
        if op.type in ("Shape", "Size") and operands[0] is not None:
            shape = shape_of(operands[0])
            return [Known(_array(shape) if op.type == "Shape" else _array([product(shape)]).reshape(()), types[0])]
        if op.type not in FOLDED or not operands or not all(isinstance(x, Known) for x in operands):
            return None
        try:
            results = FOLDED[op.type](op, *[x.value for x in operands if isinstance(x, Known)])
        except NotLowered:
            return None
        results = results if isinstance(results, tuple) else (results,)
        arrays = [v if isinstance(v, np.ndarray) else np.array(v, object if isinstance(v, str) else None) for v in results]
        return [Known(v, t) for v, t in zip(arrays, types)]


def _array(dims: Sequence[Dim]) -> np.ndarray:
    """Sizes as a known value."""
    if all(isinstance(d, int) for d in dims):
        return np.array(dims, np.int32)
    out = np.empty(len(dims), object)
    out[:] = dims
    return out


def _strided_slice(op: Any, x: np.ndarray, begin: np.ndarray, end: np.ndarray, step: np.ndarray) -> np.ndarray:
    masks = {m: op.get_attr(m + "_mask") for m in ("begin", "end", "shrink_axis", "ellipsis", "new_axis")}
    if x.ndim != 1 or len(begin) != 1 or masks["ellipsis"] or masks["new_axis"]:
        raise NotLowered("slice")
    if masks["shrink_axis"]:
        return np.array(x[int(begin[0])], x.dtype)
    return x[slice(None if masks["begin"] else int(begin[0]), None if masks["end"] else int(end[0]), int(step[0]))]


def _prod(op: Any, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    if x.dtype == object or x.ndim != 1:
        raise NotLowered("a product of sizes")
    return np.array(np.prod(x), x.dtype)


def _broadcast_axes(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[list[int], list[int]]:
    """Axes along which each operand was repeated. NotLowered where that is not known."""
    rank = max(len(a), len(b))
    wide = [[1] * (rank - len(s)) + list(s) for s in (a, b)]
    axes: tuple[list[int], list[int]] = ([], [])
    for i, (x, y) in enumerate(zip(*wide)):
        if x != y and 1 not in (x, y):
            raise NotLowered("shapes are not known to broadcast")
        for mine, other, out, given in ((x, y, axes[0], a), (y, x, axes[1], b)):
            if mine == 1 and (other != 1 or i < rank - len(given)):
                out.append(i)
    return axes


def _gradient_args(op: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second = _broadcast_axes(a.tolist(), b.tolist())
    return np.array(first, np.int32), np.array(second, np.int32)


def _stitch(op: Any, *operands: np.ndarray) -> np.ndarray:
    """Pieces of a list at the places that they name; the last one counts."""
    n = len(operands) // 2
    items: dict[int, Any] = {}
    for index, data in zip(operands[:n], operands[n:]):
        items |= zip((int(i) for i in np.ravel(index)), np.ravel(data).tolist())
    return _array([items[i] for i in range(len(items))])


def _quotient(op: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of sizes: numbers, by 1, or by themselves."""
    def one(a: Dim, b: Dim) -> Dim:
        if isinstance(a, int) and isinstance(b, int) and b:
            return a // b
        if b == 1 or a == b:
            return a if b == 1 else 1
        raise NotLowered("a quotient of sizes")
    a, b = np.broadcast_arrays(x.astype(object), y.astype(object))
    return _array([one(i, k) for i, k in zip(a.ravel().tolist(), b.ravel().tolist())]).reshape(a.shape)


def _numbers(function: Any) -> Any:
    """numpy's own, on plain numbers."""
    def run(op: Any, *operands: np.ndarray) -> np.ndarray:
        if any(x.dtype == object for x in operands) or any(x.dtype.kind not in "iu" for x in operands):
            raise NotLowered("arithmetic of sizes")
        return np.asarray(function(*operands), operands[0].dtype)
    return run


FOLDED: dict[str, Any] = {
    "DynamicStitch": _stitch, "FloorDiv": _quotient, "Range": _numbers(np.arange), "Fill": _numbers(np.full),
    "Maximum": _numbers(np.maximum), "AddV2": _numbers(np.add), "Sub": _numbers(np.subtract), "Mul": _numbers(np.multiply),
    "FloorMod": _numbers(np.mod),
    "GatherV2": lambda op, x, index, axis: np.take(x, index, axis=int(axis)),
    "StridedSlice": _strided_slice, "Prod": _prod, "Pack": lambda op, *xs: _array([x.item() for x in xs]),
    "ConcatV2": lambda op, *xs: _array([d for x in xs[:-1] for d in x.tolist()]), "Identity": lambda op, x: x,
    "BroadcastGradientArgs": _gradient_args,
}


def cut(graph: Any, outputs: Sequence[str], shapes: Mapping[str, tuple[Dim, ...]], symbols: Sequence[Symbol],
        refused: Mapping[str, str]) -> Cut:
    """shapes: the fed tensors by name. refused: ops that are left whatever they are, and why."""
    reader = _Reader(graph, shapes, refused)
    reader.read()
    ops, wanted = _needed(reader, outputs, shapes)
    n = 1 + max(reader.stage.values(), default=0)
    first: list[Any] = []
    by_stage: list[list[Any]] = [[] for _ in range(n)]
    for op in graph.get_operations():
        if op.name in ops:
            (by_stage[max(reader.stage[t.name] for t in op.inputs)] if op.inputs else first).append(op)
    left = [Left(op.name, op.type, reader.reasons[op.name]) for op in graph.get_operations()
            if op.name in ops and op.inputs and op.name in reader.reasons]
    return Cut([_stage(reader, at, wanted.get(at, []), symbols) for at in range(n)], first, by_stage, left)


def _needed(reader: _Reader, outputs: Sequence[str], fed: Mapping[str, Any]) -> tuple[set[str], dict[int, list[str]]]:
    """Ops that TensorFlow runs, and which tensors each stage gives to others."""
    seen: set[str] = set()
    ops: set[str] = set()
    wanted: dict[int, list[str]] = {}
    todo = [(name, -1) for name in outputs]  # the tensor, and the stage that asks; -1: others
    while todo:
        name, asks = todo.pop()
        op = reader.graph.get_tensor_by_name(name).op
        if name in fed:
            continue
        if op.name in reader.fused:
            at = reader.stage[name]
            if asks != at and name not in wanted.setdefault(at, []):
                wanted[at].append(name)
            if name not in seen:
                seen.add(name)
                todo += [(t.name, at) for t in op.inputs if isinstance(reader.values[t.name], Val)]
        elif op.name not in ops:
            ops.add(op.name)
            todo += [(t.name, -1) for t in op.inputs]
    return ops, wanted


def _value(reader: _Reader, name: str) -> Val:
    value = reader.values[name]
    assert isinstance(value, Val)
    return value


def _stage(reader: _Reader, at: int, wanted: list[str], symbols: Sequence[Symbol]) -> Stage | None:
    """The fragment of what this stage's wanted tensors need."""
    if not wanted:
        return None
    made = {n["outputs"][0]["name"]: n for _, n in reader.nodes.get(at, [])}
    constants = {c["name"]: c for c in reader.constants.get(at, [])}
    aliases = {w: name for w in wanted if (name := _value(reader, w).name) not in made and name not in constants}
    outputs = [w for w in wanted if w not in aliases]
    todo, used = [_value(reader, w).name for w in outputs], set()
    while todo:
        name = todo.pop()
        if name not in used:
            used.add(name)
            todo += made[name]["inputs"] if name in made else []
    inputs = sorted(used - made.keys() - constants.keys())
    nodes = [(op, n) for op, n in reader.nodes.get(at, []) if n["outputs"][0]["name"] in used]
    text = json.dumps([n for _, n in nodes]) + json.dumps([_value(reader, i).shape for i in inputs])
    within = [s for s in symbols if re.search(rf"\b{s.name}\b", text)]
    sources = []
    for s in within:
        if not any(s.name in _value(reader, i).shape for i in inputs):
            inputs.append(s.tensor)  # for its size alone
        operand = next(i for i, name in enumerate(inputs) if s.name in _value(reader, name).shape)
        sources.append((operand, _value(reader, inputs[operand]).shape.index(s.name)))
    fragment = {
        "schema": "autofuse.fragment/1", "name": f"tensorflow_{at}",
        "symbols": [{"name": s.name, "min": 2, "max": 2**31 - 1, "hint": s.hint} for s in within],
        "inputs": [{"name": i, "dtype": _value(reader, i).dtype, "shape": list(_value(reader, i).shape)} for i in inputs],
        "constants": [c for name, c in constants.items() if name in used], "nodes": [n for _, n in nodes],
        "outputs": [{"value": _value(reader, w).name, "strides": _row_major(_value(reader, w).shape)} for w in outputs],
    }
    return Stage(json.dumps(fragment), inputs, outputs, [op for op, _ in nodes], sources, aliases)


def _row_major(shape: Sequence[Dim]) -> list[Dim]:
    return [product(shape[i + 1:]) for i in range(len(shape))]
