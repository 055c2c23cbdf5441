#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The samples of examples/torch say that they equal eager, each with kernels; with --ranks: eight ranks compile each kernel once between them."""
import contextlib
import io
import os
import runpy
import subprocess
import sys

from aftorch import run_tests, runtime, torch

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'examples', 'torch')
WANTED = {'add_ge': 1, 'mul_reducesum': 1, 'gather_add': 1, 'dynamic_softmax': 3}  # lines, each about one kernel


def samples_equal_eager():
    sys.path.insert(0, EXAMPLES)
    for name, n in WANTED.items():
        torch._dynamo.reset()
        runtime._alive.clear()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            runpy.run_path(os.path.join(EXAMPLES, name + '.py'))
        lines = said.getvalue().splitlines()
        assert len(lines) == n and all('equal to eager; 1 kernel: autofused_' in line for line in lines), (name, lines)


def ranks_share_compiles():
    from torch.distributed import run as torchrun
    command = [sys.executable, '-m', torchrun.__name__, '--standalone', '--nproc-per-node', '8', os.path.join(EXAMPLES, 'ranks.py')]
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert r.returncode == 0, r.stderr[-3000:]
    first, *kernels = [line for line in r.stdout.splitlines() if line]
    assert first.startswith('8 ranks; the same kernels on each: True; '), first
    n = len(kernels)
    assert n > 0 and first.endswith(f'; {n} kernels, {n} compiles'), (first, kernels)


sys.exit(run_tests([ranks_share_compiles] if sys.argv[1:] == ['--ranks'] else [samples_equal_eager]))
