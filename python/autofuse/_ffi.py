# SPDX-License-Identifier: Apache-2.0
"""libautofuse through cffi: the library is looked up and loaded once, at the first use of `lib()`. Calls release the interpreter's lock."""
import ctypes
import ctypes.util
import os
import threading
from pathlib import Path
from typing import Any, Iterator

from autofuse._tables import ffi as _tables

ffi: Any = _tables
SONAME = "libautofuse.so.0"
VERSION = "0.1."
PACKAGE = Path(__file__).resolve().parent
# Never unloaded: handles are freed after this module's globals when the interpreter ends.
FLAGS = os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_NODELETE
_lock = threading.Lock()
_lib: Any = None
_path = ""


def build_trees() -> Iterator[Path]:
    """Build trees of the checkout that this package lies in, if it does."""
    root = PACKAGE.parents[1]
    if (root / "client" / "autofuse.h").exists():
        yield root / "build"


def candidates() -> Iterator[str]:
    """Where the library may be, best first: $AUTOFUSE_LIBRARY alone, beside the package, a build tree, the system."""
    named = os.environ.get("AUTOFUSE_LIBRARY")
    if named:
        yield named
        return
    for place in (PACKAGE / "_native" / "lib", *(tree / "client" for tree in build_trees())):
        if (place / SONAME).exists():
            yield str(place / SONAME)
    yield ctypes.util.find_library("autofuse") or SONAME


def _open() -> tuple[Any, str]:
    reasons = []
    for path in candidates():
        try:
            opened = ffi.dlopen(path, FLAGS)
        except OSError as e:
            reasons.append(str(e))
            continue
        version = ffi.string(opened.autofuse_version()).decode()
        if version.startswith(VERSION):
            return opened, path
        reasons.append(f"{path}: version {version}, this package needs {VERSION}x")
    raise ImportError("libautofuse cannot be loaded (AUTOFUSE_LIBRARY names one): " + "; ".join(reasons))


def lib() -> Any:
    """The library. ImportError says where it was looked for."""
    global _lib, _path
    if _lib is None:
        with _lock:
            if _lib is None:
                _lib, _path = _open()
    return _lib


def library_path() -> str:
    """The file that was loaded."""
    lib()
    return _path


def text(pointer: Any) -> str:
    """A C string, "" for NULL."""
    return ffi.string(pointer).decode(errors="replace") if pointer else ""


def free(pointer: Any) -> None:
    """free() of what the library gave away."""
    release = ctypes.CDLL(None).free
    release.argtypes, release.restype = [ctypes.c_void_p], None
    release(int(ffi.cast("uintptr_t", pointer)))


def after_fork() -> None:
    """In a forked child: a lock that another thread of the parent held is a new one."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=after_fork)
