#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""autofusectl: help, mistakes, offline and through a server; the program of docs/client.md."""
import json, os, re, struct, subprocess, sys, tempfile, xml.dom.minidom
from afwire import *
from ctl import *

COMMANDS = ['compile', 'run', 'verify', 'warm', 'explain', 'key', 'stats', 'clear']


def help_of_every_command():
    top = ok(ctl('--help'))
    for c in COMMANDS:
        assert re.search(rf'^  {c} ', top.out, re.M), top
        d = ok(ctl(c, '--help'))
        assert d.out.startswith(f'usage: autofusectl {c}') and '--json' in d.out and '--help' in d.out and not d.err, d
        assert all(len(l) <= 110 for l in d.out.splitlines()), d.out
    assert re.fullmatch(r'autofusectl \d+\.\d+\.\d+\n', ok(ctl('--version')).out)


def usage_errors_are_code_2_and_one_reason():
    for args, words in [([], 'usage'), (['frobnicate'], 'unknown command: frobnicate'), (['compile'], 'missing: FRAG.json'),
                        (['compile', '--colour', 'x'], 'unknown option: --colour'), (['run', '-x', 'f'], 'unknown option: -x'),
                        (['run', 'a', 'b'], 'too many arguments from: b'), (['run', '--seed', 'one', 'f'], 'not a number: --seed'),
                        (['run', '--seed'], 'needs a value: --seed'), (['stats', '--json=yes'], 'takes no value: --json'),
                        (['compile', '--offline', '-o', '/dev/null', 'a', 'b'], '--output is for one fragment'), (['compile', '-o', '-', 'a'], "'-' is no name of a file"),
                        (['export', ''], "'' is no name of a file"), (['pack', '-', 'a'], "'-' is no name of a file"), (['keygen', '-'], "'-' is no name of a file"),
                        (['keygen', ''], "'' is no name of a file"), (['watch', '--color', 'red'], 'auto, always or never'), (['history', '--since', '5x'], 'not a time')]:
        d = ctl(*args)
        assert d.code == 2 and words in d.err and not d.out, (args, d)


def mistakes_in_a_fragment_name_node_and_field():
    bad = SMALL.replace('"t", "y"', '"t", "nowhere"').replace('"op": "abs"', '"op": "abz"')
    d = ctl('compile', '--offline', '-', input=bad)
    assert d.code == 1 and 'nowhere' in d.err and 'abz' in d.err and not d.out, d
    for text in ('', '{', '[]', '{"schema": "autofuse.fragment/2"}', SMALL + 'x', SMALL.replace('"x"', '"x\\u0000"'), '[' * 100000):
        d = ctl('explain', '-', input=text)
        assert d.code == 1 and d.err and not d.out, (text[:50], d)
    absent = os.path.join(NOWHERE, 'f.json')
    d = ctl('compile', '--offline', absent)
    assert d.code == 1 and d.err == f'error: {absent}: No such file or directory\n', d


def samples_offline_equal_the_reference():
    for f in SAMPLES:
        for more in ([], ['--specials', '--seed', '7', '--checked'], ['--unfused']):
            j = ok(ctl('run', '--offline', '--compare', '--json', *more, f)).json()
            assert j['identical'] and j['largest_error'] == 0, (f, more, j)
            if not more:
                assert j['launches'] == 1 and j['fallbacks'] == [], j


def run_takes_inputs_and_saves_outputs():
    with tempfile.TemporaryDirectory() as d:
        x, y = [i - 16.0 for i in range(32)], [0.5] * 32
        open(d + '/x', 'wb').write(struct.pack('<32f', *x))
        open(d + '/y', 'wb').write(struct.pack('<32f', *y))
        ok(ctl('run', '--offline', '-i', f'x={d}/x', '--input', f'y={d}/y', '--save', d + '/out', '-', input=SMALL))
        assert struct.unpack('<32f', open(d + '/out/0.bin', 'rb').read()) == tuple(abs(a) + 0.5 for a in x)
        open(d + '/x', 'ab').write(b'more')
        r = ctl('run', '--offline', '-i', f'x={d}/x', '-', input=SMALL)
        assert r.code == 1 and 'takes 128 bytes' in r.err, r
        r = ctl('run', '--offline', '-i', f'z={d}/x', '-', input=SMALL)
        assert r.code == 1 and 'has no such input' in r.err, r


def compile_writes_bundle_and_sources():
    with tempfile.TemporaryDirectory() as d:
        j = ok(ctl('compile', '--offline', '--json', '-o', d + '/b', '--sources', d + '/src', '-', input=SMALL)).json()[0]
        assert open(d + '/b', 'rb').read(4) == b'AFB1'
        source = open(f"{d}/src/{j['kernels'][0]['symbol']}.cpp").read()
        assert 'extern "C" __global__ __aicore__' in source and j['kernels'][0]['ops'] == 'abs,add', (j, source)
        table = ok(ctl('compile', '--offline', '-', SAMPLES[2], input=SMALL)).out.splitlines()
        assert table[0].split() == ['fragment', 'nodes', 'launches', 'fallbacks', 'hit', 'compile', 'bundle', 'key'] and len(table) == 3
        starts = [m.start() for m in re.finditer(r'\S+', table[0])]
        assert all(row[starts[-1] - 2:starts[-1]] == '  ' for row in table), 'columns stand one below the other'


def keys_ignore_names_and_nothing_else():
    base = ok(ctl('key', '--json', '-', input=SMALL)).json()
    same = SMALL.replace('n_t', 'other').replace('x.abs', 'aten.abs').replace('"test"', '"named"')
    assert ok(ctl('key', '--json', '-', input=same)).json()['fragment'] == base['fragment']
    other = fragment([('t', 'neg', ['x'], 'float32', [4, 8], {}), ('u', 'add', ['t', 'y'], 'float32', [4, 8], {})], ['x', 'y'], ['u'])
    assert ok(ctl('key', '--json', '-', input=other)).json()['fragment'] != base['fragment']
    salted = ok(ctl('key', '--json', '-', input=SMALL, env={'AUTOFUSE_CACHE_SALT': 'pepper'})).json()
    assert salted['fragment'] == base['fragment'] and salted['environment'] != base['environment']
    names = [i['name'] for i in ok(ctl('key', '--explain', '--json', '-', input=SMALL)).json()['ingredients']]
    assert names[0] == 'canonical form of the fragment' and {'soc', 'rules', 'templates', 'toolchain closure'} <= set(names), names
    text = ok(ctl('key', '--explain', '-', input=SMALL)).out
    assert 'cc1plus' in text and 'kernel_operator.h' in text and base['fragment'] in text, text


SIBLINGS = fragment([('m', 'reduce_max', ['x'], 'float32', [4], {'axes': [1]}), ('s', 'reduce_sum', ['x'], 'float32', [4], {'axes': [1]})], ['x'], ['m', 's'])
APART = fragment([('a', 'abs', ['x'], 'float32', [4, 8], {}), ('b', 'opaque', ['a'], 'float32', [4, 8], {}), ('c', 'add', ['a', 'b'], 'float32', [4, 8], {})],
                 ['x'], ['c'])
SYMBOLIC = json.dumps({'schema': 'autofuse.fragment/1', 'symbols': [{'name': 'batch', 'min': 1, 'max': 65536, 'hint': 128}],
                       'inputs': [{'name': 'x', 'dtype': 'float32', 'shape': ['batch', 50]}],
                       'nodes': [{'name': 'n', 'op': 'abs', 'inputs': ['x'], 'outputs': [{'name': 'y', 'dtype': 'float32', 'shape': ['batch', 50]}]}],
                       'outputs': ['y']})


def explain_names_nodes_rules_and_bytes():
    d = ok(ctl('explain', SAMPLES[0]))
    assert d.out.startswith('tf_abs_add_relu_broadcast: 3 nodes → 1 kernel, 0 left to the framework\n'), d
    assert 'n0 (Abs), n1 (AddV2), n2 (Relu)' in d.out and 'elementwise_broadcast' in d.out, d
    j = ok(ctl('explain', '--json', SAMPLES[0])).json()
    assert j['bytes_fused'] < j['bytes_unfused'] / 2 and j['launches_unfused'] == 3 and j['launches'] == 1
    siblings = ok(ctl('explain', '-', input=SIBLINGS))
    assert 'beside' in siblings.out and '1 kernel' in siblings.out and ' siblings ' in siblings.out, siblings
    k = ok(ctl('explain', '--json', '-', input=SIBLINGS)).json()['kernels'][0]
    assert sum(p['hbm_bytes'] for p in k['phases']) == k['hbm_bytes'] and k['ub_bytes'] > 0, k
    apart = ok(ctl('explain', '-', input=APART))  # the constraint behind a refusal is shown without being asked for
    assert apart.out.count('Fallback x.opaque $reason: no template for op class opaque\n') == 1 and 'launches: 3, 3' in apart.out, apart
    assert 'refused' in apart.out and 'a kernel between the two needs one and feeds the other' in apart.out, apart
    symbolic = ok(ctl('explain', '-', input=SYMBOLIC))
    assert re.search(r'^moved at batch = [1-9]\d*: [1-9]', symbolic.out, re.M), symbolic
    dot = ok(ctl('explain', '--dot', SAMPLES[0]))
    assert dot.out.startswith('digraph') and 'cluster' in dot.out, dot


def pictures_are_sound_and_hold_every_node():
    for f in SAMPLES:
        svg = ok(ctl('explain', '--svg', '-', f)).out
        doc = xml.dom.minidom.parseString(svg)
        words = ' '.join(t.firstChild.data for t in doc.getElementsByTagName('text'))
        frag = json.load(open(f))
        for n in frag['nodes']:
            assert n['op'] in words, (n, words)
        for i in frag['inputs']:
            assert i['name'] in words.split(), (i, words)
        assert 'stroke-dasharray' not in svg
        assert svg == ok(ctl('explain', '--svg', '-', f)).out
    assert 'stroke-dasharray' in ok(ctl('explain', '--svg', '-', '-', input=APART)).out  # the framework's
    # Names are text, never markup.
    hostile = SMALL.replace('"x"', '"<&\\"x>"')
    svg = ok(ctl('explain', '--svg', '-', '-', input=hostile)).out
    assert '&lt;&amp;&quot;x&gt;' in svg
    xml.dom.minidom.parseString(svg)


def a_form_runs_at_the_sizes_that_are_named():
    f = os.path.join(ROOT, 'tests', 'fragments', 'symbols_softmax.json')
    for n in (0, 1, 31):
        j = ok(ctl('run', '--offline', '--compare', '--json', '--symbol', f's0={n}', f)).json()
        assert j['identical'], j
        assert f'[{n}, 100]' in ok(ctl('run', '--offline', '--compare', '--symbol', f's0={n}', f)).out
    for spec, words in [('s0=-1', 'below its least value'), ('s0=1048577', 'above its greatest value'), ('zz=3', 'no such symbol'),
                        ('s0', 'wants NAME=SIZE'), ('s0=1x', 'no number'), ('s0=99999999999999999999', 'no number')]:
        r = ctl('run', '--offline', '--symbol', spec, f)
        assert r.code == 1 and words in r.err and r.err.count('\n') == 1, r


def through_a_server():
    with Server(fake=False) as s:
        env = {'AUTOFUSE_SOCKET': s.path}
        first = ok(ctl('compile', '--json', *SAMPLES, env=env))
        assert [j['hit'] for j in first.json()] == ['compiled'] * 6
        assert 'Fallback' not in first.err, first
        assert [j['hit'] for j in ok(ctl('compile', '--json', *SAMPLES, env=env)).json()] == ['store'] * 6  # first asked again
        for f in SAMPLES:
            j = ok(ctl('run', '--compare', '--json', f, env=env)).json()
            assert j['identical'] and j['hit'] in ('store', 'hot'), j
        st = ok(ctl('stats', '--json', env=env)).json()
        assert st['fragment_compiles'] == 6, st
        assert re.search(r'^fragment_compiles +6$', ok(ctl('stats', env=env)).out, re.M)
        ok(ctl('clear', env=env))
        assert ok(ctl('compile', '--json', SAMPLES[0], env=env)).json()[0]['hit'] == 'compiled'
        # The offline compiler and the server agree on key and kernels.
        a = ok(ctl('compile', '--offline', '--json', SAMPLES[0])).json()[0]
        b = ok(ctl('compile', '--json', SAMPLES[0], env=env)).json()[0]
        assert a['fragment'] == b['fragment'] and [k['symbol'] for k in a['kernels']] == [k['symbol'] for k in b['kernels']]


def no_server_is_one_clear_line():
    with tempfile.TemporaryDirectory() as d:
        for path, words in [(d + '/none.sock', 'does not exist'), (d, 'is a directory'), ('/' + 'x' * 120, "the system's limit is 107")]:
            r = ctl('compile', SAMPLES[0], env={'AUTOFUSE_SOCKET': path})
            assert r.code == 1 and words in r.err and r.err.count('\n') == 1 and not r.out, r


def verify_has_one_verdict():
    if not os.path.isdir(ONNX):
        return
    for test, want in [('test_add', 'ok'), ('test_softmax_example', 'ok'), ('test_reshape_negative_dim', 'ok'), ('test_conv_with_strides_padding', 'refused: op Conv'),
                       ('test_string_concat', None)]:
        d = f'{ONNX}/{test}'
        if not os.path.isdir(d):
            continue
        r = ctl('verify', d + '/model.onnx', '--data', d, '--offline')
        last = r.out.splitlines()[-1]
        assert last.startswith(want) and (r.code == 0) == (want == 'ok'), r
        assert re.search(r'^kernels launched: \d+, nodes fused: \d+, nodes left to fallback: \d+$', r.out, re.M), r
    r = ctl('verify', f'{ONNX}/test_add/model.onnx', '--data', f'{ONNX}/test_sub/test_data_set_0', '--offline')
    assert r.code == 1 and r.out.splitlines()[-1].startswith('mismatch: output 0 "sum"'), r
    answer = ok(ctl('verify', '--json', f'{ONNX}/test_add/model.onnx', '--offline')).json()
    assert answer['verdict'] == 'ok' and answer['fallbacks'] == [], answer
    r = ctl('verify', '--json', f'{ONNX}/test_min_int64/model.onnx', '--data', f'{ONNX}/test_min_int64', '--offline')
    answer = json.loads(r.out)
    assert len(answer['fallbacks']) == answer['nodes_fallback'] and all(re.match(r'Fallback \w+ \$reason: \S', f) for f in answer['fallbacks']), answer
    r = ctl('verify', '/dev/null', '--offline')
    assert r.code == 1 and r.out.splitlines()[-1].startswith(('refused: ', 'failed: ')), r


def warm_compiles_what_it_finds():
    with Server(fake=False) as s, tempfile.TemporaryDirectory() as d:
        env = {'AUTOFUSE_SOCKET': s.path}
        os.makedirs(d + '/deep/er')
        open(d + '/deep/er/small.json', 'w').write(SMALL)
        open(d + '/notes.txt', 'w').write('not a model')
        open(d + '/broken.json', 'w').write('{')
        j = ok(ctl('warm', '--json', d, SAMPLES[0], env=env)).json()
        assert {os.path.basename(f['file']): f['outcome'] for f in j} == {'broken.json': 'refused', 'small.json': 'compiled', os.path.basename(SAMPLES[0]): 'compiled'}, j
        text = ok(ctl('warm', d, SAMPLES[0], env=env)).out
        assert text.endswith('3 files: 0 compiled, 2 found, 1 refused, 0 failed\n') and 'broken.json' in text, text
        if os.path.isdir(ONNX):
            j = ok(ctl('warm', '--json', f'{ONNX}/test_relu', f'{ONNX}/test_reshape_negative_dim', env=env)).json()
            assert [f['outcome'] for f in j] == ['compiled', 'compiled'], j


def the_documented_program_runs():
    with Server(fake=False) as s, tempfile.TemporaryDirectory() as d:
        text = open(os.path.join(ROOT, 'docs', 'client.md')).read()
        program = re.search(r'```c\n(.*?)```', text, re.S).group(1)
        open(d + '/example.c', 'w').write(program)
        lib = os.path.join(BUILD, 'client')
        subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-I', os.path.join(ROOT, 'client'), d + '/example.c', '-L', lib, '-lautofuse', '-Wl,-rpath,' + lib, '-o',
                        d + '/example'], check=True)
        out = subprocess.run([d + '/example'], env={'AUTOFUSE_SOCKET': s.path}, capture_output=True, text=True, check=True).stdout
        assert out == 'y[0] = 0, y[511] = 0, y[1023] = 512\n', out
        out = subprocess.run([d + '/example'], env={'AUTOFUSE_SOCKET': d + '/none'}, capture_output=True, text=True, check=True).stdout
        assert out.startswith('unavailable: no server is running'), out
        symbols = subprocess.run(['nm', '-D', '--defined-only', os.path.join(lib, 'libautofuse.so')], capture_output=True, text=True, check=True).stdout
        names = [l.split()[2] for l in symbols.splitlines() if l.split()[1] != 'A']
        assert names and all(n.startswith('autofuse_') for n in names), names
        needed = subprocess.run(['objdump', '-p', os.path.join(lib, 'libautofuse.so')], capture_output=True, text=True, check=True).stdout
        assert 'lmdb' not in needed and 'libyaml' not in needed and 'libuv' not in needed, needed


if __name__ == '__main__':
    sys.exit(run([help_of_every_command, usage_errors_are_code_2_and_one_reason, mistakes_in_a_fragment_name_node_and_field, samples_offline_equal_the_reference, a_form_runs_at_the_sizes_that_are_named,
                  run_takes_inputs_and_saves_outputs, compile_writes_bundle_and_sources, keys_ignore_names_and_nothing_else, explain_names_nodes_rules_and_bytes,
                  pictures_are_sound_and_hold_every_node, through_a_server, no_server_is_one_clear_line, verify_has_one_verdict, warm_compiles_what_it_finds,
                  the_documented_program_runs]))
