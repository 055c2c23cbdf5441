# SPDX-License-Identifier: Apache-2.0
"""What tests of the PyTorch front end share: a private server, and comparing a function compiled here with the same in eager."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from other_python import need  # noqa: E402

need('torch', 'cffi')
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')  # threads that wait for work leave the processor to others
os.environ.setdefault('OMP_NUM_THREADS', '2')
from afpy import server  # noqa: E402
import torch  # noqa: E402
import autofuse.torch as front  # noqa: E402
from autofuse.torch import compile as compiling, runtime, service  # noqa: E402
from autofuse.torch.lowering import LOWERINGS, target_name  # noqa: E402
from autofuse.bundle import FrameworkStep  # noqa: E402

made = []  # every graph that was compiled, in order


def _watch(*args, **kw):
    compiled = runtime.Compiled(*args, **kw)
    made.append(compiled)
    return compiled


compiling.Compiled = _watch


def use(s):
    """Everything from now on asks this server."""
    os.environ['AUTOFUSE_SOCKET'] = s.path
    service._context = None


def kernels(compiled):
    """The kernels of a graph, as the ops that they fuse."""
    return [k.ops for k in compiled.bundle.kernels]


def framework_nodes(compiled):
    """Names of the nodes that PyTorch runs."""
    return [s.origin for s in compiled.bundle.steps if hasattr(s, 'origin')]


def is_declared(compiled, step):
    """Whether PyTorch runs a node because no table of ours has it, which is declared, and not because something in it was not to be had."""
    node = compiled.translation.opaque[step.name].node
    return target_name(node) not in LOWERINGS


def clones(args):
    """Arguments of their own, with the same strides, that want gradients where the given ones do."""
    def one(a):
        if not isinstance(a, torch.Tensor):
            return a
        b = torch.empty_strided(a.shape, a.stride(), dtype=a.dtype)
        b.copy_(a.detach())
        return b.requires_grad_(a.requires_grad)
    return [one(a) for a in args]


def tensors(result):
    return [r for r in torch.utils._pytree.tree_leaves(result) if isinstance(r, torch.Tensor)]


def same(a, b, **tolerance):
    """Equal shapes, strides, dtypes, and elements within rounding."""
    assert len(a) == len(b), (len(a), len(b))
    for x, y in zip(a, b):
        ours, theirs = ((t.shape, t.stride(), t.dtype) for t in (y, x))
        assert ours == theirs, (ours, theirs)
        torch.testing.assert_close(y, x, equal_nan=True, **tolerance)


def check(fn, *args, calls=2, exact=False, tolerance=None, **how):
    """fn compiled here gives what it gives in eager, in its results and in what it did to its arguments. Returns the graphs."""
    torch._dynamo.reset()
    before = len(made)
    compiled = torch.compile(fn, backend=front.autofuse, **how)
    for _ in range(calls):
        ours, theirs = clones(args), clones(args)
        got, want = compiled(*ours), fn(*theirs)
        same(tensors(want), tensors(got), **({'rtol': 0, 'atol': 0} if exact else tolerance or {}))
        same(tensors(theirs), tensors(ours), **({'rtol': 0, 'atol': 0} if exact else tolerance or {}))
    return made[before:]


def run_tests(tests):
    """Runs them over one private server; 0 where all went well."""
    import traceback
    failed = 0
    with server(**{'toolchain.host.flags': '-O1'}) as s:
        use(s)
        for t in tests:
            try:
                t()
                print(f'ok {t.__name__}', flush=True)
            except BaseException:  # noqa: B902
                failed += 1
                traceback.print_exc()
                print(f'not ok {t.__name__}', flush=True)
    return 1 if failed else 0


__all__ = ['FrameworkStep', 'check', 'clones', 'framework_nodes', 'front', 'is_declared', 'kernels', 'made', 'run_tests', 'runtime', 'same',
           'server', 'service', 'tensors', 'torch', 'use']
