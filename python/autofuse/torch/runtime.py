# SPDX-License-Identifier: Apache-2.0
"""What a compiled graph is at run time: a plan per tuple of sizes, kept."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Callable

import torch
import torch.fx

from autofuse.bundle import Bundle, KernelStep
from autofuse.errors import ShapeError

from .graph import Translation
from .plan import Plan
from .service import context

logger = logging.getLogger("autofuse.torch")
MAX_PLANS = 256


#: Graphs that are alive, for launches().
_alive: "weakref.WeakSet[Compiled]" = weakref.WeakSet()


class Compiled:
    """A graph that the server compiled. boxed() is what AOTAutograd gets: it takes a list of arguments and empties it (a boxed call)."""

    def __init__(self, gm: torch.fx.GraphModule, translation: Translation, bundle: Bundle, eager: Callable[[list[Any]], Any]) -> None:
        self.gm, self.translation, self.bundle, self._eager = gm, translation, bundle, eager
        self._sizes = [(s.arg, s.axis) for s in translation.symbols]
        self._names = [s.name for s in translation.symbols]
        self._plans: dict[tuple[int, ...], Plan | None] = {}  # None: runs eager
        self._only: Plan | None = None
        _alive.add(self)

    def _plan(self, sizes: tuple[int, ...]) -> Plan:
        bundle = self.bundle.solve(sizes) if sizes else self.bundle
        with torch.inference_mode(False):
            plan = Plan(self.translation, bundle, dict(zip(self._names, sizes)))
        if len(self._plans) >= MAX_PLANS:
            self._plans.pop(next(iter(self._plans)))
        self._plans[sizes] = plan
        if not sizes:
            self._only = plan
        return plan

    def plan(self, args: list[Any]) -> Plan | None:
        """The plan for these arguments' sizes; None where the bundle has none for them."""
        if self._only is not None:
            return self._only
        sizes = tuple(int(args[arg]) if axis < 0 else args[arg].shape[axis] for arg, axis in self._sizes)
        if sizes in self._plans:
            return self._plans[sizes]
        try:
            return self._plan(sizes)
        except ShapeError as why:
            logger.info("Fallback %s $reason: %s", sizes, why)
        except Exception:
            if context().is_strict:
                raise
            logger.warning("autofuse: a graph runs eager", exc_info=True)
        self._plans[sizes] = None
        return None

    def boxed(self) -> Callable[[list[Any]], Any]:
        """The function that AOTAutograd calls."""

        def call(args: list[Any]) -> Any:
            plan = self._only or self.plan(args)
            return self._eager(args) if plan is None else plan(args)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call


def launches() -> list[str]:
    """Names of the kernels of every compiled graph that is alive, one per launch, in no order of time: to see that there are any."""
    return [g.bundle.kernels[s.kernel].symbol for g in list(_alive) for s in g.bundle.steps if isinstance(s, KernelStep)]
