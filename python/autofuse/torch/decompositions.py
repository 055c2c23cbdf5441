# SPDX-License-Identifier: Apache-2.0
"""What AOTAutograd takes apart before a graph reaches this back end."""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch

aten = torch.ops.aten

#: Ops that stay whole: taken apart, attention would store its scores, and gradients of gathers and slices would pass over memory often.
KEPT = (
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    aten.embedding_dense_backward.default,
    aten.slice_backward.default,
    aten.select_backward.default,
)


@functools.lru_cache(maxsize=None)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The core decompositions less those of ops that are better whole. Random ops are not among them: masks stay eager's."""
    from torch._decomp import core_aten_decompositions

    table = dict(core_aten_decompositions())
    for op in KEPT:
        table.pop(op, None)
    return table
