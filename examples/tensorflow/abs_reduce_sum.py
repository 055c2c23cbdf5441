#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sum of |x| over each row: one kernel."""
import sys

import tensorflow as tf
from sample import show


def function(x):
    return tf.reduce_sum(tf.abs(x), axis=1)


if __name__ == "__main__":
    sys.exit(show(function, [256, 100]))
