# SPDX-License-Identifier: Apache-2.0
"""The whole table of lowerings: importing this registers them.

Declared eager, and so without a lowering: index_put, scatter and scatter_add, embedding_bag, max_pool, random numbers, dropout; matrix products and
convolutions are the framework's own.
"""

from __future__ import annotations

from . import lower_activation, lower_create, lower_elementwise, lower_index, lower_norm, lower_pool, lower_reduce, lower_view
from .lowering import LOWERINGS

__all__ = ["LOWERINGS", "lower_activation", "lower_create", "lower_elementwise", "lower_index", "lower_norm", "lower_pool", "lower_reduce", "lower_view"]
