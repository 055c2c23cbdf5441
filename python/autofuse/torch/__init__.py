# SPDX-License-Identifier: Apache-2.0
"""The PyTorch front end: `torch.compile(model, backend="autofuse")`, found by its entry point; nothing is to be imported for it."""

from __future__ import annotations

from .backend import autofuse
from .install import install, uninstall
from .runtime import launches

__all__ = ["autofuse", "install", "launches", "uninstall"]
