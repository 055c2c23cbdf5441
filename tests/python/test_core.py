#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package's core over a private server: building, compiling, looking, solving, running, framework nodes, errors."""
import ctypes, json, math, os, re, subprocess, sys, tempfile, threading
from afpy import ROOT, add_relu, address, around_opaque, autofuse, eventually, floats, raises, run, server
from ctl import SAMPLES, ctl, ok

S = None


def context(**kw):
    return autofuse.Context(socket=S.path, **kw)


def a_fragment_is_built_compiled_and_run():
    with context() as c:
        f = add_relu()
        b = c.compile(f)
        assert b.info.hit == 'compiled' and b.info.fragment == f.digest() and b.info.n_nodes_fused == 2, b.info
        assert [i.name for i in b.inputs] == ['x', 'y'] and b.outputs[0].bytes == 4096 and b.outputs[0].tensor.shape == (1024,)
        k = b.kernels[b.steps[0].kernel]
        assert k.symbol.startswith('autofused_') and k.ops == 'add,relu' and k.binary[:4] == b'\x7fELF'
        assert [d.kind for d in b.decisions] == ['merged'] and {x.kind for x in b.buffers} == {'input', 'output'}
        source = c.kernel_source(b, b.steps[0].kernel)
        assert k.symbol in source and '__aicore__' in source and k.source is None
        raises(autofuse.ArgumentError, c.kernel_source, b, 1)
        x, y, z = floats(1024, -512, 1), floats(1024, 1), floats(1024)
        b.run([x, y], [z])
        want = [max(0.0, a + 1) for a in x]
        assert list(z) == want
        again, z = b.prepare(), floats(1024)
        again([address(x), address(y)], [address(z)])
        assert list(z) == want
        args = [address({'input': (x, y), 'output': (z,)}[b.buffers[a.buffer].kind][b.buffers[a.buffer].index]) for a in b.steps[0].args]
        z[:] = floats(1024)
        b.launch(b.steps[0].kernel, args)
        assert list(z) == want
        assert c.compile(add_relu(name='another')).info.hit == 'memo' and c.memo_stats().hits == 1
        c.forget()
        assert c.memo_stats().entries == 0 and c.server_stats()['fragment_compiles'] >= 1


def text_compiles_too():
    with open(__file__.rsplit('/tests/', 1)[0] + '/examples/fragments/tf_abs_relu_exp.json', encoding='utf-8') as f:
        text = f.read()
    with context() as c:
        b = c.compile(text)
        assert b.info.n_kernel_steps == 1 and len(b.inputs) == len(json.loads(text)['inputs'])
        assert c.compile(text.encode()).info.hit == 'memo'


def symbols_are_solved():
    with context() as c:
        b = c.compile(around_opaque())
        assert b.symbols == ('s0',) and b.outputs[0].tensor.shape[1:] == (8,)
        def twice(step, ins, outs):
            n = 4 * step.inputs[0].shape[0] * step.inputs[0].shape[1]
            ctypes.memmove(outs[0], ins[0], n)
        for n in (1, 64, 100, 4096):
            s = b.solve([n])
            assert s.outputs[0].tensor.shape == (n, 8)
            x, z = floats(8 * n, -1, 0.001), floats(8 * n)
            s.run([x], [z], host_call=twice)
            assert all(math.isclose(a, math.exp(abs(v)), rel_tol=1e-6) for a, v in zip(z, x))
        e = raises(autofuse.ShapeError, b.solve, [5000])
        assert e.status == 12 and 's0 = 5000' in str(e) and isinstance(e, ValueError)
        assert 'solve' in str(raises(autofuse.ShapeError, b.run, [floats(512)], [floats(512)], host_call=twice))


def framework_nodes_are_the_callers():
    with context() as c:
        b = c.compile(around_opaque((16, 8)))
        step = [s for s in b.steps if isinstance(s, autofuse.FrameworkStep)][0]
        assert (step.node, step.name, step.origin, step.op) == (1, 'the_mm', 'aten.mm.default', 'opaque') and step.reason
        x, z, seen = floats(128, 0.5), floats(128), []

        def node(s, ins, outs):
            seen.append(s)
            ctypes.memmove(outs[0], ins[0], 512)
            raise KeyError('mine')
        r = b.prepare(host_call=node)
        for _ in range(2):  # a run that failed can be called again
            assert raises(KeyError, r, [address(x)], [address(z)]).args == ('mine',)
        assert seen == [step, step]
        assert raises(KeyboardInterrupt, b.run, [x], [z], host_call=lambda *a: raise_(KeyboardInterrupt()))
        e = raises(autofuse.CallbackError, b.run, [x], [z])
        assert e.status == 13 and 'aten.mm.default' in str(e)
        inner = b.prepare(host_call=lambda s, i, o: ctypes.memmove(o[0], i[0], 512))
        z2 = floats(128)

        def nested(s, ins, outs):
            seen.append(s)
            inner([address(x)], [address(z2)])
            if len(seen) < 5:
                outer_again([address(x)], [address(z2)])
            ctypes.memmove(outs[0], ins[0], 512)
        outer_again = b.prepare(host_call=nested)
        outer_again([address(x)], [address(z)])
        assert list(z) == list(z2) and abs(z[0] - math.exp(0.5)) < 1e-6 and len(seen) == 5


def raise_(e):
    raise e


def memory_is_checked():
    with context() as c:
        b = c.compile(add_relu())
        x, y, z = floats(1024), floats(1024), floats(1024)
        assert 'has 4092 bytes and needs 4096' in str(raises(autofuse.ShapeError, b.run, [floats(1023), y], [z]))
        assert 'output 0' in str(raises(autofuse.ShapeError, b.run, [x, y], [floats(10)]))
        assert 'has no memory' in str(raises(autofuse.ShapeError, b.run, [x, y], [None]))
        raises(autofuse.ShapeError, b.run, [x], [z])
        raises((BufferError, TypeError, ValueError), b.run, [x, y], [bytes(4096)])
        r = b.prepare()
        raises((ValueError, IndexError), r, [address(x)], [address(z)])
        r([address(x), address(y)], [address(z)])  # and goes on


def mistakes_are_named():
    f = autofuse.Fragment('wrong')
    f.input('x', 'float32', [4])
    assert 'floot32' in str(raises(autofuse.Invalid, f.input, 'y', 'floot32', [4]))
    assert 'exes' in str(raises(autofuse.Invalid, f.node, 'add', ['x', 'x'], [('z', 'float32', [4])], {'exes': [1]}))
    f.node('add', ['x', 'q'], [('z', 'float32', [4])])
    f.node('no_such_op', ['x'], [('w', 'float32', [4])])
    f.output('z')
    e = raises(autofuse.Invalid, f.validate)
    assert e.status == 3 and not e.retryable, e
    with context() as c:
        assert raises(autofuse.Invalid, c.compile, f).status == 3
        assert raises(autofuse.NotFound, c.compile, add_relu(77), lookup_only=True).status == 9
        raises(autofuse.TargetError, c.compile, add_relu().target(soc='Ascend000'))
        g = add_relu()
        g.validate()
        raises(autofuse.ArgumentError, g.output, 'x')
    raises(autofuse.ArgumentError, c.compile, add_relu())


def attributes_strides_constants_aliases():
    f = autofuse.Fragment('all')
    f.numerics('strict').target(twin='fast')
    f.input('x', 'float32', [4, 8], strides=[16, 1], offset=2)
    f.input('state', 'float32', [4, 8])
    f.constant('two', 'float32', [], floats(1, 2.0))
    f.constant('none', 'float32', [0], b'')
    f.node('mul', ['x', 'two'], [('m', 'float32', [4, 8])])
    f.node('reduce_sum', ['m'], [('r', 'float32', [4, 1])], {'axes': [-1], 'keepdims': True, 'axis': None})
    f.node('clip', ['m'], [('c', 'float32', [4, 8])], {'min': -1, 'max': 1.5})
    f.node('gelu', ['m'], [('g', 'float32', [4, 8])], {'approximate': 'tanh'})
    f.node('slice', ['m'], [('s', 'float32', [4, 4])], {'starts': [0, 0], 'stops': [4, 8], 'steps': [1, 2]})
    f.node('add', ['state', 'c'], [('n', 'float32', [4, 8])])
    f.output('r')
    f.output('c', strides=[1, 4])
    f.output('g')
    f.output('s')
    f.output('n', alias_of='state')
    with context() as c:
        b = c.compile(f)
        assert b.outputs[1].tensor.strides == (1, 4) and b.outputs[4].alias_of == 1 and not b.outputs[4].own
        x, state = floats(66, -4, 0.125), floats(32, 10)
        outs = [floats(o.bytes // 4) if o.own else None for o in b.outputs]
        b.run([x, state], outs)
        value = lambda i, j: 2 * x[2 + 16 * i + j]
        assert all(math.isclose(outs[0][i], sum(value(i, j) for j in range(8)), rel_tol=1e-6) for i in range(4))
        clip = [[min(1.5, max(-1, value(i, j))) for j in range(8)] for i in range(4)]
        assert [outs[1][i + 4 * j] for i in range(4) for j in range(8)] == sum(clip, [])
        assert list(state) == [10 + v for v in sum(clip, [])]


def host_scalars_shared_memory_and_alignment():
    f = autofuse.Fragment('step')
    f.input('p', 'float32', [64], buffer='arena', align=64)
    f.input('g', 'float32', [64], buffer='arena', offset=64)
    f.input('lr', 'float32', [], host=True)
    f.node('mul', ['g', 'lr'], [('d', 'float32', [64])])
    f.node('sub', ['p', 'd'], [('q', 'float32', [64])])
    f.output('q')
    with context() as c:
        b = c.compile(f)
        assert b.inputs[2].host and b.inputs[0].align == 64
        memory, z = floats(128 + 16, 1), floats(64)
        start = address(memory) + (-address(memory)) % 64
        r = b.prepare()
        for rate in (0.5, 0.25):
            lr = floats(1, rate)
            r([start, start, address(lr)], [address(z)])
            assert list(z) == [1 - rate] * 64
        assert 'aligned to 64' in str(raises(autofuse.ShapeError, r, [start + 4, start + 4, address(lr)], [address(z)]))


def requests_wait_and_are_canceled():
    with context(memo_bytes=None) as c:
        f, said = add_relu(333), []
        r = c.submit(f, priority=3, deadline_ms=300000, progress=said.append)
        b = r.wait(200)
        assert b.info.n_kernels == 1 and r.wait(0).info.fragment == b.info.fragment
        e = raises(autofuse.Timeout, c.submit(add_relu(334)).wait, 0)
        assert e.retryable and isinstance(e, TimeoutError)
        r = c.submit(add_relu(335))
        r.cancel()
        raises(autofuse.Canceled, r.wait)


def threads_compile_and_run_at_once():
    with context() as c:
        done, failed = [], []

        def work(n):
            try:
                b = c.compile(add_relu(2000 + n % 2))
                r = shared.setdefault(n % 2, b.prepare())
                size = 2000 + n % 2
                x, y, z = floats(size, n, 1), floats(size, -3), floats(size)
                for _ in range(50):
                    r([address(x), address(y)], [address(z)])
                    assert z[7] == max(0.0, n + 7 - 3)
                done.append(b.info.fragment)
            except BaseException as e:
                failed.append(e)
        shared = {}
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failed and len(done) == 8 and len(set(done)) == 2, failed


def a_bundle_outlives_its_context():
    c = context()
    f = add_relu()
    r = c.submit(f)
    b = r.wait()
    c.close()
    del c, f
    x, y, z = floats(1024, 1), floats(1024, 2), floats(1024)
    p = b.prepare()
    del b
    p([address(x), address(y)], [address(z)])
    assert z[0] == 3 and r.wait().info.n_kernels == 1


def several_threads_give_the_same_bits():
    n = 1 << 19
    with context() as c:
        b = c.compile(add_relu(n))
        x, y, one, many = floats(n, -1, 2 ** -18), floats(n, 0.25), floats(n), floats(n)
        b.run([x, y], [one])
        r = b.prepare(threads=3)
        for _ in range(20):
            ctypes.memset(address(many), 0, 4 * n)
            r([address(x), address(y)], [address(many)])
            assert many == one


def strictness_is_told():
    for given, env, want in ((None, None, False), (None, '1', True), (False, '1', False), (True, None, True)):
        if env:
            os.environ['AUTOFUSE_STRICT'] = env
        try:
            with context(strict=given) as c:
                assert c.is_strict is want, (given, env)
        finally:
            os.environ.pop('AUTOFUSE_STRICT', None)


def packs_answer_without_a_server():
    with tempfile.TemporaryDirectory(prefix='afpy.') as d:
        ok(ctl('pack', d + '/p.pack', SAMPLES[0], '--socket', S.path))
        said = []
        with autofuse.Context(socket=d + '/none', packs=[d + '/p.pack'], connect_timeout_ms=1, log=lambda *a: said.append(a)) as c:
            with open(SAMPLES[0], encoding='utf-8') as f:
                assert c.compile(f.read()).info.hit == 'pack'
            e = raises(autofuse.Unavailable, c.compile, add_relu())
            assert e.retryable and 'does not exist' in str(e) and len(said) == 1 and said[0][0] == 30, said
            raises(autofuse.Unavailable, c.compile, add_relu(7))
            assert len(said) == 1, said


def the_documents_programs_run():
    for name, says in (('README.md', None), ('docs/embedding.md', "['no template for op class opaque']")):
        with open(os.path.join(ROOT, name), encoding='utf-8') as f:
            programs = re.findall(r'```python\n(.*?)```', f.read(), re.S)
        ours = [p for p in programs if 'import array, autofuse' in p]
        assert len(ours) == 1, name
        env = {'PATH': os.environ['PATH'], 'AUTOFUSE_SOCKET': S.path, 'PYTHONPATH': os.path.join(ROOT, 'python'),
               'AUTOFUSE_LIBRARY': os.environ['AUTOFUSE_LIBRARY']}
        done = subprocess.run([sys.executable, '-c', ours[0] + '\nprint(y[0])'], env=env, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0 and done.stderr == '' and abs(float(done.stdout.split()[-1]) - math.e) < 1e-6, done
        assert says is None or says in done.stdout, done


TESTS = [a_fragment_is_built_compiled_and_run, text_compiles_too, symbols_are_solved, framework_nodes_are_the_callers, memory_is_checked,
         mistakes_are_named, attributes_strides_constants_aliases,
         host_scalars_shared_memory_and_alignment, requests_wait_and_are_canceled,
         threads_compile_and_run_at_once, a_bundle_outlives_its_context, several_threads_give_the_same_bits, strictness_is_told,
         packs_answer_without_a_server, the_documents_programs_run]
if __name__ == '__main__':
    with server() as S:
        sys.exit(run(TESTS))
