# SPDX-License-Identifier: Apache-2.0
"""The backend class that ONNX's own test runner, and whatever else takes an onnx.backend.base.Backend, can drive."""
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend as Base, BackendRep, Device, DeviceType

from autofuse.context import Context, default_context
from autofuse.errors import AutofuseError
from autofuse.onnx import reference
from autofuse.onnx._library import Refused
from autofuse.onnx.graph import Graph
from autofuse.onnx.plan import Left, Plan

logger = logging.getLogger("autofuse")
Inputs = Union[Sequence[Any], Mapping[str, Any], np.ndarray]


class Prepared(BackendRep):
    """A model that is compiled for the shapes that it is run with. Any thread may run it."""

    def __init__(self, model: onnx.ModelProto, context: Context | None = None, threads: int = 1) -> None:
        self.model, self._context, self._threads = model, context, threads
        self.graph = Graph.of(model)
        self._plans: list[Plan] = []
        self._lock = threading.Lock()
        self._whole: Any = None
        self._told: set[Left] = set()
        self.left: list[Left] = []
        """What the last new plan left to onnx.reference."""

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[Any, ...]:
        """inputs: one array per input in the model's order, or by name, or the only one. Without a bundle: onnx.reference."""
        given = self.in_order(inputs)
        feeds = self.arrays(given)
        try:
            if feeds is None:
                raise Refused("inputs", "dtype: a sequence, map, optional value or text")
            return self.plan(feeds)(feeds)
        except Refused as e:
            self._tell([Left(self.graph.op_of(e.where), e.reason)])
        except AutofuseError as e:
            if self.context.is_strict:
                raise
            self._tell([Left("model", str(e).split("\n")[0])])
        return self._by_reference(given)

    @property
    def context(self) -> Context:
        """Where it is compiled."""
        if self._context is None:
            self._context = default_context()
        return self._context

    def plan(self, feeds: Sequence[np.ndarray], **compile_options: Any) -> Plan:
        """What runs such inputs, compiled at the first call with their shapes. Refused where the model cannot be expressed; AutofuseError
        where it cannot be compiled. compile_options: of Context.compile()."""
        every = [*feeds, *self.graph.weights]
        for plan in self._plans:
            if plan.suits(every):
                return plan
        plan = Plan(self.graph, every, self.context, self._threads, compile_options)
        with self._lock:
            self._plans.append(plan)
        self.left = plan.left
        self._tell(plan.left)
        return plan

    def _tell(self, left: Sequence[Left]) -> None:
        for one in left:
            if one not in self._told:
                self._told.add(one)
                logger.info("%s", one)

    def in_order(self, inputs: Inputs) -> list[Any]:
        """One per input that is fed."""
        if isinstance(inputs, Mapping):
            return [inputs[name] for name in self.graph.input_names]
        return [inputs] if isinstance(inputs, np.ndarray) and self.graph.n_fed == 1 else list(inputs)

    @staticmethod
    def arrays(inputs: Sequence[Any]) -> list[np.ndarray] | None:
        """Row-major; None where one is no tensor that kernels could have."""
        if any(i is None or isinstance(i, (list, tuple, dict)) for i in inputs):
            return None
        arrays = [np.ascontiguousarray(i) if np.ndim(i) else np.array(i) for i in inputs]  # ascontiguousarray() makes a scalar a vector
        return None if any(a.dtype.kind in "OUS" for a in arrays) else arrays

    def _by_reference(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        if self._whole is None:
            self._whole = reference.whole(self.model)
        return tuple(self._whole.run(None, dict(zip(self.graph.input_names, inputs))))


class Backend(Base):
    """See onnx.backend.base.Backend. kwargs of prepare(): context (an autofuse.Context; None: the default one), threads (for kernels)."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles nothing yet: a run knows the sizes."""
        if not cls.supports_device(device):
            raise ValueError(f"device {device}: kernels run on the CPU")
        onnx.checker.check_model(model)
        return Prepared(model, kwargs.get("context"), kwargs.get("threads", 1))

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """Runs one node; opset_version among kwargs: 0 or nothing for the newest."""
        super().run_node(node, inputs, device, outputs_info, **{k: v for k, v in kwargs.items() if k == "opset_version"})
        arrays = [np.asarray(i) for i in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        names = [i for i in node.input if i]
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in zip(names, arrays)]
        outs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
        version = kwargs.get("opset_version") or onnx.defs.onnx_opset_version()
        opsets = [helper.make_opsetid("", version)] + ([helper.make_opsetid(node.domain, 1)] if node.domain else [])
        model = onnx.shape_inference.infer_shapes(helper.make_model(helper.make_graph([node], "node", ins, outs), opset_imports=opsets))
        kept = {k: v for k, v in kwargs.items() if k in ("context", "threads")}
        return Prepared(model, **kept).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU: "CPU", "CPU:0"."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the device is there; every valid model runs, what has no kernel by onnx.reference."""
        return cls.supports_device(device)


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
