# SPDX-License-Identifier: Apache-2.0
"""What is written for people to look at, where TORCH_COMPILE_DEBUG=1 asks for it: torch_compile_debug/run_…/autofused_<graph>/."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch.fx

from autofuse.bundle import Bundle, FrameworkStep

if TYPE_CHECKING:
    from .graph import Translation


def directory(name: str) -> Path | None:
    """Where files of one graph go; None where nobody asked."""
    if os.environ.get("TORCH_COMPILE_DEBUG") != "1":
        return None
    from torch._dynamo.utils import get_debug_dir

    path = Path(get_debug_dir()) / f"autofused_{name}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def nodes_text(translation: "Translation") -> str:
    """The canonical nodes, one a line."""
    lines = [f"symbol {s.name} in [{s.low}, {s.high}]" for s in translation.symbols]
    lines += [f"input {name}: {dtype}{list(shape)} strides {list(strides)}" for name, dtype, shape, strides, _ in translation.specs]
    for e in translation.b.nodes:
        results = ", ".join(f"{o[0]}: {o[1]}{list(o[2])}" for o in e.outputs)
        attrs = "".join(f", {k}={v}" for k, v in e.attrs.items())
        lines.append(f"{results} = {e.op}({', '.join(e.inputs)}{attrs})  # {e.origin}")
    lines += [f"output {value}" + (f" in the place of {alias}" if alias else "") for value, _, alias in translation.outputs]
    return "\n".join(lines) + "\n"


def steps_text(bundle: Bundle) -> str:
    """What runs, in order."""
    lines = []
    for step in bundle.steps:
        if isinstance(step, FrameworkStep):
            lines.append(f"framework {step.origin}: {step.reason}")
        else:
            k = bundle.kernels[step.kernel]
            lines.append(f"kernel {k.symbol}: {k.ops}; {k.block_dim} blocks, {k.hbm_bytes} bytes")
    return "\n".join(lines) + "\n"


def dump(gm: torch.fx.GraphModule, name: str, translation: "Translation", bundle: Bundle | None) -> None:
    """Writes the graph as PyTorch has it, as the fragment has it, and the steps."""
    where = directory(name)
    if where is None:
        return
    (where / "fx_graph.py").write_text(gm.print_readable(print_output=False))
    (where / "fragment.txt").write_text(nodes_text(translation))
    if bundle is not None:
        (where / "steps.txt").write_text(steps_text(bundle))
        for k in bundle.kernels:
            if k.source:
                (where / f"{k.symbol}.asc").write_text(k.source)
