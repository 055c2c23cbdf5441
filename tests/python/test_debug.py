#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""AUTOFUSE_FLAGS and AUTOFUSE_DFX_FLAGS: nothing compiled where forbidden; what was compiled, as files that people can read."""
import glob, json, os, re, sys, tempfile
from afpy import ROOT, around_opaque, add_relu, autofuse, raises, run, server
from autofuse import flags

S = None


def flags_are_read():
    assert flags.parse('--a=b; --c ;-d=e=f,--g=') == {'a': 'b', 'c': 'true', 'd': 'e=f', 'g': ''} and flags.parse('') == {}
    for text, on in (('', True), ('--enable_autofuse=true', True), ('--other=1;--enable_autofuse=False', False)):
        os.environ['AUTOFUSE_FLAGS'] = text
        assert flags.is_enabled() is on, text
    os.environ.pop('AUTOFUSE_FLAGS')
    for text, where in (('', None), ('--debug_dir=/d', None), ('--codegen_compile_debug=true;--debug_dir=/d', '/d'),
                        ('--codegen_compile_debug=true', 'autofuse_debug')):
        os.environ['AUTOFUSE_DFX_FLAGS'] = text
        assert flags.debug_dir() == where, text
    os.environ.pop('AUTOFUSE_DFX_FLAGS')


def nothing_is_compiled_where_it_is_forbidden():
    os.environ['AUTOFUSE_FLAGS'] = '--enable_autofuse=false'
    try:
        with autofuse.Context(socket=S.path) as c:
            e = raises(autofuse.Unavailable, c.compile, add_relu())
            assert 'AUTOFUSE_FLAGS' in str(e) and not e.retryable
    finally:
        os.environ.pop('AUTOFUSE_FLAGS')
    assert S.stats()['requests'] == 0


def files_show_what_was_compiled():
    with tempfile.TemporaryDirectory() as d:
        os.environ['AUTOFUSE_DFX_FLAGS'] = f'--codegen_compile_debug=true;--debug_dir={d}/deep/er'
        try:
            with autofuse.Context(socket=S.path) as c:
                b = c.compile(around_opaque(name='a/b "c"'))
                with open(os.path.join(ROOT, 'examples', 'fragments', 'torch_add_ge.json'), encoding='utf-8') as f:
                    text = c.compile(f.read())
        finally:
            os.environ.pop('AUTOFUSE_DFX_FLAGS')
        where = f'{d}/deep/er/a_b__c__{b.info.fragment[:12]}'
        before, after = (open(f'{where}/graph_{w}.pbtxt', encoding='utf-8').read() for w in ('before', 'after'))
        assert re.findall(r'^  op: "(.*)"', before, re.M) == ['abs', 'opaque', 'exp'] and 'aten.mm.default' in before
        ops = re.findall(r'^  op: "(.*)"', after, re.M)
        assert ops == [b.kernels[b.steps[0].kernel].symbol, 'opaque', b.kernels[b.steps[2].kernel].symbol], ops
        assert re.findall(r'^  input: "(.*)"', after, re.M)[0] == 'x' and 'key: "writes" value { s: "z" }' in after
        assert before.count('{') == before.count('}') and after.count('node {') == 3
        for k in b.kernels:
            source = open(f'{where}/{k.symbol}.asc', encoding='utf-8').read()
            assert k.symbol in source and '__global__' in source
            assert open(f'{where}/{k.symbol}.tiling.bin', 'rb').read() == k.tiling and k.tiling
        events = json.load(open(f'{where}/timeline.json', encoding='utf-8'))['traceEvents']
        assert [e['dur'] for e in events] == [b.kernels[0].modelled_cycles, 0, b.kernels[1].modelled_cycles]
        assert events[2]['ts'] == events[0]['dur'] > 0
        assert glob.glob(f'{d}/deep/er/fragment_{text.info.fragment[:12]}/autofused_*.asc')


def a_place_that_cannot_be_written_is_a_warning():
    said = []
    with tempfile.NamedTemporaryFile() as f:
        os.environ['AUTOFUSE_DFX_FLAGS'] = f'--codegen_compile_debug=true;--debug_dir={f.name}/x'
        try:
            with autofuse.Context(socket=S.path, log=lambda level, line: said.append((level, line))) as c:
                assert c.compile(add_relu()).info.n_kernels == 1
        finally:
            os.environ.pop('AUTOFUSE_DFX_FLAGS')
    assert len(said) == 1 and said[0][0] == 30 and 'nothing is written' in said[0][1], said


if __name__ == '__main__':
    with server() as S:
        sys.exit(run([flags_are_read, nothing_is_compiled_where_it_is_forbidden, files_show_what_was_compiled,
                      a_place_that_cannot_be_written_is_a_warning]))
