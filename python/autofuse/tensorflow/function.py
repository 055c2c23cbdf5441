# SPDX-License-Identifier: Apache-2.0
"""autofuse.tensorflow.compile."""
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from autofuse.context import Context, default_context
from autofuse.errors import AutofuseError
from autofuse.tensorflow.cut import Left
from autofuse.tensorflow.flat import Flat, UnknownSizes

logger = logging.getLogger("autofuse")
WITHOUT_EFFECT = ("ReadVariableOp", "Placeholder")


class Whole(Exception):
    """The function is TensorFlow's as a whole."""


class _Traced:
    """One concrete function. getters: what is fed beside the arguments, when it is called."""

    def __init__(self, concrete: Any, context: Context) -> None:
        self.concrete = concrete
        graph = concrete.graph
        for op in graph.get_operations():
            if op.op_def is not None and op.op_def.is_stateful and op.type not in WITHOUT_EFFECT:
                raise Whole(f"op {op.type} has effects or draws numbers")
        n = len(concrete.inputs) - len(concrete.captured_inputs)
        self.placeholders = list(concrete.inputs[:n])
        if any(p.dtype == tf.resource for p in self.placeholders):
            raise Whole("a variable as an argument")
        fed = [p.name for p in self.placeholders]
        self.getters: list[Callable[[], Any]] = []
        variables = {id(v.handle): v for v in graph.variables}
        for inside, outside in zip(concrete.inputs[n:], concrete.captured_inputs):
            if inside.dtype != tf.resource:
                fed.append(inside.name)
                self.getters.append(functools.partial(tf.identity, outside))
                continue
            for op in inside.consumers():
                if op.type != "ReadVariableOp" or id(outside) not in variables:
                    raise Whole(f"op {op.type} of a variable")
                fed.append(op.outputs[0].name)
                self.getters.append(variables[id(outside)].read_value)
        outputs = [t.name for t in concrete.outputs]
        if not outputs:
            raise Whole("there is no result")
        self.flat = Flat(graph, fed, outputs, context)

    def __call__(self, args: Sequence[Any]) -> Any:
        tensors = [a if tf.is_tensor(a) else tf.convert_to_tensor(a, p.dtype) for a, p in zip(args, self.placeholders)]
        results = iter(self.flat([*tensors, *(get() for get in self.getters)]))
        structure = self.concrete.structured_outputs
        leaves = [None if leaf is None else next(results) for leaf in tf.nest.flatten(structure)]
        return tf.nest.pack_sequence_as(structure, leaves)


class Compiled:
    """A function of tensors. Where it cannot be compiled TensorFlow runs it, told once as `Fallback …` by the logger "autofuse"."""

    def __init__(self, function: Callable[..., Any], input_signature: Any = None, context: Context | None = None) -> None:
        functools.update_wrapper(self, getattr(function, "python_function", function))
        self._function = function if hasattr(function, "get_concrete_function") else tf.function(function, input_signature=input_signature)
        self._context = context
        self._traced: dict[int, _Traced | Any] = {}
        self._by_types: dict[Any, Any] = {}
        self._told: set[str] = set()

    @property
    def context(self) -> Context:
        """Where it is compiled."""
        if self._context is None:
            self._context = default_context()
        return self._context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        plain = not kwargs and all(isinstance(a, tf.Tensor) and a.shape.rank is not None for a in args)
        key = tuple((a.dtype, tuple(a.shape)) for a in args) if plain else None
        traced = self._by_types.get(key) if plain else None
        if traced is None:
            traced = self._trace(args, kwargs)
            if plain:
                self._by_types[key] = traced
        return self._run(traced, args, kwargs)

    def _trace(self, args: Any, kwargs: Any) -> Any:
        """What runs such arguments: a _Traced, or the concrete function where it is TensorFlow's as a whole."""
        concrete = self._function.get_concrete_function(*args, **kwargs)
        traced = self._traced.get(id(concrete))
        if traced is None:
            try:
                traced = _Traced(concrete, self.context)
            except Whole as e:
                self._tell(str(e))
                traced = concrete
            self._traced[id(concrete)] = traced
        return traced

    def _run(self, traced: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(traced, _Traced):
            given = [a for a in tf.nest.flatten((args, kwargs)) if tf.is_tensor(a) or isinstance(a, (np.ndarray, np.generic))]
            try:
                if len(given) != len(traced.placeholders):
                    raise Whole("arguments that are neither tensors nor constants")
                return traced(given)
            except (Whole, UnknownSizes) as e:
                self._tell(str(e))
            except AutofuseError as e:
                if self.context.is_strict:
                    raise
                self._tell(str(e).split("\n")[0])
        return self._function(*args, **kwargs)

    def _tell(self, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            logger.info("Fallback %s $reason: %s", getattr(self, "__name__", "function"), reason)

    def _plans(self) -> list[Any]:
        flats = [t.flat for t in self._traced.values() if isinstance(t, _Traced)]
        return [p for f in flats for p, _ in list(f.plans.values())]

    @property
    def kernels(self) -> list[str]:
        """Symbols of the kernels that were made for it, gradients aside: `autofused_…`."""
        return [k for p in self._plans() for k in p.kernels]

    @property
    def left(self) -> list[Left]:
        """Ops that stayed TensorFlow's, gradients aside."""
        return [x for p in self._plans() for x in p.left]


def compile(function: Callable[..., Any] | None = None, *, input_signature: Any = None, context: Context | None = None) -> Any:
    """A function (or tf.function) whose fused parts are autofused's kernels; also a decorator. input_signature: as tf.function's; a size of
    None in it is a symbol, so that one compile serves all sizes. context: None: the default one."""
    if function is None:
        return functools.partial(compile, input_signature=input_signature, context=context)
    return Compiled(function, input_signature, context)
