#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Around torch.compile: no server, what the environment asks for, launches on an NPU against a library that records them."""
import logging
import os
import struct
import subprocess
import sys
import tempfile

from aftorch import check, front, kernels, made, run_tests, same, service, torch, use
from autofuse.torch import compile as compiling, npu

HERE = os.path.dirname(os.path.abspath(__file__))
randn = torch.randn


class Lines(logging.Handler):
    """What was logged."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelname, record.getMessage()))

    def __enter__(self):
        self.logger = logging.getLogger('autofuse')
        self.level = self.logger.level
        self.logger.setLevel(logging.DEBUG)
        self.logger.addHandler(self)
        return self.lines

    def __exit__(self, *_):
        self.logger.removeHandler(self)
        self.logger.setLevel(self.level)


def fn(x, w):
    return torch.relu(torch.relu(x) @ w) + 1


def with_environment(**variables):
    class Set:
        def __enter__(self):
            self.old = {k: os.environ.get(k) for k in variables}
            for k, v in variables.items():
                os.environ[k] = v

        def __exit__(self, *_):
            for k, v in self.old.items():
                os.environ.pop(k, None) if v is None else os.environ.__setitem__(k, v)
    return Set()


def without_a_server_it_is_eager_and_says_so_once():
    n, old = len(made), service._context
    with tempfile.TemporaryDirectory() as d, with_environment(AUTOFUSE_SOCKET=d + '/none.sock'), Lines() as lines, torch.no_grad():
        service._context = None
        check(fn, randn(5, 6), randn(6, 6))
        check(lambda x: x * 2 + 1, randn(5, 6))
        assert len(made) == n
        assert len([1 for level, _ in lines if level == 'WARNING']) == 1, lines
        service._context = None
        with with_environment(AUTOFUSE_STRICT='1'):
            try:
                check(fn, randn(5, 6), randn(6, 6))
            except Exception as e:
                assert 'autofused' in str(e) or 'server' in str(e), e
            else:
                raise AssertionError('strict did not fail')
    service._context = old


def what_stays_eager_is_told_once():
    compiling._announced.clear()
    with Lines() as lines, torch.no_grad():
        for k in (7, 9):
            check(lambda x, w: torch.relu(x @ w).sort()[0] * k, randn(4, 5), randn(5, 5))
    told = [line for _, line in lines if line.startswith('Fallback')]
    assert any(line.startswith('Fallback aten.sort') and ' $reason: ' in line for line in told), told
    assert 'Fallback aten.mm.default $reason: no template for op class cube' in told, told
    assert len(told) == len(set(told)), told


def a_flag_turns_it_off():
    n = len(made)
    with with_environment(AUTOFUSE_FLAGS='--enable_autofuse=false'), torch.no_grad():
        check(fn, randn(4, 4), randn(4, 4))
    assert len(made) == n


def debug_output():
    with tempfile.TemporaryDirectory() as d, with_environment(TORCH_COMPILE_DEBUG='1'), torch.no_grad():
        old = torch._dynamo.config.debug_dir_root
        torch._dynamo.config.debug_dir_root = d
        try:
            check(fn, randn(4, 4), randn(4, 4))
        finally:
            torch._dynamo.config.debug_dir_root = old
        found = {os.path.basename(p): files for p, _, files in os.walk(d) if 'autofused_' in p}
        assert len(found) == 1 and next(iter(found)).startswith('autofused_inference_'), found
        files = next(iter(found.values()))
        assert {'fx_graph.py', 'graph_before.pbtxt', 'graph_after.pbtxt'} <= set(files) and any(f.endswith('.asc') for f in files), found


def recorder(directory):
    library, record = directory + '/libascendcl.so', directory + '/record'
    subprocess.run(['cc', '-shared', '-fPIC', '-o', library, HERE + '/acl_recorder.c'], check=True)
    os.environ['ACL_RECORD'] = record
    return npu.Acl(library), record


def read(record):
    with open(record, encoding='utf-8') as f:
        return [line.split() for line in f.read().splitlines()]


def launches_on_an_npu():
    with torch.no_grad():
        g, = check(lambda x, y: (torch.relu(x + y), (x * y).sum(0)), randn(64, 50), randn(64, 50), tolerance={'rtol': 1e-5, 'atol': 1e-4})
    bundle = g.bundle
    bases = [0x10000 * (i + 1) for i in range(bundle.info.n_buffers)]
    with tempfile.TemporaryDirectory() as d:
        acl, record = recorder(d)
        n = bundle.info.n_steps
        acl.run(bundle, 0, n, bases, device=0, stream=0x77)
        acl.run(bundle, 0, n, bases, device=0, stream=0x78)
        calls = read(record)
        loaded = [c for c in calls if c[0] == 'aclrtBinaryLoadFromData']
        found = [c for c in calls if c[0] == 'aclrtBinaryGetFunction']
        assert len(loaded) == len(bundle.kernels) == len(found)  # once, for any number of runs
        assert all(c[2:] == ['7fELF', 'options', '1', 'type', '2', 'magic', '43554245'] for c in loaded), loaded
        launches = [c for c in calls if c[0] == 'aclrtLaunchKernelWithHostArgs']
        assert len(launches) == 2 * n and {c[3] for c in launches} == {'0x77', '0x78'}
        for step, c in zip([*bundle.steps, *bundle.steps], launches):
            k = bundle.kernels[step.kernel]
            head = [0xffb0] if k.needs_sync_all else []
            want = struct.pack(f'<{len(head) + len(step.args)}Q', *head, *[bases[a.buffer] + a.byte_offset for a in step.args]) + k.tiling
            assert bytes.fromhex(c[7]) == want and int(c[2]) == k.block_dim, (c, want.hex())
            zeroed = [m for m in calls if m[0] == 'aclrtMemsetAsync']
            assert not k.workspace_zeroed or [hex(bases[step.args[-1].buffer]), str(k.workspace_bytes)] in [m[1:3] for m in zeroed]
        order = [c[0] for c in calls[:3]]
        assert order[:2] == ['aclrtBinaryLoadFromData', 'aclrtBinaryGetFunction'], order
        acl.close()
        assert len([c for c in read(record) if c[0] == 'aclrtBinaryUnLoad']) == len(loaded)


def what_fails_on_an_npu_is_told():
    with torch.no_grad():
        g, = check(lambda x: torch.exp(x) + 1, randn(33))
    for name in ('aclrtBinaryLoadFromData', 'aclrtBinaryGetFunction', 'aclrtLaunchKernelWithHostArgs'):
        with tempfile.TemporaryDirectory() as d, with_environment(ACL_FAIL=name):
            acl, record = recorder(d)
            try:
                acl.run(g.bundle, 0, 1, [64] * g.bundle.info.n_buffers, 0, 0)
            except npu.AclError as e:
                assert str(e) == f'{name} failed with 107000'
            else:
                raise AssertionError(f'{name} failed unheard')
            calls = [c[0] for c in read(record)]
            assert ('aclrtBinaryUnLoad' in calls) == (name == 'aclrtBinaryGetFunction'), calls


BY_NAME = """
import torch, autofuse.torch as front
assert 'autofuse' in torch._dynamo.list_backends(exclude_tags=())
with torch.no_grad():
    x = torch.randn(7)
    assert torch.allclose(torch.compile(lambda x: torch.exp(x) + 2, backend='autofuse')(x), torch.exp(x) + 2)
assert len(front.launches()) == 1
"""


def the_entry_point_is_found_by_name():
    """Beside what pip would write of pyproject.toml's entry points."""
    import tomllib
    python = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'python')
    with open(python + '/pyproject.toml', 'rb') as f:
        project = tomllib.load(f)['project']
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + '/autofuse-0.1.0.dist-info')
        with open(d + '/autofuse-0.1.0.dist-info/METADATA', 'w', encoding='utf-8') as f:
            f.write('Metadata-Version: 2.1\nName: autofuse\nVersion: 0.1.0\n')
        with open(d + '/autofuse-0.1.0.dist-info/entry_points.txt', 'w', encoding='utf-8') as f:
            for group, entries in project['entry-points'].items():
                f.write(f'[{group}]\n' + ''.join(f'{k} = {v}\n' for k, v in entries.items()))
        r = subprocess.run([sys.executable, '-c', BY_NAME], env={**os.environ, 'PYTHONPATH': f'{d}:{python}'}, stderr=subprocess.PIPE, text=True)
        assert r.returncode == 0, r.stderr[-3000:]


def a_child_goes_on():
    """A forked child compiles and runs what is new to it."""
    torch._dynamo.reset()
    c = torch.compile(lambda x: torch.exp(x) * 3, backend=front.autofuse)
    with torch.no_grad():
        c(randn(8))
        pid = os.fork()
        if pid == 0:
            try:
                x = randn(8)
                same([torch.exp(x) * 3], [c(x)])
                f = torch.compile(lambda x: torch.exp(x) * 5, backend=front.autofuse)
                same([torch.exp(x) * 5], [f(x)])
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


sys.exit(run_tests([the_entry_point_is_found_by_name, a_child_goes_on, without_a_server_it_is_eager_and_says_so_once,
                    what_stays_eager_is_told_once, a_flag_turns_it_off, debug_output, launches_on_an_npu, what_fails_on_an_npu_is_told]))
