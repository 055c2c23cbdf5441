# SPDX-License-Identifier: Apache-2.0
"""What the server answered: steps, buffers, kernels, decisions; solving for sizes, and running on the host."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from autofuse._ffi import ffi, lib, text
from autofuse.errors import check, new_error
from autofuse.fragment import DTYPE_NAME

if TYPE_CHECKING:
    from autofuse.run import Run

HITS = ("compiled", "joined", "store", "memo", "hot", "pack")
BUFFER_KINDS = ("input", "output", "temp", "const")
DECISION_KINDS = ("merged", "refused", "fallback")


class Info(NamedTuple):
    """The bundle in figures. hit: "compiled", "joined", "store", "memo", "hot" (memory that the server shares), "pack"."""

    hit: str
    compile_us: int
    n_steps: int
    n_kernel_steps: int
    n_framework_steps: int
    n_nodes_fused: int
    n_kernels: int
    n_inputs: int
    n_outputs: int
    n_buffers: int
    n_decisions: int
    temp_bytes: int
    hbm_bytes: int
    bundle_bytes: int
    fragment: str
    environment: str


class TensorInfo(NamedTuple):
    """A strided view of a buffer, sizes in elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    buffer: int


class Input(NamedTuple):
    """used: False where no step reads it; then tensor is None."""

    name: str
    used: bool
    host: bool
    align: int
    tensor: TensorInfo | None


class Output(NamedTuple):
    """alias_of: the input that is updated in place, or -1. own: the caller gives memory of `bytes`; else the result lies in an input's, a
    constant's or another output's memory (tensor.buffer says where)."""

    name: str
    alias_of: int
    own: bool
    bytes: int
    tensor: TensorInfo


@dataclass(frozen=True, slots=True)
class Buffer:
    """kind: "input", "output" (of `index`), "temp" (at `offset` of the block of temp_bytes), "const" (at address `data`)."""

    kind: str
    index: int
    bytes: int
    offset: int
    data: int


class Arg(NamedTuple):
    """A pointer of a kernel: the buffer's start plus byte_offset; range: bytes that may be touched, from the pointer."""

    buffer: int
    byte_offset: int
    reads: bool
    writes: bool
    range: tuple[int, int]


@dataclass(frozen=True, slots=True)
class KernelStep:
    """Launch `kernel` with the pointers of args, in order."""

    index: int
    kernel: int
    args: tuple[Arg, ...]


@dataclass(frozen=True, slots=True)
class FrameworkStep:
    """A node left to the framework. node: its index among the nodes that were added; reason: why."""

    index: int
    node: int
    name: str
    origin: str
    op: str
    reason: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


Step = Union[KernelStep, FrameworkStep]


class Kernel(NamedTuple):
    """symbol: "autofused_…"; ops: "abs,relu,exp"; binary: what the toolchain made; tiling: by value after the pointers."""

    symbol: str
    ops: str
    toolchain: str
    binary: bytes
    source: str | None
    tiling: bytes
    block_dim: int
    ub_bytes: int
    n_nodes: int
    needs_sync_all: bool
    workspace_zeroed: bool
    workspace_bytes: int
    hbm_bytes: int
    modelled_cycles: int
    key: str


class Decision(NamedTuple):
    """Why nodes came together or not. kind: "merged", "refused", "fallback"; consumer, producer: node indices or -1."""

    kind: str
    consumer: int
    producer: int
    consumer_name: str
    producer_name: str
    rule: str
    reason: str
    step: int
    bytes_saved: int


def _tensor(t: Any) -> TensorInfo:
    return TensorInfo(DTYPE_NAME[t.dtype], tuple(t.dims[0:t.rank]), tuple(t.strides[0:t.rank]), t.offset, t.buffer)


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


class Bundle:
    """A bundle outlives its context and fragment. What one with symbols says of sizes is an example: solve() gives one for given sizes."""

    def __init__(self, handle: Any, symbols: Sequence[str] = ()) -> None:
        self.handle = ffi.gc(handle, lib().autofuse_bundle_unref)
        self.symbols = tuple(symbols)

    def _each(self, kind: str, *where: int) -> list[Any]:
        ask, found = getattr(lib(), f"autofuse_bundle_{kind}"), list[Any]()
        struct = {"step_value": "tensor", "step_arg": "arg"}.get(kind, kind)
        while True:
            one = ffi.new(f"struct autofuse_{struct}_info *")
            if not ask(self.handle, *where, len(found), one):
                return found
            found.append(one)

    @cached_property
    def info(self) -> Info:
        i = ffi.new("struct autofuse_bundle_info *")
        lib().autofuse_bundle_info(self.handle, i)
        counts = (i.n_steps, i.n_kernel_steps, i.n_framework_steps, i.n_nodes_fused, i.n_kernels, i.n_inputs, i.n_outputs, i.n_buffers,
                  i.n_decisions)
        return Info(HITS[i.hit], i.compile_us, *counts, i.temp_bytes, i.hbm_bytes, i.bundle_bytes, text(i.fragment), text(i.environment))

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return tuple(Input(text(i.name), i.used, i.host, i.align, _tensor(i.tensor) if i.used else None) for i in self._each("input"))

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(text(o.name), o.alias_of, o.own, o.bytes, _tensor(o.tensor)) for o in self._each("output"))

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(Buffer(BUFFER_KINDS[b.kind], b.index, b.bytes, b.offset, _address(b.data)) for b in self._each("buffer"))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """In the order in which they run."""
        return tuple(self._step(n, s) for n, s in enumerate(self._each("step")))

    def _step(self, n: int, s: Any) -> Step:
        if s.kind == lib().AUTOFUSE_STEP_KERNEL:
            args = (Arg(a.buffer, a.byte_offset, a.reads, a.writes, (a.range_begin, a.range_end)) for a in self._each("step_arg", n))
            return KernelStep(n, s.kernel, tuple(args))
        values = [_tensor(t) for t in self._each("step_value", n)]
        return FrameworkStep(n, s.node, text(s.name), text(s.origin), text(s.op), text(s.reason), tuple(values[:s.n_inputs]),
                             tuple(values[s.n_inputs:]))

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(
            Kernel(text(k.symbol), text(k.ops), text(k.toolchain), ffi.buffer(k.binary, k.binary_bytes)[:],
                   ffi.buffer(k.source, k.source_bytes)[:].decode() if k.source else None,
                   ffi.buffer(k.tiling, k.tiling_bytes)[:] if k.tiling else b"", k.block_dim, k.ub_bytes, k.n_nodes, k.needs_sync_all,
                   k.workspace_zeroed, k.workspace_bytes, k.hbm_bytes, k.modelled_cycles, text(k.key)) for k in self._each("kernel"))

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        return tuple(
            Decision(DECISION_KINDS[d.kind], d.consumer, d.producer, text(d.consumer_name), text(d.producer_name), text(d.rule),
                     text(d.reason), d.step, d.bytes_saved) for d in self._each("decision"))

    def solve(self, symbols: Sequence[int]) -> "Bundle":
        """The bundle for these sizes, one per symbol in the order in which they were added. What was solved lately is a look-up."""
        solved, error = ffi.new("struct autofuse_bundle **"), new_error()
        check(lib().autofuse_bundle_solve(self.handle, list(symbols) or ffi.NULL, len(symbols), solved, error), error)
        return Bundle(solved[0])

    def prepare(self, host_call: "HostCall | None" = None, threads: int = 1) -> "Run":
        """A run to be called many times. See Run."""
        from autofuse.run import Run
        return Run(self, host_call, threads)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], temp: int = 0, host_call: "HostCall | None" = None,
            threads: int = 1) -> None:
        """Runs all steps once. inputs, outputs: addresses, None where nothing is wanted, or objects with the buffer protocol, whose sizes
        are checked. temp: address of temp_bytes aligned to 512, or 0."""
        from autofuse.run import Run
        Run(self, host_call, threads).with_buffers(inputs, outputs, temp)

    def launch(self, kernel: int, args: Sequence[int], first_block: int = 0, n_blocks: int | None = None) -> None:
        """Launches blocks of one host kernel in this thread; args are its pointers."""
        error = new_error()
        pointers = ffi.new("uintptr_t[]", list(args) or 1)
        n = self.kernels[kernel].block_dim - first_block if n_blocks is None else n_blocks
        where = ffi.cast("void **", pointers)
        check(lib().autofuse_kernel_launch(self.handle, kernel, where, ffi.NULL, len(args), first_block, n, error), error)


HostCall = Callable[[FrameworkStep, list[int], list[int]], None]
"""Runs one framework node: the step, addresses of the first elements of its inputs, and of its outputs (memory to write, laid out as the
step's outputs say). What it raises arrives at the caller of the run."""
