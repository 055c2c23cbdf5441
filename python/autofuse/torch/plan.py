# SPDX-License-Identifier: Apache-2.0
"""A bundle for known sizes, made ready to be called often: where each buffer comes from, and what happens step by step.

Buffers that the caller's tensors, fresh outputs or results of PyTorch's own nodes lie in are *held* (a tensor per buffer); the others are
pieces of the thread's temporary block. Kernel steps that follow each other run by one call into the library.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping

import torch

from autofuse._ffi import ffi, lib
from autofuse.bundle import Bundle, FrameworkStep, TensorInfo
from autofuse.errors import new_error, raise_error

from . import symbols, temp
from .graph import Operand, Result, Translation
from .lowering import DTYPES
from .npu import run_on_current_stream
from .views import Layout, fold, look_through
from .opaque import Call, Getter, build_call

empty_strided = torch.empty_strided


@dataclasses.dataclass(frozen=True)
class Output:
    """Memory that a call allocates for a kernel to write."""

    buffer: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class State:
    """What one call at a time uses: pointers of all buffers, and views of the temporary block."""

    def __init__(self, plan: "Plan") -> None:
        self.bases = ffi.new("uintptr_t[]", plan.n_buffers or 1)
        self.pointers = ffi.cast("void **", self.bases)
        self.error = new_error()
        self.run = ffi.new("struct autofuse_run *")
        self.run.size = ffi.sizeof("struct autofuse_run")
        self.threads = 0
        self.block: temp.Block | None = None
        self.temps: list[torch.Tensor] = []
        for buffer, address in plan.consts:
            self.bases[buffer] = address

    def use_block(self, plan: "Plan", block: temp.Block) -> None:
        """Points temporaries into a block."""
        self.block = block
        for buffer, offset in plan.temp_buffers:
            self.bases[buffer] = block.address + offset
        with torch.inference_mode(False):
            self.temps = [block.view(*view) for view in plan.temp_views]

    def use_threads(self, n: int) -> None:
        """Lets kernels run on n threads."""
        from autofuse.pool import executor

        pool = executor(n)
        self.threads = n
        self.run.n_workers = n
        if pool is None:
            self.run.executor, self.run.userdata = ffi.NULL, ffi.NULL
        else:
            self.run.executor, self.run.userdata = pool.function, pool.handle


class Plan:
    """One bundle for one tuple of sizes."""

    def __init__(self, translation: Translation, bundle: Bundle, values: Mapping[str, int]) -> None:
        self.bundle, self.values, self.translation = bundle, values, translation
        self.device = translation.device or "cpu"
        info = bundle.info
        self.n_buffers, self.temp_bytes = info.n_buffers, info.temp_bytes
        buffers = bundle.buffers
        self.consts = [(i, b.data) for i, b in enumerate(buffers) if b.kind == "const"]
        self.temp_buffers = [(i, b.offset) for i, b in enumerate(buffers) if b.kind == "temp" and b.bytes]
        self.temp_views: list[tuple[int, torch.dtype, tuple[int, ...], tuple[int, ...], int]] = []
        self.held_layouts: dict[int, Layout] = {}
        self.held_temps: set[int] = set()  # temporaries that a framework node's result stands in for
        self.feeds: list[tuple[int, int]] = []  # buffer, argument
        self.fixed: list[tuple[int, torch.Tensor]] = []  # buffer, tensor known now
        self.outputs: list[Output] = []
        self.states: list[State] = []
        self._run_kernels = lib().autofuse_bundle_run_kernels
        self._by_node = {i: e for i, e in enumerate(translation.b.nodes)}
        self._feed()
        self.steps = self._steps()
        self.finals = [self._final(r) for r in translation.results]
        self.updates = [u for u in (self._update(i) for i in range(len(translation.mutations))) if u is not None]
        self._last_uses()

    # ---- preparing ----

    def _feed(self) -> None:
        for spec, given in zip(self.bundle.inputs, self.translation.all_inputs()):
            if not spec.used or spec.tensor is None:
                continue
            t = spec.tensor
            self.held_layouts[t.buffer] = Layout(t.shape, t.strides, t.offset)
            if given.arg >= 0:
                self.feeds.append((t.buffer, given.arg))
            elif given.tensor is not None:
                self.fixed.append((t.buffer, given.tensor))
            else:
                number = torch.tensor(symbols.evaluate(given.size, self.values), dtype=given.dtype)
                self.fixed.append((t.buffer, number.to(self.device)))

    def _steps(self) -> list[Any]:
        steps: list[Any] = []
        first = n = 0
        self._allocate_for_kernels()
        for step in self.bundle.steps:
            if isinstance(step, FrameworkStep):
                if n:
                    steps.append((first, n))
                steps.append(self._framework(step))
                n = 0
            else:
                first = first if n else step.index
                n += 1
        if n:
            steps.append((first, n))
        return steps

    def _allocate_for_kernels(self) -> None:
        """Outputs that kernels write are allocated before the first step; results of framework nodes are used as they come."""
        made = {t.buffer for s in self.bundle.steps if isinstance(s, FrameworkStep) for t in s.outputs}
        for out in self.bundle.outputs:
            t = out.tensor
            if not out.own or self.bundle.buffers[t.buffer].kind != "output":
                continue
            self.held_layouts[t.buffer] = Layout(t.shape, t.strides)
            if t.buffer not in made:
                self.outputs.append(Output(t.buffer, t.shape, t.strides, DTYPES[t.dtype]))

    def _framework(self, step: FrameworkStep) -> Call:
        opaque = self.translation.opaque[step.name]
        getters = {place: self._operand(operand, step.inputs[operand.value]) for place, operand in opaque.places.items()}
        return build_call(self, opaque, step, getters)

    def temp_view(self, t: TensorInfo, layout: Layout | None = None) -> int:
        """A view of the temporary block among those of each state."""
        layout = layout or Layout(t.shape, t.strides)
        b = self.bundle.buffers[t.buffer]
        self.temp_views.append((b.offset, DTYPES[t.dtype], layout.size, layout.stride, b.bytes))
        if layout.offset:
            self.temp_views[-1] = (b.offset + layout.offset * DTYPES[t.dtype].itemsize, *self.temp_views[-1][1:4],
                                   b.bytes - layout.offset * DTYPES[t.dtype].itemsize)
        return len(self.temp_views) - 1

    def _operand(self, operand: Operand, t: TensorInfo) -> Getter:
        """How an operand of a framework node is had: a tensor that is held, or a view of the temporary block, through its views."""
        meta = operand.node.meta["val"]
        kind = self.bundle.buffers[t.buffer].kind
        look = look_through(operand.links, self.values) if operand.links else None
        if kind == "const":
            constant = self._constant(operand, t)
            fixed = look(constant) if look else constant
            return lambda held, temps: fixed
        plain = meta.dtype == DTYPES[t.dtype]
        layout = Layout(t.shape, t.strides, t.offset)
        exact = self._exact(operand, meta) if operand.exact and plain else None
        if not plain or exact is not None or any(link.node.target is torch.ops.aten.as_strided.default for link in operand.links):
            return self._moved(t, layout if plain else None, exact, look)
        shown = fold(layout, meta.dtype, look) if look else layout
        if shown is None:
            return self._moved(t, layout, None, look)
        if kind == "temp" and t.buffer not in self.held_temps:
            index = self.temp_view(t, shown)
            return lambda held, temps: temps[index]
        return self._held(t.buffer, shown)

    def _constant(self, operand: Operand, t: TensorInfo) -> torch.Tensor:
        known = self.translation.known.get(operand.node)
        if known is not None:
            return known
        value = self.translation.b.values[operand.node]
        for (dtype, shape, data), constant in self.translation.b.constants.items():
            if constant == value:
                flat = torch.frombuffer(bytearray(data), dtype=DTYPES[dtype]) if data else torch.empty(0, dtype=DTYPES[dtype])
                return flat.reshape([int(s) for s in shape])
        address, n = self.bundle.buffers[t.buffer].data, self.bundle.buffers[t.buffer].bytes
        flat = torch.frombuffer(bytearray(ffi.buffer(ffi.cast("char *", address), n)[:]), dtype=DTYPES[t.dtype])
        return flat.as_strided(t.shape, t.strides, t.offset).clone()

    def _exact(self, operand: Operand, meta: torch.Tensor) -> Layout | None:
        """Strides that a node minds, where the memory does not have them."""
        size, stride = self._size(meta)
        return Layout(size, stride)

    def _size(self, meta: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        each = lambda dims: tuple(symbols.evaluate(symbols.dim(d), self.values) for d in dims)  # noqa: E731
        return each(meta.shape), each(meta.stride())

    def _held(self, buffer: int, shown: Layout) -> Getter:
        if self.held_layouts.get(buffer) == shown:
            return lambda held, temps: held[buffer]
        size, stride, offset = shown.size, shown.stride, shown.offset

        def get(held: list[Any], temps: list[torch.Tensor]) -> torch.Tensor:
            t = held[buffer]
            return t.as_strided(size, stride, t.storage_offset() + offset)

        return get

    def _moved(self, t: TensorInfo, layout: Layout | None, exact: Layout | None, look: Any) -> Getter:
        """The general way: the tensor, then a copy with exact strides where they are minded, then its views."""
        if layout is None:
            base: Getter = lambda held, temps: held[t.buffer]  # noqa: E731
        elif self.bundle.buffers[t.buffer].kind == "temp" and t.buffer not in self.held_temps:
            index = self.temp_view(t, layout)
            base = lambda held, temps: temps[index]  # noqa: E731
        else:
            base = self._held(t.buffer, layout)

        def get(held: list[Any], temps: list[torch.Tensor]) -> torch.Tensor:
            found = base(held, temps)
            if exact is not None and tuple(found.stride()) != exact.stride:
                found = empty_strided(exact.size, exact.stride, dtype=found.dtype, device=found.device).copy_(found)
            return look(found) if look else found

        return get

    # ---- results ----

    def _final(self, r: Result) -> Callable[[list[Any], list[Any], State], Any]:
        if r.kind == "none":
            return lambda held, args, state: None
        if r.kind == "number":
            number = symbols.evaluate(r.number, self.values) if isinstance(r.number, str) else r.number
            return lambda held, args, state: number
        look = look_through(r.links, self.values) if r.links else None
        if r.kind == "arg":
            index = r.index
            return lambda held, args, state: look(args[index]) if look else args[index]
        if r.kind == "tensor":
            known = r.tensor
            assert known is not None
            return lambda held, args, state: look(known) if look else known
        return self._final_output(r, look)

    def _final_output(self, r: Result, look: Any) -> Callable[[list[Any], list[Any], State], Any]:
        out = self.bundle.outputs[r.index]
        assert r.node is not None
        meta = r.node.meta["val"]
        if out.own:
            buffer = out.tensor.buffer
            layout = self.held_layouts.get(buffer)
            if look is None:
                return lambda held, args, state: held[buffer]
            shown = fold(layout, meta.dtype, look) if layout is not None and DTYPES[out.tensor.dtype] == meta.dtype else None
            if shown is None:
                return lambda held, args, state: look(held[buffer])
            get = self._held(buffer, shown)
            return lambda held, args, state: get(held, state.temps)
        size, stride = self._size(meta)
        get = self._source(out.tensor)
        dtype, device = meta.dtype, self.device

        def copied(held: list[Any], args: list[Any], state: State) -> torch.Tensor:
            fresh = empty_strided(size, stride, dtype=dtype, device=device).copy_(get(held, state.temps))
            return look(fresh) if look else fresh

        return copied

    def _source(self, t: TensorInfo) -> Getter:
        layout = Layout(t.shape, t.strides, t.offset)
        kind = self.bundle.buffers[t.buffer].kind
        if kind == "const":
            address, n = self.bundle.buffers[t.buffer].data, self.bundle.buffers[t.buffer].bytes
            flat = torch.frombuffer(bytearray(ffi.buffer(ffi.cast("char *", address), n)[:]), dtype=DTYPES[t.dtype])
            constant = flat.as_strided(t.shape, t.strides, t.offset)
            return lambda held, temps: constant
        if kind == "temp" and t.buffer not in self.held_temps:
            index = self.temp_view(t, layout)
            return lambda held, temps: temps[index]
        return self._held(t.buffer, layout)

    def _update(self, i: int) -> Callable[[list[Any], list[Any], State], None] | None:
        """Copies to an argument what it is updated with, unless a kernel wrote it there."""
        mutation = self.translation.mutations[i]
        r = mutation.result
        if r.kind == "output":
            out = self.bundle.outputs[r.index]
            if out.alias_of >= 0 and self.bundle.buffers[out.tensor.buffer].kind == "input":
                own = self.bundle.inputs[out.alias_of].tensor
                if own is not None and own.buffer == out.tensor.buffer:
                    return None
        get, arg = self._final(r), mutation.arg

        def copy(held: list[Any], args: list[Any], state: State) -> None:
            args[arg].copy_(get(held, args, state))

        return copy

    def _last_uses(self) -> None:
        """Which arguments are let go after which step: those that nothing later shows."""
        needed = {r.index for r in self.translation.results if r.kind == "arg"} | {m.arg for m in self.translation.mutations}
        needed |= {m.result.index for m in self.translation.mutations if m.result.kind == "arg"}
        self.kept_args = sorted(needed)
        last: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            for buffer in self._buffers_of(step):
                last[buffer] = i
        shown = {self.bundle.outputs[r.index].tensor.buffer for r in self.translation.results if r.kind == "output"}
        shown |= {self.bundle.outputs[m.result.index].tensor.buffer for m in self.translation.mutations if m.result.kind == "output"}
        freed: list[list[int]] = [[] for _ in self.steps]
        for buffer, i in last.items():
            if buffer in self.held_layouts and buffer not in shown:
                freed[i].append(buffer)
        self.freed = freed

    def _buffers_of(self, step: Any) -> list[int]:
        if isinstance(step, Call):
            return list(step.buffers)
        first, n = step
        return [a.buffer for s in self.bundle.steps[first : first + n] for a in s.args]  # type: ignore[union-attr]

    # ---- running ----

    def __call__(self, args: list[Any]) -> list[Any]:
        """One call; empties the list of arguments."""
        states = self.states
        state = states.pop() if states else State(self)
        block = temp.take(self.temp_bytes, self.device) if self.temp_bytes else None
        try:
            if block is not None and state.block is not block:
                state.use_block(self, block)
            threads = torch.get_num_threads()
            if state.threads != threads:
                state.use_threads(threads)
            return self._run(args, state)
        finally:
            if block is not None:
                temp.put(block)
            states.append(state)

    def _run(self, args: list[Any], state: State) -> list[Any]:
        bases, on_host = state.bases, self.device == "cpu"
        held: list[Any] = [None] * self.n_buffers
        for buffer, arg in self.feeds:
            t = args[arg]
            if not on_host and t.device.type == "cpu":  # a scalar that changes per call
                t = t.to(self.device)
            held[buffer] = t
            bases[buffer] = t.data_ptr()
        for buffer, t in self.fixed:
            held[buffer] = t
            bases[buffer] = t.data_ptr()
        kept: list[Any] = [None] * len(args)
        for i in self.kept_args:
            kept[i] = args[i]
        args.clear()
        for out in self.outputs:
            t = empty_strided(out.size, out.stride, dtype=out.dtype, device=self.device)
            held[out.buffer] = t
            bases[out.buffer] = t.data_ptr()
        handle, pointers, run, error = self.bundle.handle, state.pointers, state.run, state.error
        for step, freed in zip(self.steps, self.freed):
            if step.__class__ is tuple and not on_host:
                run_on_current_stream(self.bundle, step[0], step[1], bases)
            elif step.__class__ is tuple:
                status = self._run_kernels(handle, step[0], step[1], pointers, run, error)
                if status:
                    raise_error(status, error)
            else:
                step(held, state)
            for buffer in freed:
                held[buffer] = None
        results = [final(held, kept, state) for final in self.finals]
        for update in self.updates:  # last: what is returned may be a copy of elements from before
            update(held, kept, state)
        return results
