# SPDX-License-Identifier: Apache-2.0
"""A graph with its fed tensors and outputs, compiled per pattern of sizes, with gradients."""
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.record import could_possibly_record

from autofuse.bundle import FrameworkStep
from autofuse.context import Context
from autofuse.errors import AutofuseError
from autofuse.tensorflow._op import Launch
from autofuse.tensorflow.cut import Cut, Left, Symbol, cut
from autofuse.tensorflow.lowering import Dim

logger = logging.getLogger("autofuse")
Pattern = tuple[tuple[Dim, ...], ...]


def restore(graph: Any, ops: Sequence[Any], values: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
    """TensorFlow's own ops of a graph, once more, on these values by the names of the graph's tensors."""
    definition = tf.compat.v1.GraphDef()
    whole = graph.as_graph_def()
    definition.versions.CopyFrom(whole.versions)
    definition.library.CopyFrom(whole.library)
    names = {op.name for op in ops}
    inside = {t.name for op in ops for t in op.outputs}
    given = {t.name for op in ops for t in op.inputs} - inside
    for node in whole.node:
        if node.name in names:
            copy = definition.node.add()
            copy.CopyFrom(node)
            kept = [i for i in node.input if not i.startswith("^")]  # nothing here has effects
            del copy.input[:]
            copy.input.extend(kept)
            copy.attr.pop("_class", None)  # what it was to be placed with
    given_values = {n: values[n] for n in given}
    return list(tf.graph_util.import_graph_def(definition, input_map=given_values, return_elements=list(wanted), name="tf"))


def reach(graph: Any, outputs: Sequence[str], fed: Sequence[str]) -> list[Any]:
    """Ops that outputs need, without those that only make what is fed."""
    ops: set[str] = set()
    todo = list(outputs)
    while todo:
        name = todo.pop()
        op = graph.get_tensor_by_name(name).op
        if name not in fed and op.name not in ops:
            ops.add(op.name)
            todo += [t.name for t in op.inputs]
    return [op for op in graph.get_operations() if op.name in ops]


class Plan:
    """The graph for one pattern of sizes."""

    def __init__(self, graph: Any, fed: Sequence[str], outputs: Sequence[str], shapes: Pattern, hints: Mapping[str, int],
                 context: Context) -> None:
        self.graph, self.fed, self.outputs = graph, fed, outputs
        symbols = [Symbol(name, next(f for f, s in zip(fed, shapes) if name in s), hint) for name, hint in hints.items()]
        refused: dict[str, str] = {}
        while True:
            self.cut: Cut = cut(graph, outputs, dict(zip(fed, shapes)), symbols, refused)
            bundles = [context.compile(s.fragment) if s and s.outputs else None for s in self.cut.stages]
            again: dict[str, str] = {}
            for stage, bundle in zip(self.cut.stages, bundles):
                if stage and bundle:
                    again |= {stage.ops[s.node]: s.reason for s in bundle.steps if isinstance(s, FrameworkStep)}
                    if not bundle.info.n_kernel_steps:
                        again |= {op: "it moves views alone" for op in stage.ops}
            if not again:
                break
            refused |= again
        self.bundles = [b for b in bundles if b]
        self.launches = [b and Launch(b, s.symbols, [graph.get_tensor_by_name(t).dtype for t in s.outputs]) if s else None
                         for s, b in zip(self.cut.stages, bundles)]

    @property
    def is_bare(self) -> bool:
        """Whether nothing of TensorFlow's own stands beside the kernels."""
        return not self.cut.first and not any(self.cut.ops)

    @property
    def left(self) -> list[Left]:
        """Ops that TensorFlow runs."""
        return [x for x in self.cut.left if x.op not in ("Identity", "Const")]

    @property
    def kernels(self) -> list[str]:
        """Symbols of the kernels that a run launches."""
        return [k.symbol for b in self.bundles for k in b.kernels]

    @property
    def n_runs(self) -> int:
        """Stages that were run."""
        return sum(int(launch.plan.n_runs) for launch in self.launches if launch)

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """Adds it to the graph that is being built, or runs it eagerly."""
        values = dict(zip(self.fed, tensors))
        self._ops(self.cut.first, values)
        for stage, launch, ops in zip(self.cut.stages, self.launches, self.cut.ops):
            if stage and launch:
                got = launch([values[i] for i in stage.inputs])
                for name, value in zip(stage.outputs, got):
                    if tf.inside_function():
                        value.set_shape(self.graph.get_tensor_by_name(name).shape)
                    values[name] = value
            if stage:
                values |= {name: values[other] for name, other in stage.aliases.items()}
            self._ops(ops, values)
        return [values[o] for o in self.outputs]

    def _ops(self, ops: Sequence[Any], values: dict[str, Any]) -> None:
        if ops:
            wanted = [t.name for op in ops for t in op.outputs]
            values |= dict(zip(wanted, restore(self.graph, ops, values, wanted)))


class Flat:
    """fed: the graph's tensors that a call gives, in order. threads of any number may call it."""

    def __init__(self, graph: Any, fed: Sequence[str], outputs: Sequence[str], context: Context) -> None:
        self.graph, self.fed, self.outputs, self._context = graph, list(fed), list(outputs), context
        self.plans: dict[Pattern, Any] = {}
        self._lock = threading.Lock()
        self._told: set[tuple[str, str]] = set()
        self._backward: Flat | None = None
        self._floats = [i for i, n in enumerate(self.fed) if graph.get_tensor_by_name(n).dtype.is_floating]
        self._float_outputs = [i for i, n in enumerate(self.outputs) if graph.get_tensor_by_name(n).dtype.is_floating]

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """The outputs; their gradients are compiled when they are asked for."""
        if tf.executing_eagerly() and not could_possibly_record():
            return self.run(tensors)

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def forward(*xs: Any) -> Any:
            return tuple(self.run([tf.stop_gradient(x) for x in xs])), lambda *dys: self._gradient(xs, dys)

        return list(forward(*tensors))

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Without gradients."""
        pattern, hints = self._pattern(tensors)
        with self._lock:
            found = self.plans.get(pattern)
            if found is None:
                plan = Plan(self.graph, self.fed, self.outputs, pattern, hints, self._context)
                self._tell(plan.left)
                specs = [tf.TensorSpec(self._spec(name), self.graph.get_tensor_by_name(name).dtype) for name in self.fed]
                found = self.plans[pattern] = plan, tf.function(lambda *xs: plan(xs), input_signature=specs, autograph=False)
        plan, function = found
        return plan(tensors) if plan.is_bare and tf.executing_eagerly() else list(function(*tensors))

    def _spec(self, name: str) -> Any:
        return self.graph.get_tensor_by_name(name).shape

    def _pattern(self, tensors: Sequence[Any]) -> tuple[Pattern, dict[str, int]]:
        """Sizes that the graph leaves open: 0 and 1 are what they are, others that are equal now are one symbol."""
        names: dict[int, str] = {}
        shapes = []
        for name, x in zip(self.fed, tensors):
            if not x.shape.is_fully_defined():
                raise UnknownSizes(f"{name} has sizes that are not known: {x.shape}")
            stated = self.graph.get_tensor_by_name(name).shape
            open_ = [True] * len(x.shape) if stated.rank is None else [d is None for d in stated.as_list()]
            shapes.append(tuple(names.setdefault(d, f"s{len(names)}") if is_open and d > 1 else d
                                for d, is_open in zip(x.shape.as_list(), open_)))
        return tuple(shapes), {name: size for size, name in names.items()}

    def _tell(self, left: Sequence[Left]) -> None:
        for one in left:
            if (one.op, one.reason) not in self._told:
                self._told.add((one.op, one.reason))
                logger.info("%s", one)

    def _gradient(self, xs: Sequence[Any], dys: Sequence[Any]) -> list[Any]:
        """Of the floats among xs, None for the others."""
        given = [*xs, *(dys[i] for i in self._float_outputs)]
        with self._lock:
            if self._backward is None:
                self._backward = self._differentiate()
        try:
            got = self._backward(given)
        except (UnknownSizes, AutofuseError) as e:
            if isinstance(e, AutofuseError) and self._context.is_strict:
                raise
            got = restore(self._backward.graph, reach(self._backward.graph, self._backward.outputs, self._backward.fed),
                          dict(zip(self._backward.fed, given)), self._backward.outputs)
        by_input = dict(zip(self._floats, got))
        return [by_input.get(i) for i in range(len(self.fed))]

    def _differentiate(self) -> "Flat":
        """TensorFlow's own gradients of the graph, as a graph."""
        def back(*given: Any) -> list[Any]:
            xs, dys = given[:len(self.fed)], given[len(self.fed):]
            ys = restore(self.graph, reach(self.graph, self.outputs, self.fed), dict(zip(self.fed, xs)), self.outputs)
            return list(tf.gradients([ys[i] for i in self._float_outputs], [xs[i] for i in self._floats], grad_ys=list(dys),
                                     unconnected_gradients=tf.UnconnectedGradients.ZERO))

        tensors = [self.graph.get_tensor_by_name(n) for n in (*self.fed, *(self.outputs[i] for i in self._float_outputs))]
        concrete = tf.function(back, autograph=False).get_concrete_function(*[tf.TensorSpec(t.shape, t.dtype) for t in tensors])
        return Flat(concrete.graph, [t.name for t in concrete.inputs], [t.name for t in concrete.outputs], self._context)


class UnknownSizes(Exception):
    """Within another graph that does not know the sizes."""
