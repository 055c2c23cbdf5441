#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs of unusual size and names through a real server, and keys: each field of a fragment and of its environment varied alone."""
import json, os, signal, sys, tempfile
from afwire import *
from ctl import *
from test_hostile import NAMES, Bystander

LONG = os.environ.get('AF_LONG') == '1'
SHAPE = [4, 8]


def node(name, op, inputs, dtype='float32', shape=SHAPE, attrs=None):
    return name, op, inputs, dtype, shape, attrs or {}


def chain(n):
    ops = ('abs', 'neg', 'exp', 'relu')
    return fragment([node(f't{i}', ops[i % 4], [f't{i - 1}' if i else 'x']) for i in range(n)], ['x'], [f't{n - 1}'])


def fibonacci(n):
    names = ['x', 'y'] + [f't{i}' for i in range(n)]
    return fragment([node(names[i + 2], 'add', [names[i + 1], names[i]]) for i in range(n)], ['x', 'y'], [names[-1]])


def consumers(n):
    """n readers of x, each an output of its own."""
    return fragment([node(f't{i}', 'abs' if i % 2 else 'neg', ['x']) for i in range(n)], ['x'], [f't{i}' for i in range(n)])


def adders(n):
    """n readers of x, one after another."""
    return fragment([node(f't{i}', 'add', ['x', f't{i - 1}' if i else 'x']) for i in range(n)], ['x'], [f't{n - 1}'])


def C32_large_graphs():
    """A chain of 2,000, a Fibonacci graph, one input with 5,000 consumers are compiled; others are served meanwhile. (Near-linear: the unit tests
    of graph and fusion count processor time; here with AF_LONG=1.)"""
    with Server(fake=False) as s:
        env = {'AUTOFUSE_SOCKET': s.path}
        assert s.client().ask(SMALL.encode(), text=True).kind == RESULT
        watcher = Watcher(s.path)
        with Bystander(s, SMALL.encode(), text=True):
            for make, n in ((chain, 2000), (fibonacci, 2000), (adders, 5000), (consumers, 5000)):
                took = {}
                for size in (n // 8, n) if LONG else (n,):
                    text = make(size)
                    a = s.client(timeout=600).ask(text.encode(), text=True)
                    assert a.kind == RESULT, (make.__name__, size, a)
                    took[size] = sum(watcher.wait('plan', fragment=a.key[:32].hex())[0]['stages_us'].values())
                print('#', make.__name__, took)
                assert took[n] < 64 * max(took.get(n // 8, 0), 500000), (make.__name__, took)
        for make in (chain, fibonacci):
            assert ok(ctl('run', '--compare', '--json', '-', input=make(2000), env=env)).json()['identical']
        assert s.stats()['jobs_died'] == 0
        watcher.close()


def C20_sixty_chained_ops_of_strange_names():
    """Inputs, values and nodes with names of 300 bytes, of paths, quotes and newlines: one key, one kernel and one answer with plain ones."""
    long_names = [(n * 300)[:300] for n in ('a/', '../', '"', "'", '\n', '\\', '${x}', '*/', '%n')] + NAMES
    plain = fragment([node(f't{i}', ('abs', 'neg', 'sqrt')[i % 3], [f't{i - 1}' if i else 'x']) for i in range(60)], ['x'], ['t59'])
    names = [long_names[i % len(long_names)] for i in range(61)]
    names = [n if len(n) == 300 and n not in names[:i] else f'{n[:290]}{i}' for i, n in enumerate(names)]
    f, known = json.loads(plain), {'x': names[60], **{f't{i}': names[i] for i in range(60)}}
    for v in f['inputs']:
        v['name'] = known[v['name']]
    for n in f['nodes']:
        n['inputs'] = [known[i] for i in n['inputs']]
        n['outputs'][0]['name'] = n['name'] = n['origin'] = known[n['outputs'][0]['name']]
    f['outputs'], f['name'] = [known['t59']], names[0]
    with Server(fake=False) as s:
        env = {'AUTOFUSE_SOCKET': s.path}
        answers = [s.client().ask(t.encode(), text=True) for t in (plain, json.dumps(f))]
        assert [a.kind for a in answers] == [RESULT] * 2 and answers[0].key == answers[1].key, answers
        bundles = [a.bundle() for a in answers]
        assert bundles[0] == bundles[1] and not any(n.encode() in bundles[0] for n in names if len(n) > 20)
        assert ok(ctl('run', '--compare', '--json', '-', input=json.dumps(f), env=env)).json()['identical']
        st = s.stats()
        assert st['kernel_compiles'] == 1 and st['fragment_compiles'] == 1, st


BASE = {'schema': 'autofuse.fragment/1', 'name': 'sweep',
        'symbols': [{'name': 's', 'min': 1, 'max': 64, 'hint': 8}],
        'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': [4, 8]}, {'name': 'y', 'dtype': 'float32', 'shape': [4, 8]},
                   {'name': 'z', 'dtype': 'float32', 'shape': ['s', 8]}],
        'constants': [{'name': 'c', 'dtype': 'float32', 'shape': [], 'bits': '0000803f'}],
        'nodes': [{'name': 'n0', 'op': 'sub', 'inputs': ['x', 'y'], 'outputs': [{'name': 't', 'dtype': 'float32', 'shape': [4, 8]}]},
                  {'name': 'n1', 'op': 'div', 'inputs': ['t', 'c'], 'outputs': [{'name': 'u', 'dtype': 'float32', 'shape': [4, 8]}]},
                  {'name': 'n2', 'op': 'leaky_relu', 'inputs': ['z'], 'attrs': {'alpha': 0.25}, 'outputs': [{'name': 'w', 'dtype': 'float32', 'shape': ['s', 8]}]},
                  {'name': 'n3', 'op': 'mul', 'inputs': ['u', 'x'], 'outputs': [{'name': 'v', 'dtype': 'float32', 'shape': [4, 8]}]}],
        'outputs': ['v', 'w']}
SWEEP = [  # (where, value): each alone is another fragment
    ('inputs.2.dtype nodes.2.outputs.0.dtype', 'float16'), ('inputs.2.shape nodes.2.outputs.0.shape', ['s', 9]), ('inputs.2.shape nodes.2.outputs.0.shape', [8, 's']),
    ('inputs.0.strides', [9, 1]), ('inputs.0.strides', [1, 4]), ('inputs.1.strides', [9, 1]), ('inputs.0.offset', 1), ('inputs.1.offset', 1), ('inputs.0.offset', 2),
    ('inputs.0.align', 32), ('symbols.0.max', 65), ('symbols.0.min', 2), ('symbols.0.multiple_of', 2), ('constants.0.bits', '0000803e'), ('constants.0.bits', '000080bf'),
    ('constants.0.dtype constants.0.bits', ('float64', '000000000000f03f')), ('nodes.2.attrs.alpha', 0.26), ('nodes.0.inputs', ['y', 'x']), ('nodes.1.inputs', ['c', 't']),
    ('nodes.0.op', 'add'), ('nodes.0.op', 'mul'), ('nodes.1.op', 'mul'), ('outputs', ['w', 'v']), ('outputs', ['v', 'w', 't']), ('outputs', ['v']), ('outputs', ['v', 'w', 'w']),
    ('outputs', [{'value': 'v', 'alias_of': 'x'}, 'w']), ('outputs', [{'value': 'v', 'alias_of': 'y'}, 'w']), ('outputs', [{'value': 'v', 'strides': [1, 4]}, 'w']),
    ('target', {'soc': 'Ascend910B1'}), ('target', {'twin': 'checked'}), ('numerics', 'fast'),
]


def changed(where, value):
    f, paths = json.loads(json.dumps(BASE)), where.split()
    for i, path in enumerate(paths):
        *way, last = path.split('.')
        at = f
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        at[last] = value[i] if isinstance(value, tuple) else value
    return json.dumps(f)


def key_of(text):
    k = ok(ctl('key', '--json', '-', input=text)).json()
    return k['fragment'], k['environment']


def C22_one_bit_sweep():
    """dtype, shape, stride, offset, alignment, symbol, constant, attribute, operands, outputs, alias, SoC, policy, numerics: all keys differ."""
    keys = {key_of(json.dumps(BASE)): 'the base'}
    for where, value in SWEEP:
        key = key_of(changed(where, value))
        assert key not in keys, (where, value, keys[key])
        keys[key] = (where, value)
    assert len(keys) == len(SWEEP) + 1


def C22_each_flag_of_a_compiler():
    """A flag or the salt of the configuration, read again under a live server, moves the key; the first ones again: hits."""
    with tempfile.TemporaryDirectory(prefix='afe2e.') as d:
        conf, seen = d + '/conf', {}
        open(conf, 'w').close()
        lines = ['', 'toolchain.host.flags = -DAF_TEST=1', 'toolchain.host.flags = -march=x86-64-v2', 'cache_salt = a']
        lines += ['toolchain.host.flags = -DAF_TEST=2', 'toolchain.host.flags = -O2', 'cache_salt = b'] if LONG else []
        with Server(fake=False, config=conf) as s:
            c = s.client()
            for i, line in enumerate(lines):
                open(conf, 'w').write(line + '\n')
                s.process.send_signal(signal.SIGHUP)
                a = eventually(lambda: (lambda a: a if a.key not in seen.values() else None)(c.ask(SMALL.encode(), text=True)), f'{line} moves the key', 60)
                assert a.kind == RESULT and a.hit == HIT_COMPILED, (line, a)
                seen[line] = a.key
            assert len({k[:32] for k in seen.values()}) == 1 and len({k[32:] for k in seen.values()}) == len(lines)
            compiles = c.stats()['kernel_compiles']
            for line in (lines[1], lines[0]):
                open(conf, 'w').write(line + '\n')
                s.process.send_signal(signal.SIGHUP)
                a = eventually(lambda: (lambda a: a if a.key == seen[line] else None)(c.ask(SMALL.encode(), text=True)), f'{line} again', 60)
                assert a.hit == HIT_STORE, (line, a)
            assert c.stats()['kernel_compiles'] == compiles
            c.close()


def C23_sizes_and_names_do_not_run_together():
    """[10,1]+[1,10] and [10,10]+[10,10] differ; the names "a", "bc" and "ab", "c" are one key, and each answer is right."""
    def added(a, b, x='x', y='y'):
        return json.dumps({'schema': 'autofuse.fragment/1', 'inputs': [{'name': x, 'dtype': 'float32', 'shape': a}, {'name': y, 'dtype': 'float32', 'shape': b}],
                           'nodes': [{'name': 'n', 'op': 'sub', 'inputs': [x, y], 'outputs': [{'name': 't', 'dtype': 'float32', 'shape': [10, 10]}]}], 'outputs': ['t']})
    shapes = [([10, 1], [1, 10]), ([10, 10], [10, 10])]
    with Server(fake=False) as s:
        env = {'AUTOFUSE_SOCKET': s.path}
        keys = {s.client().ask(added(a, b).encode(), text=True).key for a, b in shapes}
        assert len(keys) == len(shapes), keys
        for a, b in shapes:
            assert ok(ctl('run', '--compare', '--json', '-', input=added(a, b), env=env)).json()['identical'], (a, b)
        again = {s.client().ask(added([10, 1], [1, 10], x, y).encode(), text=True).key for x, y in (('a', 'bc'), ('ab', 'c'))}
        assert len(again) == 1 and again <= keys, again
        assert s.stats()['fragment_compiles'] == len(shapes)


if __name__ == '__main__':
    sys.exit(run([C32_large_graphs, C20_sixty_chained_ops_of_strange_names, C22_one_bit_sweep, C22_each_flag_of_a_compiler,
                  C23_sizes_and_names_do_not_run_together]))
