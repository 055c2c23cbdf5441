# SPDX-License-Identifier: Apache-2.0
"""What the examples share: run a function fused and eager, say whether they agree and which kernels were made."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python"))
import numpy as np
import tensorflow as tf

import autofuse.tensorflow

RTOL = 1e-6  # a few units in the last place of float32


def show(function, *shapes):
    """0 where one `autofused_…` kernel was made and its result is eager's."""
    tf.random.set_seed(0)
    args = [tf.random.normal(shape) for shape in shapes]
    fused = autofuse.tensorflow.compile(function)
    got, want = fused(*args), function(*args)
    one = len(fused.kernels) == 1 and fused.kernels[0].startswith("autofused_")
    same = bool(np.allclose(got, want, rtol=RTOL, atol=RTOL))
    print(f"kernels: {', '.join(fused.kernels) or 'none'}")
    print(f"one autofused_* kernel: {'yes' if one else 'no'}")
    print(f"equal to eager: {'yes' if same else 'no'} (largest difference {float(tf.reduce_max(tf.abs(got - want))):.3g})")
    return 0 if one and same else 1
