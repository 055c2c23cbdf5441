# SPDX-License-Identifier: Apache-2.0
"""A prepared run of a host bundle: everything that does not change between calls is made once."""
import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from autofuse._ffi import ffi, lib
from autofuse.bundle import Bundle, FrameworkStep, HostCall
from autofuse.errors import ShapeError, new_error, raise_error
from autofuse.pool import executor

UNCHECKED = 2**64 - 1
TEMP_ALIGN = 512
_local = threading.local()


class _Block:
    """Aligned memory."""

    def __init__(self, n_bytes: int) -> None:
        self.memory = _allocate("char[]", n_bytes + TEMP_ALIGN)
        start = int(ffi.cast("uintptr_t", self.memory))
        self.address = -(-start // TEMP_ALIGN) * TEMP_ALIGN
        self.bytes = n_bytes


_allocate = ffi.new_allocator(should_clear_after_alloc=False)


def _take(n_bytes: int) -> _Block:
    """A block of this thread, large enough. A run inside another's host_call takes another."""
    blocks: list[_Block] = _local.__dict__.setdefault("blocks", [])
    block = blocks.pop() if blocks else None
    if block is None or block.bytes < n_bytes:
        block = None  # freed before a larger one is asked for
        block = _Block(n_bytes)
    return block


def _put(block: _Block) -> None:
    _local.blocks.append(block)


def release_temp() -> None:
    """Frees the temporary memory that this thread keeps between runs: the largest that a bundle needed."""
    _local.__dict__.pop("blocks", None)


class Run:
    """Call it with addresses: run(inputs, outputs). Per input of the fragment the pointer that its offset counts from (0 where it is not
    used), per output memory of `bytes` where `own`, for others 0, or memory that gets a row-major copy. Nothing checks that the memory is
    large enough: that is with_buffers(). Kernels run outside the interpreter's lock. Any thread may call it, also at once."""

    def __init__(self, bundle: Bundle, host_call: HostCall | None = None, threads: int = 1) -> None:
        self.bundle, self._host_call, self._threads = bundle, host_call, threads
        info = bundle.info
        self._n_inputs, self._n_outputs, self._temp_bytes = info.n_inputs, info.n_outputs, info.temp_bytes
        self._in = ffi.new("uintptr_t[]", info.n_inputs or 1)
        self._out = ffi.new("uintptr_t[]", info.n_outputs or 1)
        self._error = new_error()
        self._busy = threading.Lock()
        _runs.add(self)
        self._raised: BaseException | None = None
        self._framework = {s.node: s for s in bundle.steps if isinstance(s, FrameworkStep)} if info.n_framework_steps and host_call else {}
        self._run = ffi.new("struct autofuse_run *")
        self._run.size = ffi.sizeof("struct autofuse_run")
        self._run.inputs = ffi.cast("void **", self._in)
        self._run.outputs = ffi.cast("void **", self._out)
        self._pool = executor(threads)
        if self._pool is not None:
            self._run.executor, self._run.userdata, self._run.n_workers = self._pool.function, self._pool.handle, 4 * threads
        if self._framework:
            self._callback = ffi.callback("int(void *, const struct autofuse_node_call *)", self._node, error=1)
            self._run.framework_node = self._callback
        self._call = lib().autofuse_bundle_run

    def _node(self, _userdata: Any, call: Any) -> int:
        try:
            ins, outs = call.inputs, call.outputs
            cast = ffi.cast
            assert self._host_call is not None
            self._host_call(self._framework[call.node], [int(cast("uintptr_t", ins[i].data)) for i in range(call.n_inputs)],
                            [int(cast("uintptr_t", outs[i].data)) for i in range(call.n_outputs)])
            return 0
        except BaseException as e:  # to the caller of the run, KeyboardInterrupt too
            self._raised = e
            return 1

    def _failed(self, status: int) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            lib().autofuse_error_free(self._error[0])
            self._error[0] = ffi.NULL
            raise raised
        raise_error(status, self._error)

    def __call__(self, inputs: Sequence[int], outputs: Sequence[int], temp: int = 0, in_bytes: Any = ffi.NULL,
                 out_bytes: Any = ffi.NULL) -> None:
        if not self._busy.acquire(False):  # another thread's, or a run inside its own host_call
            Run(self.bundle, self._host_call, self._threads)(inputs, outputs, temp, in_bytes, out_bytes)
            return
        block = None
        try:
            self._in[0:self._n_inputs] = inputs
            self._out[0:self._n_outputs] = outputs
            if self._temp_bytes:
                if not temp:
                    block = _take(self._temp_bytes)
                    temp = block.address
                self._run.temp, self._run.temp_bytes = ffi.cast("void *", temp), self._temp_bytes
            self._run.input_bytes, self._run.output_bytes = in_bytes, out_bytes
            status = self._call(self.bundle.handle, self._run, self._error)
            if status:
                self._failed(status)
        finally:
            if block is not None:
                _put(block)
            self._busy.release()

    def with_buffers(self, inputs: Sequence[Any], outputs: Sequence[Any], temp: int = 0) -> None:
        """As a call, but each item may be an object with the buffer protocol, whose size is checked, or None."""
        kept: list[Any] = []
        ins, in_bytes = self._addresses(inputs, self._n_inputs, "inputs", False, kept)
        outs, out_bytes = self._addresses(outputs, self._n_outputs, "outputs", True, kept)
        self(ins, outs, temp, in_bytes, out_bytes)

    @staticmethod
    def _addresses(items: Sequence[Any], n: int, what: str, writable: bool, kept: list[Any]) -> tuple[list[int], Any]:
        if len(items) != n:
            raise ShapeError(f"{len(items)} {what}, the bundle has {n}")
        addresses, sizes = [], ffi.new("uint64_t[]", n or 1)
        for i, item in enumerate(items):
            sizes[i] = UNCHECKED
            if item is None or isinstance(item, int):
                addresses.append(item or 0)
                continue
            memory = ffi.from_buffer(item, require_writable=writable)
            kept.append(memory)
            addresses.append(int(ffi.cast("uintptr_t", memory)))
            sizes[i] = len(memory)
        return addresses, sizes


_runs: "weakref.WeakSet[Run]" = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child: what threads of the parent were running is nobody's."""
    for run in list(_runs):
        run._busy = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
