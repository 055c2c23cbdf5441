# SPDX-License-Identifier: Apache-2.0
"""The op that launches bundles: launch.c, built at the first use into the user's cache; where that fails, tf.py_function."""
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import tensorflow as tf

from autofuse import _ffi
from autofuse.bundle import Bundle

logger = logging.getLogger("autofuse")
SOURCE = Path(__file__).with_name("launch.c")
BUILD_TIMEOUT_S = 300
CALLS = ("solve", "info", "output", "run", "unref")
ffi: Any = cffi.FFI()
ffi.cdef("""
struct autofuse_tf_calls { void *solve, *info, *output, *run, *unref, *error_text, *error_free; };
struct autofuse_tf_symbol { uint32_t operand, axis; };
struct autofuse_tf_plan { const struct autofuse_tf_calls *calls; void *bundle; const struct autofuse_tf_symbol *symbols; uint32_t n_symbols;
                          uint64_t n_runs; };
""")
_lock = threading.Lock()
_module: Any = None
_failed = False
_alive: "list[Launch]" = []


def _header() -> Path:
    """The directory of autofuse.h."""
    library = Path(_ffi.library_path()).resolve().parent
    places = [_ffi.PACKAGE / "_native" / "include", _ffi.PACKAGE.parents[1] / "client"]
    places += [library.parent / "include", library.parent.parent / "include"]
    for place in places:
        if (place / "autofuse.h").exists():
            return place
    raise OSError("autofuse.h is not there")


def build() -> Path:
    """The library with the op, for this TensorFlow and this launch.c. OSError says why there is none."""
    header = _header()
    flags = tf.sysconfig.get_link_flags()
    made_of = SOURCE.read_bytes() + (header / "autofuse.h").read_bytes() + repr((tf.__version__, flags)).encode()
    digest = hashlib.sha256(made_of).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "autofuse"
    made = cache / f"tensorflow-{tf.__version__}-{digest}.so"
    if made.exists():
        return made
    compiler = next((c for c in (shutil.which("cc"), shutil.which("gcc"), shutil.which("g++")) if c), None)
    if not compiler:
        raise OSError("there is no C compiler")
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as d:
        out = Path(d) / "op.so"
        argv = [compiler, "-x", "c", "-O2", "-shared", "-fPIC", "-I", tf.sysconfig.get_include(), "-I", str(header), "-o", str(out),
                str(SOURCE), "-x", "none", *flags]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=BUILD_TIMEOUT_S)
        except subprocess.TimeoutExpired as e:
            raise OSError("the compiler takes too long") from e
        if done.returncode:
            raise OSError(next((line for line in done.stdout.splitlines() if "error" in line), f"{compiler} failed"))
        os.replace(out, made)
    return made


def module() -> Any:
    """The op's module, or None where tf.py_function stands in for it; why is told once."""
    global _module, _failed
    with _lock:
        if _module is None and not _failed:
            try:
                if os.environ.get("AUTOFUSE_TENSORFLOW_OP") == "0":
                    raise OSError("AUTOFUSE_TENSORFLOW_OP is 0")
                _module = tf.load_op_library(str(build()))
            except (OSError, tf.errors.OpError) as e:
                _failed = True
                logger.warning("autofuse.tensorflow runs through tf.py_function: %s", str(e).split("\n")[0])
    return _module


class Launch:
    """A bundle as a function of tensors, in a graph or eagerly. symbols: operand and axis of each size that the bundle does not know. It
    lives as long as the process: a graph that holds its address may."""

    def __init__(self, bundle: Bundle, symbols: Sequence[tuple[int, int]], dtypes: Sequence[Any]) -> None:
        self.bundle, self._symbols, self._dtypes = bundle, list(symbols), list(dtypes)
        call = _ffi.lib()
        addresses = [self._address(getattr(call, f"autofuse_bundle_{name}")) for name in CALLS]
        addresses += [self._address(call.autofuse_error_text), self._address(call.autofuse_error_free)]
        self._calls = ffi.new("struct autofuse_tf_calls *", addresses)
        self._sources = ffi.new("struct autofuse_tf_symbol[]", self._symbols or 1)
        handle = ffi.cast("void *", int(_ffi.ffi.cast("uintptr_t", bundle.handle)))
        self.plan = ffi.new("struct autofuse_tf_plan *", (self._calls, handle, self._sources, len(self._symbols), 0))
        _alive.append(self)

    @staticmethod
    def _address(function: Any) -> Any:
        return ffi.cast("void *", int(_ffi.ffi.cast("uintptr_t", function)))

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The results, one per output of the bundle."""
        op = module()
        if op is not None:
            got = op.autofuse_launch(inputs=list(inputs), Tout=self._dtypes, plan=int(ffi.cast("uintptr_t", self.plan)))
        else:
            got = tf.py_function(self._run, list(inputs), self._dtypes)
        return list(got) if isinstance(got, (list, tuple)) else [got]

    def _run(self, *inputs: Any) -> list[Any]:
        arrays = [np.ascontiguousarray(x.numpy()) if x.shape.rank else np.array(x.numpy()) for x in inputs]
        bundle = self.bundle.solve([arrays[i].shape[axis] for i, axis in self._symbols]) if self._symbols else self.bundle
        outputs = [np.empty(o.tensor.shape, d.as_numpy_dtype) for o, d in zip(bundle.outputs, self._dtypes)]
        bundle.prepare()([a.ctypes.data for a in arrays], [a.ctypes.data for a in outputs])
        self.plan.n_runs += 1
        return [tf.convert_to_tensor(a) for a in outputs]
