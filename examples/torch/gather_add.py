#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows gathered by an index, and added to: one kernel."""
from common import compare
import torch


def gather_add(table, index, y):
    return torch.index_select(table, 0, index) + y


compare('torch_gather_add', gather_add, torch.randn(1000, 64), torch.randint(0, 1000, (256,)), torch.randn(256, 64))
