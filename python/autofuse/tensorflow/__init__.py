# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 2 functions through autofused.

    import tensorflow as tf, autofuse.tensorflow

    @autofuse.tensorflow.compile(input_signature=[tf.TensorSpec([None, 1024])])
    def f(x):
        return tf.exp(tf.nn.relu(tf.abs(x)))
"""
from autofuse.tensorflow.cut import Left
from autofuse.tensorflow.function import Compiled, compile

__all__ = ["Compiled", "Left", "compile"]
