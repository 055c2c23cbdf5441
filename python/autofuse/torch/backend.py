# SPDX-License-Identifier: Apache-2.0
"""The `autofuse` back end of torch.compile: AOTAutograd around compile_graph()."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import torch
import torch.fx

from .compile import compile_graph

#: What options={…} may hold: where the fragment is compiled for, and how exact it is.
OPTIONS = ("soc", "toolchain", "twin", "numerics")


class _Compiler:
    """One of AOTAutograd's three compilers, for one call of torch.compile."""

    def __init__(self, kind: str, options: Mapping[str, Any]) -> None:
        self.kind, self.options = kind, options

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(gm, self.kind, self.options)


def _checked(options: Mapping[str, Any] | None) -> dict[str, Any]:
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise ValueError(f"the autofuse back end has no option {', '.join(map(repr, unknown))}; it has {', '.join(OPTIONS)}")
    return dict(options or {})


def autofuse(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: Mapping[str, Any] | None = None
) -> Any:
    """torch.compile(model, backend="autofuse"). `mode` changes nothing: there is one way to compile."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    from .decompositions import decompositions

    chosen = _checked(options)
    run = aot_autograd(
        fw_compiler=_Compiler("forward", chosen),
        bw_compiler=_Compiler("backward", chosen),
        inference_compiler=_Compiler("inference", chosen),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    return run(gm, example_inputs)
