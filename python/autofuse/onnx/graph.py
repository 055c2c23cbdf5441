# SPDX-License-Identifier: Apache-2.0
"""A model as the importer takes it: functions inlined, large initializers fed as inputs, sizes filled in where types are asked for."""
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import onnx
from onnx import defs, helper, inliner, numpy_helper, shape_inference

from autofuse.onnx._dtypes import elem_type_of

CONSTANT_BYTES = 4096
"""Initializers and constants beyond that are fed at each run, so that a bundle's key does not hold them."""


class Graph:
    """model: with every weight fed. n_fed: how many inputs the caller gives; after them come `weights`."""

    def __init__(self, model: onnx.ModelProto, n_fed: int, weights: Sequence[np.ndarray]) -> None:
        self.model, self.n_fed, self.weights = model, n_fed, list(weights)

    @classmethod
    def of(cls, model: onnx.ModelProto) -> "Graph":
        """From a model as it was loaded, which stays as it is. Its own functions are inlined."""
        if model.functions:
            model = inliner.inline_local_functions(model)
        initial = {i.name for i in model.graph.initializer}
        large = [(i.name, i) for i in model.graph.initializer if _is_large(i)]
        large += [(n.output[0], a.t) for n in model.graph.node if n.op_type == "Constant" for a in n.attribute
                  if a.name == "value" and _is_large(a.t)]
        own = onnx.ModelProto()
        own.CopyFrom(_without_weights(model, {name for name, _ in large}))
        own.ir_version = max(model.ir_version, 4)  # before, initializers are inputs too, and types follow from these alone
        fed = [i for i in model.graph.input if i.name not in initial]
        del own.graph.input[:]
        own.graph.input.extend(fed)
        own.graph.input.extend(helper.make_tensor_value_info(name, t.data_type, list(t.dims)) for name, t in large)
        return cls(own, len(fed), [np.ascontiguousarray(numpy_helper.to_array(t)) for _, t in large])

    @cached_property
    def data(self) -> bytes:
        """The serialised model."""
        return bytes(self.model.SerializeToString())

    @cached_property
    def input_names(self) -> list[str]:
        """What the caller feeds, in order."""
        return [i.name for i in self.model.graph.input[:self.n_fed]]

    @cached_property
    def opsets(self) -> dict[str, int]:
        """Version per domain."""
        return {o.domain: o.version for o in self.model.opset_import}

    def with_sizes(self, feeds: Sequence[np.ndarray]) -> "Graph":
        """The same with the sizes of these inputs (the weights included), and the types of all values that follow from them."""
        sized = onnx.ModelProto()
        sized.CopyFrom(self.model)
        for value, a in zip(sized.graph.input, feeds):
            value.CopyFrom(helper.make_tensor_value_info(value.name, elem_type_of(a), list(a.shape)))
        del sized.graph.value_info[:]
        for o in sized.graph.output:  # a size that the model states by name, or not at all, follows from the inputs'
            t = o.type.tensor_type
            if o.type.HasField("tensor_type") and not all(d.HasField("dim_value") for d in t.shape.dim):
                t.ClearField("shape")
        return Graph(shape_inference.infer_shapes(sized, data_prop=True), self.n_fed, self.weights)

    def op_of(self, value: str) -> str:
        """The op whose result this is; "model" where no node has it."""
        return next((n.op_type for n in self.model.graph.node if value in n.output), "model")

    def has_function(self, domain: str, name: str) -> bool:
        """Whether ONNX defines the op by others."""
        try:
            schema = defs.get_schema(name, self.opsets.get(domain, 1), domain)
        except defs.SchemaError:
            return False
        return bool(schema.has_function or schema.has_context_dependent_function)

    def expanded(self, ops: Sequence[tuple[str, str]]) -> "Graph":
        """The same with these ops (domain, name) as ONNX defines them by others. RuntimeError where the inliner cannot."""
        return Graph(inliner.inline_selected_functions(self.model, list(ops), inline_schema_functions=True), self.n_fed, self.weights)


def _is_large(t: onnx.TensorProto) -> bool:
    if t.data_type == onnx.TensorProto.STRING:
        return False
    return int(np.prod(t.dims, dtype=np.int64)) * np.dtype(helper.tensor_dtype_to_np_dtype(t.data_type)).itemsize > CONSTANT_BYTES


def _without_weights(model: onnx.ModelProto, names: set[str]) -> onnx.ModelProto:
    """A model without these initializers and constants, whose bytes are not copied on the way."""
    if not names:
        return model
    slim = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, producer_name=model.producer_name)
    g = model.graph
    slim.graph.CopyFrom(onnx.GraphProto(name=g.name, input=g.input, output=g.output, value_info=g.value_info))
    slim.graph.node.extend(n for n in g.node if n.op_type != "Constant" or n.output[0] not in names)
    slim.graph.initializer.extend(i for i in g.initializer if i.name not in names)
    return slim
