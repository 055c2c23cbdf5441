# SPDX-License-Identifier: Apache-2.0
"""ONNX models through autofused, as a backend of ONNX's own kind (onnx.backend.base).

    import onnx, autofuse.onnx
    prepared = autofuse.onnx.prepare(onnx.load("model.onnx"))
    outputs = prepared.run([x])

Sizes are those of the inputs of a run: each new set of shapes is compiled once. Nodes without kernels are run by onnx.reference, and told
once as `Fallback <op> $reason: …` by the logger "autofuse".
"""
from autofuse.onnx._library import Refused
from autofuse.onnx.backend import Backend, Prepared, is_compatible, prepare, run_model, run_node, supports_device
from autofuse.onnx.plan import Left, Plan, read

__all__ = ["Backend", "Left", "Plan", "Prepared", "Refused", "is_compatible", "prepare", "read", "run_model", "run_node", "supports_device"]
