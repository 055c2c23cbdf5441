#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A product summed over everything: the product is never stored."""
from common import compare
import torch


def mul_reducesum(x, y):
    return torch.sum(x * y)


compare('torch_mul_reducesum', mul_reducesum, torch.randn(256, 100), torch.randn(256, 100))
