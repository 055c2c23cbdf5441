#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""relu(|x| + b), where b is one row: one kernel."""
import sys

import tensorflow as tf
from sample import show


def function(x, b):
    return tf.nn.relu(tf.abs(x) + b)


if __name__ == "__main__":
    sys.exit(show(function, [256, 100], [1, 100]))
