# SPDX-License-Identifier: Apache-2.0
"""What has no kernel, by ONNX's own definition in numpy."""
import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from autofuse.bundle import TensorInfo
from autofuse.onnx._dtypes import NUMPY


class Node:
    """One node of a model, to be run on operands in memory."""

    def __init__(self, node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
        self._inputs = [i for i in node.input if i]
        self._outputs = [o for o in node.output if o]
        graph = helper.make_graph([node], "node", [helper.make_empty_tensor_value_info(i) for i in dict.fromkeys(self._inputs)],
                                  [helper.make_empty_tensor_value_info(o) for o in self._outputs])
        self._model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in opsets.items()])

    @cached_property
    def _evaluator(self) -> ReferenceEvaluator:
        """Made at the first run: it may need what is not installed."""
        return ReferenceEvaluator(self._model)

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Writes the results into outputs, whose shapes are what was inferred."""
        results = self._evaluator.run(self._outputs, dict(zip(self._inputs, inputs)))
        for name, result, place in zip(self._outputs, results, outputs):
            got = np.asarray(result)
            if got.shape != place.shape or got.dtype != place.dtype:
                raise ValueError(f"{name}: {got.dtype} of shape {got.shape}, inferred were {place.dtype} and {place.shape}")
            place[...] = got


def whole(model: onnx.ModelProto) -> ReferenceEvaluator:
    """All of a model."""
    return ReferenceEvaluator(model)


def view(t: TensorInfo, address: int) -> np.ndarray:
    """The memory of an operand as an array; no copy."""
    dtype = NUMPY[t.dtype]
    n = 0 if 0 in t.shape else 1 + sum((d - 1) * s for d, s in zip(t.shape, t.strides))
    memory: Any = (ctypes.c_char * (n * dtype.itemsize)).from_address(address) if n else b""
    return np.ndarray(t.shape, dtype, buffer=memory, strides=[s * dtype.itemsize for s in t.strides])
