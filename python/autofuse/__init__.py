# SPDX-License-Identifier: Apache-2.0
"""autofused from Python: build a graph fragment, have it compiled once per host, run what comes back.

    import autofuse
    f = autofuse.Fragment("example")
    f.input("x", "float32", [4, 256])
    f.node("relu", ["x"], [("y", "float32", [4, 256])])
    f.output("y")
    bundle = autofuse.default_context().compile(f)
    bundle.run([x], [y])
"""
from autofuse.bundle import Bundle, FrameworkStep, KernelStep
from autofuse.context import Context, MemoStats, Progress, Request, default_context
from autofuse.errors import (ArgumentError, AutofuseError, CallbackError, Canceled, CompileError, DeadlineExceeded, Invalid, KernelError,
                             NotFound, OutOfMemory, ShapeError, TargetError, Timeout, Unavailable)
from autofuse.fragment import DTYPE_SIZE, DTYPES, Fragment
from autofuse.run import Run

__version__ = "0.1.0"
__all__ = ["ArgumentError", "AutofuseError", "Bundle", "CallbackError", "Canceled", "CompileError", "Context", "DTYPES", "DTYPE_SIZE",
           "DeadlineExceeded", "Fragment", "FrameworkStep", "Invalid", "KernelError", "KernelStep", "MemoStats", "NotFound",
           "OutOfMemory", "Progress", "Request", "Run", "ShapeError", "TargetError", "Timeout", "Unavailable", "default_context"]
