# SPDX-License-Identifier: Apache-2.0
"""Running autofusectl in tests."""
import json, os, subprocess, tempfile
from afwire import BUILD, ROOT

CTL = os.path.join(BUILD, 'tools', 'autofusectl')
SAMPLES = [os.path.join(ROOT, 'examples', 'fragments', n + '.json')
           for n in ('tf_abs_add_relu_broadcast', 'tf_abs_reduce_sum', 'tf_abs_relu_exp', 'torch_add_ge', 'torch_gather_add', 'torch_mul_reducesum')]
NOWHERE = os.path.join(tempfile.gettempdir(), f'afe2e.nowhere.{os.getpid()}')  # nothing is there
ONNX = '/usr/share/libonnx-testdata/data/node'


class Done:
    def __init__(self, p):
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f'exit {self.code}\nout: {self.out[-1500:]}\nerr: {self.err[-1500:]}'


def ctl(*args, env=None, input=None, prefix=(), timeout=300):
    """env: added to a bare one; autostart is off unless it says otherwise."""
    e = {'PATH': os.environ['PATH'], 'HOME': os.path.join(BUILD, 'tests', 'home'), 'AUTOFUSE_AUTOSTART': '0',
         'AUTOFUSE_SOCKET': os.path.join(NOWHERE, 'core.sock'), **(env or {})}
    e = {k: v for k, v in e.items() if v is not None}
    return Done(subprocess.run([*prefix, CTL, *map(str, args)], env=e, input=input, capture_output=True, text=True, timeout=timeout))


def ok(done):
    assert done.code == 0, done
    return done


def fragment(nodes, inputs, outputs, **more):
    """A fragment over float32 [4, 8] inputs: nodes are (name, op, inputs, dtype, shape, attrs)."""
    f = {'schema': 'autofuse.fragment/1', 'name': 'test',
         'inputs': [{'name': n, 'dtype': 'float32', 'shape': [4, 8]} for n in inputs], 'constants': [],
         'nodes': [{'name': 'n_' + n, 'op': op, 'inputs': i, 'attrs': a, 'origin': 'x.' + op, 'outputs': [{'name': n, 'dtype': d, 'shape': s}]}
                   for n, op, i, d, s, a in nodes], 'outputs': outputs}
    f.update(more)
    return json.dumps(f)


SMALL = fragment([('t', 'abs', ['x'], 'float32', [4, 8], {}), ('u', 'add', ['t', 'y'], 'float32', [4, 8], {})], ['x', 'y'], ['u'])
