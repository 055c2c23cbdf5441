#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call costs from Python, in microseconds, the best of 30 batches: a prepared run, the C call in it, a run with buffers, a solve,
building a fragment. Not a test: run it by hand."""
import time

from afpy import add_relu, address, around_opaque, autofuse, floats, server


def best(f, n=1000, rounds=30):
    least = float('inf')
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(n):
            f()
        least = min(least, (time.perf_counter() - begin) / n)
    return f'{least * 1e6:.2f} us'


def chain(n):
    f = autofuse.Fragment('chain')
    f.input('v0', 'float32', [64])
    for i in range(n):
        f.node('add', [f'v{i}', 'v0'], [(f'v{i + 1}', 'float32', [64])], origin='aten.add.Tensor')
    f.output(f'v{n}')
    return f


with server() as s, autofuse.Context(socket=s.path) as c:
    for n in (16, 1024):
        b = c.compile(add_relu(n))
        x, y, z = floats(n, 1), floats(n, 1), floats(n)
        r, ins, outs = b.prepare(), [address(x), address(y)], [address(z)]
        print(f'{n} elements: prepared {best(lambda: r(ins, outs))}, of it the C call {best(lambda: r._call(b.handle, r._run, r._error))}, '
              f'with buffers {best(lambda: b.run([x, y], [z]), 100)}')
    b = c.compile(around_opaque((16, 8)))
    x, z = floats(128, 0.5), floats(128)
    r, ins, outs = b.prepare(host_call=lambda step, i, o: None), [address(x)], [address(z)]
    print(f'two kernels and a framework node: {best(lambda: r(ins, outs))}')
    form = c.compile(around_opaque())
    print(f'solved before: {best(lambda: form.solve([100]), 100)}')
    print(f'building a node: {best(lambda: chain(500), 1, 10)} / 500, with its digest {best(lambda: chain(500).digest(), 1, 10)} / 500')
    c.compile(chain(30))
    again = chain(30)
    print(f'a memo hit: {best(lambda: c.compile(again), 100)}')
