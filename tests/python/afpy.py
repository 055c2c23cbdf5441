# SPDX-License-Identifier: Apache-2.0
"""What tests of the package share: the package from this tree over this build, private servers, memory."""
import array
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), 'e2e'), os.path.join(os.path.dirname(os.path.dirname(HERE)), 'python')]
from afwire import BUILD, ROOT, Server, eventually, run  # noqa: E402,F401

os.environ['AUTOFUSE_LIBRARY'] = os.path.join(BUILD, 'client', 'libautofuse.so.0')
os.environ['AUTOFUSE_AUTOSTART'] = '0'
import autofuse  # noqa: E402


def server(**options):
    """A private server that compiles."""
    return Server(fake=False, store_map_mib=64, **options)


def floats(n, start=0.0, step=0.0):
    return array.array('f', [start + step * i for i in range(n)]) if step else array.array('f', [start]) * n


def address(a):
    return a.buffer_info()[0] if len(a) else 0


def add_relu(n=1024, name='add_relu'):
    """z = relu(x + y)."""
    f = autofuse.Fragment(name)
    f.input('x', 'float32', [n])
    f.input('y', 'float32', [n])
    f.node('add', ['x', 'y'], [('t', 'float32', [n])], origin='aten.add.Tensor')
    f.node('relu', ['t'], [('z', 'float32', [n])])
    f.output('z')
    return f


def around_opaque(sizes=('s0', 8), name='around'):
    """z = exp(mm(abs(x))) where mm is the framework's."""
    f = autofuse.Fragment(name)
    if 's0' in sizes:
        f.symbol('s0', 1, 4096, hint=64)
    f.input('x', 'float32', sizes)
    f.node('abs', ['x'], [('a', 'float32', sizes)])
    f.node('opaque', ['a'], [('m', 'float32', sizes)], origin='aten.mm.default', name='the_mm')
    f.node('exp', ['m'], [('z', 'float32', sizes)])
    f.output('z')
    return f


def raises(kind, fn, *args, **kw):
    """The exception that fn raises."""
    try:
        fn(*args, **kw)
    except kind as e:
        return e
    raise AssertionError(f'no {kind.__name__}')
