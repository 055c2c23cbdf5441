# SPDX-License-Identifier: Apache-2.0
"""What is written for people to look at, where TORCH_COMPILE_DEBUG=1 asks for it: torch_compile_debug/run_…/autofused_<graph>_<digest>/.

fx_graph.py is the graph as PyTorch has it; the other files are those of autofuse.debug.
"""

from __future__ import annotations

import functools
import logging
import os
from pathlib import Path

import torch.fx

from autofuse import debug
from autofuse.bundle import Bundle
from autofuse.context import Context
from autofuse.fragment import Fragment

logger = logging.getLogger("autofuse.torch")


def is_wanted() -> bool:
    """Whether TORCH_COMPILE_DEBUG asks for files."""
    return os.environ.get("TORCH_COMPILE_DEBUG") == "1"


def dump(gm: torch.fx.GraphModule, context: Context, fragment: Fragment, bundle: Bundle) -> None:
    """Writes one graph's directory; where it cannot, a warning."""
    if not is_wanted():
        return
    from torch._dynamo.utils import get_debug_dir

    try:
        source = functools.partial(context.kernel_source, bundle)
        where = debug.dump(get_debug_dir(), f"autofused_{fragment.name}", fragment.nodes, bundle, source)
        (Path(where) / "fx_graph.py").write_text(gm.print_readable(print_output=False), encoding="utf-8")
    except OSError as why:
        logger.warning("TORCH_COMPILE_DEBUG: nothing is written: %s", why)
