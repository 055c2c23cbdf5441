# SPDX-License-Identifier: Apache-2.0
"""The published samples' own spelling: torch.compile(model, backend="inductor", options={"npu_backend": "ascendc"}).

Stock PyTorch refuses that option. install() routes exactly these calls here; everything else goes to Inductor as before.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

_original: Callable[..., Any] | None = None


def _is_ours(backend: Any, options: Any) -> bool:
    return backend == "inductor" and isinstance(options, dict) and options.get("npu_backend") == "ascendc"


def install() -> None:
    """From now on torch.compile takes npu_backend="ascendc". A second call changes nothing."""
    global _original
    if _original is not None:
        return
    from .backend import autofuse

    original = torch.compile

    def compile(model: Any = None, *, backend: Any = "inductor", options: Any = None, **kwargs: Any) -> Any:
        if not _is_ours(backend, options):
            return original(model, backend=backend, options=options, **kwargs)
        rest = {k: v for k, v in options.items() if k != "npu_backend"}
        return original(model, backend=autofuse, options=rest or None, **kwargs)

    compile.__doc__, compile.__wrapped__ = original.__doc__, original  # type: ignore[attr-defined]
    _original = original
    torch.compile = compile  # type: ignore[assignment]


def uninstall() -> None:
    """Undoes install()."""
    global _original
    if _original is not None:
        torch.compile = _original  # type: ignore[assignment]
        _original = None
