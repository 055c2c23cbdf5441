# SPDX-License-Identifier: Apache-2.0
"""Element types: ONNX's numbers, numpy's dtypes, the fragment's names."""
import ml_dtypes
import numpy as np
import onnx
from onnx import helper

NUMPY = {name: np.dtype(getattr(ml_dtypes if name == "bfloat16" else np, "bool_" if name == "bool" else name))
         for name in ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")}
"""A fragment's dtype as numpy has it."""


def elem_type_of(a: np.ndarray) -> int:
    """TensorProto.DataType of an array."""
    return int(onnx.TensorProto.STRING if a.dtype == object or a.dtype.kind in "US" else helper.np_dtype_to_tensor_dtype(a.dtype))


def numpy_of(elem_type: int) -> np.dtype:
    """numpy's dtype of a TensorProto.DataType."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
