# SPDX-License-Identifier: Apache-2.0
"""What the samples share: the package of this checkout where it is not installed, and the comparison with eager."""
import os
import sys

try:
    import autofuse
except ImportError:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'python'))
    import autofuse  # noqa: F401
import torch
import autofuse.torch as autofuse_torch
from autofuse.torch import launches


def backend():
    """"autofuse" where the package is installed; in a checkout its function, which is what the name stands for."""
    return 'autofuse' if 'autofuse' in torch._dynamo.list_backends(exclude_tags=()) else autofuse_torch.autofuse


def compare(name, fn, *args, **how):
    """Runs fn compiled and in eager; prints the kernels and whether the results are equal; exits with 1 where they are not, or none ran."""
    compiled = torch.compile(fn, backend=backend(), **how)
    with torch.no_grad():
        got, want = compiled(*args), fn(*args)
    kernels = [k for k in launches() if k.startswith('autofused_')]
    equal = got.dtype == want.dtype and got.stride() == want.stride() and torch.allclose(got, want, rtol=1e-5, atol=1e-4)
    print(f'{name}: {"equal to eager" if equal else "NOT equal to eager"}; {len(kernels)} kernel{"s" if len(kernels) != 1 else ""}'
          f'{": " + ", ".join(kernels) if kernels else ""}')
    if not equal or not kernels:
        sys.exit(1)
