#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/c: the published samples, one with symbols, one with a node of the framework's, and what it says where it cannot."""
import json, math, os, subprocess, sys, tempfile
from afwire import *
from ctl import SAMPLES, fragment

PROGRAM = os.path.join(BUILD, 'examples', 'c', 'autofuse_run')
S = None


def program(*args, text=None, code=0):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
        f.write(text or '')
        f.flush()
        done = subprocess.run([PROGRAM, *([f.name] if text else []), *args], env={'AUTOFUSE_SOCKET': S.path}, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done
    return (done.stderr if code else done.stdout).splitlines()


def samples_are_one_kernel_each():
    for s in SAMPLES:
        lines = program(s)
        assert len([l for l in lines if l.startswith('kernel: autofused_')]) == 1, (s, lines)
    lines = program(SAMPLES[2])
    assert lines[-1].endswith(f'the first element is {math.exp(0.75):g}'), lines


def sizes_are_given_and_nodes_are_the_programs():
    text = json.loads(fragment([('a', 'abs', ['x'], 'float32', ['n', 8], {}), ('m', 'opaque', ['a'], 'float32', ['n', 8], {}),
                                ('z', 'exp', ['m'], 'float32', ['n', 8], {})], ['x'], ['z'], symbols=[{'name': 'n', 'min': 1, 'max': 100}]))
    text['inputs'][0]['shape'] = ['n', 8]
    lines = program('7', text=json.dumps(text))
    assert lines[0] == 'framework: x.opaque' and sorted(l.split()[0] for l in lines[1:]) == ['kernel:', 'kernel:', 'z:'], lines
    assert lines[-1] == f'z: {7 * 8 * 4} bytes, the first element is {math.exp(0.75):g}', lines
    assert 'n = 101' in program('101', text=json.dumps(text), code=1)[0]
    assert '2 symbols' in program('1', '2', text=json.dumps(text), code=1)[0]


def mistakes_are_told():
    assert program(code=1) == ['usage: run FRAGMENT.json [SIZE...]'] and program('/nowhere.json', code=1)[0].startswith('usage')
    assert 'nodes' in program(text='{"schema": "autofuse.fragment/1"}', code=1)[0]


with Server(fake=False, store_map_mib=64) as S:
    status = run([samples_are_one_kernel_each, sizes_are_given_and_nodes_are_the_programs, mistakes_are_told])
sys.exit(status)
