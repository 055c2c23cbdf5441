#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small models through torch.compile, here and by TorchInductor: launches and bytes of their plans, and the first step of new processes.

    torch_models.py [--build DIR] [--pairs N] [--part plans|first] [NAME…]      one JSON line per figure
    torch_models.py --step NAME BACKEND inference|training                      one process's first step, in seconds

A launch is a kernel, or a node that a framework runs; matrix products, convolutions, attention and random numbers are left out on both
sides. Bytes are the distinct ones that each launch reads and writes. Inductor counts as many launches as it has C++ functions or loop
nests, whichever are fewer. First steps: page cache warm, N interleaved pairs, median. Warm: the server has the kernels, Inductor its
cache directory. Cold: neither has anything, nor precompiled headers.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, d) for d in ('tests', 'tests/python', 'tests/e2e', 'python')]
LEFT_OUT = ('mm', 'addmm', 'bmm', 'baddbmm', 'convolution', 'convolution_backward', 'bernoulli')


def left_out(name):
    """Whether an op, by any of its names (aten.mm.default, extern_kernels.mm), is of the set that does not count."""
    parts = name.replace('::', '.').split('.')
    return any(p in LEFT_OUT or p.startswith(('_scaled_dot_product', 'rand')) or 'dropout' in p for p in parts)


def step(name, backend, kind):
    """The first step of a process, model and imports excluded."""
    import torch
    import zoo
    if backend == 'autofuse':
        import autofuse.torch as front
        backend = front.autofuse
    model, inputs = zoo.make(name)
    model.train(kind == 'training')
    start = time.monotonic()
    compiled = torch.compile(model, backend=backend)
    if kind == 'training':
        zoo.loss(compiled(**inputs)).backward()
    else:
        with torch.no_grad():
            compiled(**inputs)
    return time.monotonic() - start


def touched(g, bundle):
    """Input buffers that only gathers read: the most that these can touch (sizes are static here)."""
    from autofuse.fragment import DTYPE_SIZE
    readers, most = {}, {}
    for e in g.translation.b.nodes:
        for i, value in enumerate(e.inputs):
            readers.setdefault(value, []).append((e, i))
    for spec in bundle.inputs:
        found = readers.get(spec.name, [])
        if spec.used and found and all(e.op == 'gather' and i == 0 for e, i in found):
            most[spec.tensor.buffer] = sum(math.prod(e.outputs[0][2]) for e, _ in found) * DTYPE_SIZE[spec.tensor.dtype]
    return most


def our_plan(name, kind):
    """Launches and bytes of every graph."""
    from autofuse.torch import runtime
    runtime._alive.clear()
    before = set(runtime._alive)
    step(name, 'autofuse', kind)
    launches = moved = 0
    for g in set(runtime._alive) - before:
        bundle = (next(iter(g._plans.values())) if g._plans else g.plan([])).bundle
        most = touched(g, bundle)
        for s in bundle.steps:
            if hasattr(s, 'origin'):
                if not left_out(s.origin):
                    launches += 1
                    moved += sum(bundle.buffers[t.buffer].bytes for t in (*s.inputs, *s.outputs))
                continue
            launches += 1 + bundle.kernels[s.kernel].needs_sync_all
            moved += sum(min(a.range[1] - a.range[0], most.get(a.buffer, 1 << 62)) for a in s.args)
    return launches, moved


def inductors_plan(name, kind):
    """The same of Inductor's schedule."""
    import logging
    import torch
    from torch._inductor import compile_fx, config, metrics
    config.force_disable_caches = True
    compile_fx.inductor_metrics_log.setLevel(logging.INFO)
    compile_fx.inductor_metrics_log.propagate = False
    torch._dynamo.reset()
    metrics.reset()
    step(name, 'inductor', kind)
    nests = externs = moved = 0
    for node, elements in metrics.nodes_num_elem:
        inner = getattr(node, 'node', None)
        names = [str(getattr(inner, f, '') or '') for f in ('op_overload', 'python_kernel_name')]
        if node.is_extern():
            if any(left_out(n) for n in names):
                continue
            externs += 1
        elif node.is_template():
            continue
        elif type(node).__name__ == 'NopKernelSchedulerNode':
            continue
        else:
            nests += 1
        moved += elements * 4
    return min(nests, metrics.generated_kernel_count or nests) + externs, moved


def plans(names, build):
    from afpy import server
    worst = 0.0
    with server() as s:
        os.environ['AUTOFUSE_SOCKET'] = s.path
        for name in names:
            (a, b), (c, d) = our_plan(name, 'inference'), inductors_plan(name, 'inference')
            worst = max(worst, b / d)
            print(f'# {name}: {a} launches and {b} bytes, Inductor {c} and {d}: {a / max(c, 1):.2f}x, {b / d:.2f}x', file=sys.stderr)
    print(json.dumps({'name': 'model_bytes_over_inductor_worst', 'value': round(worst, 3), 'unit': 'x'}), flush=True)


def process(name, backend, kind, environment):
    """Seconds of one process's first step."""
    r = subprocess.run([sys.executable, os.path.abspath(__file__), '--step', name, backend, kind], env={**os.environ, **environment},
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        raise RuntimeError(f'{name} {backend} {kind}: {r.stderr[-2000:]}')
    return float(r.stdout.split()[-1])


def warm(name, kind, pairs, server_path, cache):
    """Median ratio of warm first steps."""
    ours, theirs = {'AUTOFUSE_SOCKET': server_path}, {'TORCHINDUCTOR_CACHE_DIR': cache}
    process(name, 'autofuse', kind, ours)
    process(name, 'inductor', kind, theirs)
    times = [(process(name, 'autofuse', kind, ours), process(name, 'inductor', kind, theirs)) for _ in range(pairs)]
    a, b = (statistics.median(t) for t in zip(*times))
    print(f'# {name} {kind}, warm: {a:.2f} s, Inductor {b:.2f} s: {a / b:.2f}x', file=sys.stderr)
    return a / b


def cold(name):
    """Ratio of first steps where nobody has anything yet."""
    from afpy import server
    with tempfile.TemporaryDirectory() as d:
        old = os.environ.get('XDG_CACHE_HOME')
        os.environ['XDG_CACHE_HOME'] = d + '/cache'
        try:
            with server() as s:
                a = process(name, 'autofuse', 'inference', {'AUTOFUSE_SOCKET': s.path})
        finally:
            os.environ.pop('XDG_CACHE_HOME') if old is None else os.environ.__setitem__('XDG_CACHE_HOME', old)
        b = process(name, 'inductor', 'inference', {'TORCHINDUCTOR_CACHE_DIR': d + '/inductor'})
    print(f'# {name}, cold: {a:.2f} s, Inductor {b:.2f} s: {a / b:.2f}x', file=sys.stderr)
    return a / b


def first(names, pairs, trained):
    from afpy import server
    figures = {}
    with tempfile.TemporaryDirectory() as cache, server() as s:
        figures['warm_inference_over_inductor_worst'] = max(warm(n, 'inference', pairs, s.path, cache) for n in names)
        if trained:
            figures['warm_training_over_inductor_worst'] = max(warm(n, 'training', pairs, s.path, cache) for n in trained)
    figures['cold_over_inductor_worst'] = max(cold(n) for n in names)
    for name, value in figures.items():
        print(json.dumps({'name': name, 'value': round(value, 3), 'unit': 'x'}), flush=True)


def main():
    from other_python import need
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default=os.path.join(ROOT, 'build'))
    p.add_argument('--pairs', type=int, default=5)
    p.add_argument('--part', choices=('plans', 'first'))
    p.add_argument('--step', nargs=3)
    p.add_argument('names', nargs='*')
    a = p.parse_args()
    os.environ['AF_BUILD_ROOT'] = os.path.abspath(a.build)
    os.environ.setdefault('AUTOFUSE_LIBRARY', os.path.join(os.environ['AF_BUILD_ROOT'], 'client', 'libautofuse.so.0'))
    os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
    need('torch', 'transformers', 'cffi')
    if a.step:
        print(step(*a.step))
        return 0
    import zoo
    names = a.names or list(zoo.MODELS)
    if a.part != 'first':
        plans(names, a.build)
    if a.part != 'plans':
        first(names, a.pairs, [n for n in names if n in zoo.TRAINED])
    return 0


if __name__ == '__main__':
    sys.exit(main())
