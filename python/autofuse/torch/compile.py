# SPDX-License-Identifier: Apache-2.0
"""From a graph to something that can be called: one request to the server per graph, and eager where there can be none."""

from __future__ import annotations

import logging
import re
import threading
from typing import Any, Callable, Mapping

import torch
import torch.fx

from autofuse.bundle import Bundle, FrameworkStep
from autofuse.errors import AutofuseError, Invalid, Unavailable
from autofuse.flags import is_enabled

from . import aten as _aten  # noqa: F401  registers the lowerings
from .debug import dump
from .graph import Translation
from .lowering import target_name
from .runtime import Compiled
from .service import context, skips_caches
from .symbols import Unsupported

logger = logging.getLogger("autofuse.torch")
MAX_ROUNDS = 6  # each leaves at least one more node to PyTorch


class _Counter:
    """Numbers graphs, for names and debug output."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n = 0

    def next(self) -> int:
        with self._lock:
            self._n += 1
            return self._n - 1


graphs = _Counter()


def eager(gm: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    """The graph as it is, by PyTorch, under the convention of boxed calls."""

    def call(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        return gm.forward(*given)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _left(translation: Translation, bundle: Bundle) -> dict[torch.fx.Node, str]:
    """Nodes of which the server left a piece to the framework: they run whole, as PyTorch's own."""
    left: dict[torch.fx.Node, str] = {}
    for step in bundle.steps:
        if isinstance(step, FrameworkStep) and step.name not in translation.opaque:
            left.setdefault(translation.b.nodes[step.node].source, step.reason)
    return left


def _refused(translation: Translation, text: str) -> dict[torch.fx.Node, str]:
    """Nodes that the library refused, with its words: a size that it cannot prove, say."""
    refused: dict[torch.fx.Node, str] = {}
    for line in text.splitlines():
        found = re.match(r'error: nodes\[(\d+)\][^:]*: (.*)', line)
        if found and translation.b.nodes[int(found[1])].op != "opaque":
            refused.setdefault(translation.b.nodes[int(found[1])].source, found[2])
    return refused


def _target(translation: Translation, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the fragment is compiled for: the options' word, else what the tensors are on."""
    if translation.device != "npu" or "toolchain" in options:
        return options
    from .npu import acl

    return {"soc": acl().soc(), "toolchain": "ccec", **options}


def _request(gm: torch.fx.GraphModule, name: str, options: Mapping[str, Any]) -> tuple[Translation, Bundle | None]:
    """Translates and compiles until the server leaves whole nodes only; no bundle where nothing is left to compile."""
    pinned: dict[torch.fx.Node, str] = {}
    in_place = True
    for _ in range(MAX_ROUNDS):
        translation = Translation(gm, pinned, in_place)
        if translation.n_kernel_nodes == 0:
            return translation, None
        try:
            fragment = translation.fragment(name, _target(translation, options))
            bundle = context().compile(fragment, bypass_memo=skips_caches())
        except Invalid as why:
            refused = _refused(translation, str(why))
            if refused:
                pinned = {**pinned, **refused}
            elif in_place and any(alias for _, _, alias in translation.outputs):
                in_place = False
            else:
                raise
            continue
        left = _left(translation, bundle)
        if not left:
            dump(gm, context(), fragment, bundle)
            return translation, bundle
        pinned = {**pinned, **left}
    raise Unsupported("the server leaves ever more nodes to the framework")


def compile_graph(gm: torch.fx.GraphModule, kind: str, options: Mapping[str, Any]) -> Callable[[list[Any]], Any]:
    """Compiles one graph of AOTAutograd. Never fails for a fault of the server, unless AUTOFUSE_STRICT=1."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    name = f"{kind}_{graphs.next()}"
    if not is_enabled():
        return eager(gm)
    strict = context().is_strict
    try:
        with unset_fake_temporarily():
            translation, bundle = _request(gm, name, options)
    except Unsupported as why:
        logger.info("Fallback %s $reason: %s", name, why)
        return eager(gm)
    except Unavailable:
        if strict:
            raise
        return eager(gm)  # the context said why, once
    except Exception as why:  # a fault of ours, or of the server's: the job goes on
        if strict:
            raise
        logger.warning("autofuse: the graph %s runs eager: %s", name, why, exc_info=not isinstance(why, AutofuseError))
        return eager(gm)
    _announce(translation)
    if bundle is None:
        return eager(gm)
    return Compiled(gm, translation, bundle, eager(gm)).boxed()


_announced: set[tuple[str, str]] = set()


def _announce(translation: Translation) -> None:
    """One line per op and reason for what stays eager."""
    for node, reason in translation.reasons.items():
        key = (target_name(node), reason)
        if key not in _announced and any(o.node is node for o in translation.opaque.values()):
            _announced.add(key)
            logger.info("Fallback %s $reason: %s", *key)
