#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exp(relu(abs(x))): one kernel."""
import sys

import tensorflow as tf
from sample import show


def function(x):
    return tf.exp(tf.nn.relu(tf.abs(x)))


if __name__ == "__main__":
    sys.exit(show(function, [64, 1024]))
