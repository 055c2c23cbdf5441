# SPDX-License-Identifier: Apache-2.0
"""The connection that the PyTorch front end uses."""

from __future__ import annotations

import logging
import os
import threading

from autofuse.context import Context

logger = logging.getLogger("autofuse")
_OPAQUE = "no template for op class opaque"  # what the server says of nodes that were sent as PyTorch's own: compile.py knows better why


def _log(level: int, line: str) -> None:
    if not line.endswith(_OPAQUE):
        logger.log(level, line)


_lock = threading.Lock()
_context: Context | None = None


def context() -> Context:
    """This process's own, opened at the first call; starts a server of this user's where none answers."""
    global _context
    if _context is None:
        with _lock:
            if _context is None:
                _context = Context(log=_log, autostart=True, client_name="torch")
    return _context


def skips_caches() -> bool:
    """TORCHINDUCTOR_FORCE_DISABLE_CACHES=1: the process keeps no answers of its own (the server's store is not the process's)."""
    return os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") == "1"


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
