# SPDX-License-Identifier: Apache-2.0
"""A model compiled for inputs of given shapes (and values, of those that are sizes, axes and the like)."""
import json
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from autofuse.bundle import Bundle, FrameworkStep
from autofuse.context import Context
from autofuse.onnx import reference
from autofuse.onnx._dtypes import NUMPY, elem_type_of, numpy_of
from autofuse.onnx._library import Imported, Refused, import_model
from autofuse.onnx.graph import Graph

logger = logging.getLogger("autofuse")
VIEWS = frozenset(("reshape", "squeeze", "unsqueeze", "broadcast", "expand"))
MAX_EXPANSIONS = 8  # of functions within functions


class Left(NamedTuple):
    """A node of the model that is run by onnx.reference."""

    op: str
    reason: str

    def __str__(self) -> str:
        return f"Fallback {self.op} $reason: {self.reason}"


def read(graph: Graph, feeds: Sequence[np.ndarray]) -> tuple[Graph, Imported]:
    """The fragment; where a node has no kernel: with the functions that ONNX defines by other ops expanded, then with opaque nodes."""
    try:
        return graph, import_model(graph.data, feeds)
    except Refused as e:
        refused = e
    sized = graph.with_sizes(feeds)
    try:
        found = sized, import_model(sized.data, feeds, opaque=True)
    except Refused as e:
        refused, found = e, None
    wider = _expand(graph, feeds, found, refused)
    if wider:
        return wider
    if found:
        return found
    raise refused


def _expand(graph: Graph, feeds: Sequence[np.ndarray], found: tuple[Graph, Imported] | None,
            refused: Refused) -> tuple[Graph, Imported] | None:
    """With the ops that are in the way as ONNX defines them by others; None where that does not help."""
    best = None
    for _ in range(MAX_EXPANSIONS):
        nodes = found[0].model.graph.node if found else graph.model.graph.node
        meant = [nodes[o.node] for o in found[1].opaque] if found else [n for n in nodes if refused.where in n.output]
        expandable = [f for f in dict.fromkeys((n.domain, n.op_type) for n in meant) if graph.has_function(*f)]
        if not expandable:
            return best
        try:
            graph = graph.expanded(expandable)
        except RuntimeError:  # the inliner cannot: a definition that asks for the type of an operand that is left out
            return best
        sized = graph.with_sizes(feeds)
        try:
            found = best = sized, import_model(sized.data, feeds, opaque=True)
        except Refused as e:
            refused, found = e, None
    return best


class Plan:
    """A bundle and what is needed to run it. left: nodes that onnx.reference runs. only_moves: all nodes are views, nothing is launched."""

    def __init__(self, graph: Graph, feeds: Sequence[np.ndarray], context: Context, threads: int = 1,
                 compile_options: dict[str, Any] | None = None) -> None:
        self._feeds = [(elem_type_of(a), a.shape) for a in feeds]
        graph, imported = read(graph, feeds)
        forced: dict[int, str] = {}  # nodes of which the compiler leaves a part to the framework, and why
        while True:
            bundle = context.compile(imported.fragment, **(compile_options or {}))
            parts = {imported.nodes[s.node]: s.reason for s in bundle.steps if isinstance(s, FrameworkStep) and s.op != "opaque"}
            if not parts:
                break
            if not forced:
                graph = graph.with_sizes(feeds)
            forced |= parts
            imported = import_model(graph.data, feeds, opaque=True, forced=sorted(forced))
        self._set(graph, imported, bundle, feeds, threads)
        self.left = [Left(o.op, forced.get(o.node, o.reason)) for o in imported.opaque]

    def _set(self, graph: Graph, imported: Imported, bundle: Bundle, feeds: Sequence[np.ndarray], threads: int) -> None:
        self._imported, self.bundle = imported, bundle
        self._values = [(i, feeds[i].tobytes()) for i in imported.values if i < graph.n_fed]
        self._weights = graph.weights
        opaque = {o.node for o in imported.opaque}
        nodes = graph.model.graph.node
        self._nodes = {at: reference.Node(nodes[node], graph.opsets) for at, node in enumerate(imported.nodes) if node in opaque}
        ops = {n["op"] for n in json.loads(imported.fragment)["nodes"]} if bundle.info.n_kernel_steps == 0 else {"kernel"}
        self.only_moves = ops <= VIEWS
        self.n_kernels = bundle.info.n_kernel_steps
        stated = [o.type.tensor_type.elem_type for o in graph.model.graph.output]
        self._outputs = [(o, numpy_of(e) if e else NUMPY[o.tensor.dtype]) for o, e in zip(bundle.outputs, stated)]
        self._run = bundle.prepare(self._host_call if self._nodes else None, threads)

    def suits(self, feeds: Sequence[np.ndarray]) -> bool:
        """Whether it is for inputs of these shapes, types and values."""
        return ([(elem_type_of(a), a.shape) for a in feeds] == self._feeds and
                all(feeds[i].tobytes() == value for i, value in self._values))

    def _host_call(self, step: FrameworkStep, inputs: list[int], outputs: list[int]) -> None:
        self._nodes[step.node]([reference.view(t, a) for t, a in zip(step.inputs, inputs)],
                               [reference.view(t, a) for t, a in zip(step.outputs, outputs)])

    def __call__(self, feeds: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The model's outputs, in memory of their own."""
        every = [*feeds, *self._weights]
        results, addresses = [], []
        for o, dtype in self._outputs:
            t = o.tensor
            if o.own:
                memory = np.empty(max(o.bytes, 1), np.uint8)
                strides = [s * dtype.itemsize for s in t.strides]
                result = np.ndarray(t.shape, dtype, buffer=memory, offset=t.offset * dtype.itemsize, strides=strides)
                addresses.append(memory.ctypes.data)
            else:
                result = np.empty(t.shape, dtype)
                addresses.append(result.ctypes.data)
            results.append(result)
        self._run([every[i].ctypes.data for i in self._imported.inputs], addresses)
        return tuple(results)
