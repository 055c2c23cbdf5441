# SPDX-License-Identifier: Apache-2.0
"""libautofuse-onnx through cffi: a model's bytes and what is fed become a fragment's text."""
import ctypes.util
import json
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import cffi
import numpy as np

from autofuse import _ffi
from autofuse.onnx._dtypes import elem_type_of

SONAME = "libautofuse-onnx.so.0"
# importer/autofuse_onnx.h; tests/python/test_onnx.py compares.
DECLARATIONS = """
struct autofuse_onnx_tensor { int32_t elem_type; uint32_t rank; const int64_t *dims; const void *data; size_t n_bytes; };
struct autofuse_onnx_options { size_t size; bool opaque; const uint32_t *forced; size_t n_forced; };
int autofuse_onnx_import(const void *model, size_t n, const struct autofuse_onnx_tensor *feeds, size_t n_feeds,
                         const struct autofuse_onnx_options *options, char **ret_json);
void autofuse_onnx_free(char *json);
"""
OK, E_INVALID, E_REFUSED, E_MEMORY = range(4)
BEFORE_FRAGMENT = '{"fragment":'
ffi: Any = cffi.FFI()
ffi.cdef(DECLARATIONS)
_lock = threading.Lock()
_lib: Any = None


class Refused(Exception):
    """The model cannot be a fragment. where: the value whose node is meant, or the field; reason: `op NAME`, `dtype NAME`, `shape …`."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where, self.reason = where, reason


class Opaque(NamedTuple):
    """A node of the model that is the caller's to run."""

    node: int
    op: str
    reason: str


class Imported(NamedTuple):
    """fragment: JSON. inputs: the model's input that each of the fragment's is. values: inputs whose values it holds for. nodes: the
    model's node that each of the fragment's is made for."""

    fragment: str
    inputs: list[int]
    values: list[int]
    nodes: list[int]
    opaque: list[Opaque]


def candidates() -> Iterator[str]:
    """Where the library may be, best first: $AUTOFUSE_ONNX_LIBRARY alone, beside the package, a build tree, the system."""
    named = os.environ.get("AUTOFUSE_ONNX_LIBRARY")
    if named:
        yield named
        return
    for place in (_ffi.PACKAGE / "_native" / "lib", *(tree / "importer" for tree in _ffi.build_trees())):
        if (place / SONAME).exists():
            yield str(place / SONAME)
    yield ctypes.util.find_library("autofuse-onnx") or SONAME


def lib() -> Any:
    """The library. ImportError says where it was looked for."""
    global _lib
    with _lock:
        if _lib is None:
            reasons = []
            for path in candidates():
                try:
                    _lib = ffi.dlopen(path)
                    break
                except OSError as e:
                    reasons.append(str(e))
            else:
                raise ImportError("libautofuse-onnx cannot be loaded (AUTOFUSE_ONNX_LIBRARY names one): " + "; ".join(reasons))
    return _lib


def _tensors(feeds: Sequence[np.ndarray], kept: list[Any]) -> Any:
    made = ffi.new("struct autofuse_onnx_tensor[]", len(feeds) or 1)
    for t, a in zip(made, feeds):
        dims = ffi.new("int64_t[]", list(a.shape) or 1)
        kept += [dims, a]
        t.elem_type, t.rank, t.dims = elem_type_of(a), a.ndim, dims
        if a.dtype != object:
            t.data, t.n_bytes = ffi.cast("void *", a.ctypes.data), a.nbytes
    return made


def import_model(model: bytes, feeds: Sequence[np.ndarray], opaque: bool = False, forced: Sequence[int] = ()) -> Imported:
    """feeds: row-major, one per input. Refused where the model cannot be expressed, ValueError where it is none."""
    kept: list[Any] = []
    nodes = ffi.new("uint32_t[]", list(forced) or 1)
    options = ffi.new("struct autofuse_onnx_options *", (ffi.sizeof("struct autofuse_onnx_options"), opaque, nodes, len(forced)))
    made = ffi.new("char **")
    status = lib().autofuse_onnx_import(model, len(model), _tensors(feeds, kept), len(feeds), options, made)
    if status == E_MEMORY:
        raise MemoryError("libautofuse-onnx: no memory")
    try:
        text = ffi.string(made[0]).decode(errors="replace")
    finally:
        lib().autofuse_onnx_free(made[0])
    if status != OK:
        first = json.loads(text)["errors"][0]
        raise Refused(first["where"], first["what"]) if status == E_REFUSED else ValueError(f"{first['where']}: {first['what']}")
    _, end = json.JSONDecoder().raw_decode(text, len(BEFORE_FRAGMENT))
    rest = json.loads("{" + text[end + 1:])
    return Imported(text[len(BEFORE_FRAGMENT):end], rest["inputs"], rest["values"], rest["nodes"], [Opaque(**o) for o in rest["opaque"]])
