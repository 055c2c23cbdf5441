#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sum compared with a third tensor: one kernel, and only its bool result is stored."""
from common import compare
import torch


def add_ge(x, y, z):
    return (x + y) >= z


compare('torch_add_ge', add_ge, torch.randn(128, 50), torch.randn(128, 50), torch.randn(128, 50))
