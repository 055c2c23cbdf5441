# SPDX-License-Identifier: Apache-2.0
"""Kernels on `npu` devices, through libascendcl: each binary loaded once per device, each launch one argument block on the tensors' stream.

No NPU was at hand: tests run this against a library that records the calls (tests/python/acl_recorder.c).
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from typing import Any, Sequence

from autofuse.bundle import Bundle, Kernel, KernelStep

LIBRARY = "libascendcl.so"
LOAD_OPTION_MAGIC = 2
MAGIC_ELF_AICORE = 0x43554245


class AclError(RuntimeError):
    """A call into libascendcl failed."""


class _LoadOption(ctypes.Structure):
    """aclrtBinaryLoadOption: which option, and its value, a union of 16 bytes."""

    _fields_ = [("type", ctypes.c_uint32), ("value", ctypes.c_uint32 * 4)]


class _LoadOptions(ctypes.Structure):
    """aclrtBinaryLoadOptions."""

    _fields_ = [("options", ctypes.POINTER(_LoadOption)), ("count", ctypes.c_size_t)]


_SIGNATURES: dict[str, list[Any]] = {
    "aclrtBinaryLoadFromData": [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_LoadOptions), ctypes.POINTER(ctypes.c_void_p)],
    "aclrtBinaryGetFunction": [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)],
    "aclrtBinaryUnLoad": [ctypes.c_void_p],
    "aclrtGetSocName": [],
    "aclrtGetHardwareSyncAddr": [ctypes.POINTER(ctypes.c_void_p)],
    "aclrtMemsetAsync": [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_size_t, ctypes.c_void_p],
    "aclrtLaunchKernelWithHostArgs": [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                      ctypes.c_void_p, ctypes.c_size_t],
}


def argument_block(kernel: Kernel, pointers: Sequence[int], sync_address: int | None) -> bytes:
    """What an entry point gets: the address for synchronising all cores where the kernel does that, its pointers, and the tiling by value.

    All fields are of 8 bytes, or a struct of such, so nothing lies between them.
    """
    head = [] if sync_address is None else [sync_address]
    return struct.pack(f"<{len(head) + len(pointers)}Q", *head, *pointers) + kernel.tiling


class Acl:
    """libascendcl, and what was loaded through it."""

    def __init__(self, path: str | None = None) -> None:
        home = os.environ.get("ASCEND_HOME_PATH")
        self._lib = ctypes.CDLL(path or (os.path.join(home, "lib64", LIBRARY) if home else LIBRARY))
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._lib, name)
            function.argtypes, function.restype = arguments, ctypes.c_char_p if name == "aclrtGetSocName" else ctypes.c_int
        self._lock = threading.Lock()
        self._functions: dict[tuple[int, str], tuple[int, int]] = {}  # device, kernel key -> binary, function
        self._sync: dict[int, int] = {}

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._lib, name)(*arguments)
        if status != 0:
            raise AclError(f"{name} failed with {status}")

    def function(self, device: int, kernel: Kernel) -> int:
        """The handle of a kernel's entry point; its binary is loaded at the first call on this device."""
        key = (device, kernel.key)
        found = self._functions.get(key)
        if found is None:
            with self._lock:
                found = self._functions.get(key) or self._load(kernel)
                self._functions[key] = found
        return found[1]

    def _load(self, kernel: Kernel) -> tuple[int, int]:
        option = _LoadOption(LOAD_OPTION_MAGIC, (MAGIC_ELF_AICORE, 0, 0, 0))
        options = _LoadOptions(ctypes.pointer(option), 1)
        binary, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("aclrtBinaryLoadFromData", kernel.binary, len(kernel.binary), ctypes.byref(options), ctypes.byref(binary))
        try:
            self._call("aclrtBinaryGetFunction", binary, kernel.symbol.encode(), ctypes.byref(function))
        except AclError:
            self._lib.aclrtBinaryUnLoad(binary)
            raise
        return binary.value or 0, function.value or 0

    def soc(self) -> str:
        """The name of this host's SoC: "Ascend910B2"."""
        name = self._lib.aclrtGetSocName()
        if not name:
            raise AclError("aclrtGetSocName tells no name")
        return str(name.decode())

    def sync_address(self, device: int) -> int:
        """What kernels that synchronise all cores take first."""
        if device not in self._sync:
            address = ctypes.c_void_p()
            self._call("aclrtGetHardwareSyncAddr", ctypes.byref(address))
            self._sync[device] = address.value or 0
        return self._sync[device]

    def launch(self, device: int, stream: int, kernel: Kernel, pointers: Sequence[int], takes_sync: bool = True) -> None:
        """One kernel on a stream. takes_sync: not so on Ascend950, whose entry points have no address for it."""
        function = self.function(device, kernel)
        sync = self.sync_address(device) if kernel.needs_sync_all and takes_sync else None
        if kernel.workspace_zeroed and kernel.workspace_bytes:
            self._call("aclrtMemsetAsync", pointers[-1], kernel.workspace_bytes, 0, kernel.workspace_bytes, stream)
        block = argument_block(kernel, pointers, sync)
        self._call("aclrtLaunchKernelWithHostArgs", function, kernel.block_dim, stream, None, block, len(block), None, 0)

    def run(self, bundle: Bundle, first: int, n: int, bases: Sequence[int], device: int, stream: int, takes_sync: bool = True) -> None:
        """Kernel steps [first, first + n), on buffers that begin at these addresses. Returns once they are in the stream."""
        for step in bundle.steps[first : first + n]:
            assert isinstance(step, KernelStep)
            pointers = [bases[a.buffer] + a.byte_offset if bases[a.buffer] else 0 for a in step.args]
            self.launch(device, stream, bundle.kernels[step.kernel], pointers, takes_sync)

    def close(self) -> None:
        """Unloads every binary."""
        with self._lock:
            for binary, _ in self._functions.values():
                self._lib.aclrtBinaryUnLoad(binary)
            self._functions.clear()


def run_on_current_stream(bundle: Bundle, first: int, n: int, bases: Sequence[int]) -> None:
    """Kernel steps in the stream that PyTorch's own nodes use."""
    import torch

    device = torch.npu.current_device()  # type: ignore[attr-defined]
    stream = torch.npu.current_stream().npu_stream  # type: ignore[attr-defined]
    acl().run(bundle, first, n, bases, device, stream, takes_sync=not acl().soc().startswith("Ascend950"))


_acl: Acl | None = None
_acl_lock = threading.Lock()


def acl() -> Acl:
    """The process's own; OSError where the library is not there."""
    global _acl
    if _acl is None:
        with _acl_lock:
            if _acl is None:
                _acl = Acl()
    return _acl
