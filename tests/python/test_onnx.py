#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""autofuse.onnx itself: sizes and values of each run, nodes by onnx.reference, weights, functions, faults. Skipped without onnx."""
import logging, os, re, subprocess, sys, tempfile, threading, warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from other_python import need

need('cffi', 'numpy', 'ml_dtypes', 'onnx')
import ml_dtypes
import numpy as np
import onnx

warnings.filterwarnings('ignore')
from afpy import BUILD, ROOT, autofuse, raises, run, server  # noqa: E402

os.environ.setdefault('AUTOFUSE_ONNX_LIBRARY', os.path.join(BUILD, 'importer', 'libautofuse-onnx.so.0'))
import autofuse.onnx as ao  # noqa: E402
from autofuse.onnx import _library  # noqa: E402
from onnx import helper, numpy_helper, parser  # noqa: E402

lines = []


class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


logging.getLogger('autofuse').addHandler(Lines())
logging.getLogger('autofuse').setLevel(logging.INFO)
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def model(text, head=HEAD):
    return parser.parse_model(head + text)


def prepared(text, head=HEAD):
    return ao.prepare(model(text, head), context=context)


def floats(*shape):
    return np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def close(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-6)


def the_declarations_are_the_headers():
    with open(os.path.join(ROOT, 'importer', 'autofuse_onnx.h'), encoding='utf-8') as f:
        header = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
    statuses = [_library.OK, _library.E_INVALID, _library.E_REFUSED, _library.E_MEMORY]
    assert [int(n) for n in re.findall(r'AUTOFUSE_ONNX_\w+ = (\d)', header)] == statuses
    want, checks = [], []
    for name in ('tensor', 'options'):
        t = _library.ffi.typeof('struct autofuse_onnx_' + name)
        checks.append(f'printf("%zu\\n", sizeof(struct autofuse_onnx_{name}));')
        want.append(str(_library.ffi.sizeof(t)))
        assert len(t.fields) == len(re.findall(r';', re.search(name + r' \{(.*?)\n\};', header, re.S).group(1)))
        for field, f in t.fields:
            checks.append(f'printf("%zu\\n", offsetof(struct autofuse_onnx_{name}, {field}));')
            want.append(str(f.offset))
    with tempfile.TemporaryDirectory() as d:
        with open(d + '/a.c', 'w') as f:
            f.write('#include "importer/autofuse_onnx.h"\n#include <stdio.h>\nint main(void) {\n' + '\n'.join(checks) + '\nreturn 0;\n}\n')
        subprocess.run(['cc', '-I', ROOT, '-o', d + '/a', d + '/a.c'], check=True)
        assert subprocess.run([d + '/a'], stdout=subprocess.PIPE, text=True, check=True).stdout.split() == want


def each_set_of_sizes_is_compiled_once():
    m = prepared('g (float[N, 8] x) => (float[N, 8] y) { a = Abs(x)  y = Relu(a) }')
    for n in (3, 5, 3, 5):
        x = floats(n, 8)
        close(m.run([x])[0], np.abs(x))
    assert len(m._plans) == 2
    x = floats(5, 8)
    close(m.run({'x': x})[0], np.abs(x))
    close(m.run(x)[0], np.abs(x))
    close(m.run([x.T.copy().T])[0], np.abs(x))  # not row-major
    assert len(m._plans) == 2 and all(p.n_kernels == 1 and not p.left for p in m._plans)


def values_that_are_parameters_are_part_of_it():
    m = prepared('g (float[4, 6] x, int64[K] axes) => (float[A, B] y) { s = ReduceSum<keepdims = 1>(x, axes)  y = Exp(s) }')
    x = floats(4, 6) / 10
    for axis in (0, 1, 0):
        close(m.run([x, np.array([axis])])[0], np.exp(x.sum(axis, keepdims=True)))
    assert len(m._plans) == 2
    sizes = prepared('g (float[4, 6] x, int64[2] to) => (float[A, B] y) { r = Reshape(x, to)  y = Relu(r) }')
    for to in ([6, 4], [3, -1]):
        close(sizes.run([x, np.array(to)])[0], np.maximum(x, 0).reshape(to))


def views_need_no_kernel():
    m = prepared('g (float[4, 6] x) => (float[24] y) { s = Constant<value_ints = [-1]>()  y = Reshape(x, s) }')
    x = floats(4, 6)
    close(m.run([x])[0], x.reshape(-1))
    assert m._plans[0].only_moves and m._plans[0].n_kernels == 0


def a_node_without_a_kernel_stands_between_kernels():
    lines.clear()
    m = prepared("""g (float[N, 8] x, float[8, 8] w) => (float[N, 8] y) {
        a = Abs(x)  m = MatMul(a, w)  r = Relu(m)  k = MatMul(r, w)  y = Exp(k) }""")
    for n in (2, 3):
        x, w = floats(n, 8), floats(8, 8) / 10
        close(m.run([x, w])[0], np.exp(np.maximum(np.abs(x) @ w, 0) @ w))
    plan = m._plans[0]
    assert plan.n_kernels == 3 and [str(left) for left in plan.left] == ['Fallback MatMul $reason: op MatMul'] * 2, plan.left
    ours = [line for line in lines if line.startswith('Fallback MatMul $reason: op MatMul')]
    assert len(ours) == 1, lines


def a_part_that_the_compiler_leaves_takes_its_node_along():
    m = prepared('g (int64[6] x, int64[6] y) => (int64[6] z) { a = Add(x, y)  d = Div(a, y)  z = Neg(d) }')
    x, y = np.array([7, -7, 9, 2**40, 0, 5]), np.array([2, 2, -4, 3, 1, 5])
    got = m.run([x, y])[0]
    assert got.tolist() == [-4, 2, 1, -((2**40 + 3) // 3), -1, -2], got
    assert [left.op for left in m._plans[0].left] == ['Div'] and m._plans[0].n_kernels == 2


def functions_are_read_as_what_they_are_made_of():
    own = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n'
    m = prepared('''g (float[4, 6] x) => (float[4, 6] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }''', own)
    close(m.run([floats(4, 6)])[0], 2 * floats(4, 6))
    m = prepared('g (float[2, 4] x) => (float[2, 4] y) { y = MeanVarianceNormalization<axes = [1]>(x) }')
    x = floats(2, 4)
    want = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    close(m.run([x])[0], want)
    m = prepared('g (float[1, 2, 4, 8] q, float[1, 2, 6, 8] k, float[1, 2, 6, 8] v) => (float[1, 2, 4, 8] y) { y = Attention(q, k, v) }',
                 '<ir_version: 11, opset_import: ["" : 23]>\n')
    q, k, v = floats(1, 2, 4, 8), floats(1, 2, 6, 8), floats(1, 2, 6, 8)
    s = np.exp(q @ k.swapaxes(2, 3) / np.float32(np.sqrt(8)))
    close(m.run([q, k, v])[0], (s / s.sum(-1, keepdims=True)) @ v)
    assert m._plans[0].n_kernels and {left.op for left in m._plans[0].left} == {'MatMul'}


def weights_are_no_part_of_the_key():
    def affine(seed):
        w = np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32)
        b = np.float32([seed])
        graph = helper.make_graph([helper.make_node('Mul', ['x', 'w'], ['t']), helper.make_node('Add', ['t', 'b'], ['y'])], 'affine',
                                  [helper.make_tensor_value_info('x', 1, [64, 64])], [helper.make_tensor_value_info('y', 1, [64, 64])],
                                  [numpy_helper.from_array(w, 'w'), numpy_helper.from_array(b, 'b')])
        m = ao.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)]), context=context)
        x = floats(64, 64)
        close(m.run([x])[0], x * w + b)
        return m._plans[0].bundle.info

    first, again, other = affine(1), affine(1), affine(2)
    assert first.fragment == again.fragment != other.fragment  # b is small: a constant
    assert first.bundle_bytes < 64 * 64 * 4 + 8192


def old_models_whose_initializers_are_inputs():
    w = np.arange(8, dtype=np.float32)
    nodes = [helper.make_node('Abs', ['x'], ['a']), helper.make_node('Unsqueeze', ['w'], ['u'], axes=[1]),
             helper.make_node('MatMul', ['a', 'u'], ['m']), helper.make_node('Relu', ['m'], ['y'])]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', 1, [4, 8]), helper.make_tensor_value_info('w', 1, [8])],
                              [helper.make_tensor_value_info('y', 1, [4, 1])], [numpy_helper.from_array(w, 'w')])
    m = ao.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 9)], ir_version=3), context=context)
    x = floats(4, 8)
    close(m.run([x])[0], np.maximum(np.abs(x) @ w[:, None], 0))
    assert m._plans[0].n_kernels == 2 and [left.op for left in m._plans[0].left] == ['MatMul']


def large_constants_and_fills_are_none_of_the_fragment():
    w = np.random.default_rng(3).normal(size=(64, 64)).astype(np.float32)
    nodes = [helper.make_node('Constant', [], ['w'], value=numpy_helper.from_array(w)),
             helper.make_node('Constant', [], ['to'], value=numpy_helper.from_array(np.array([5000, 64, 64]))),
             helper.make_node('ConstantOfShape', ['to'], ['f'], value=numpy_helper.from_array(np.float32([2.5]))),
             helper.make_node('Mul', ['x', 'w'], ['t']), helper.make_node('Add', ['t', 'f'], ['s']),
             helper.make_node('ReduceMax', ['s'], ['y'], keepdims=0)]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', 1, [64, 64])], [helper.make_tensor_value_info('y', 1, [])])
    m = ao.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)]), context=context)
    x = floats(64, 64)
    close(m.run([x])[0], np.max(x * w + np.float32(2.5)))
    assert len(m._plans[0]._imported.fragment) < 4096 and len(m.graph.weights) == 1, len(m._plans[0]._imported.fragment)


def element_types_of_all_kinds():
    for dtype in (np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_):
        x = np.array([[0, 1, 1], [1, 0, 3]]).astype(dtype)
        elem = helper.np_dtype_to_tensor_dtype(x.dtype)
        nodes = [helper.make_node('Where', ['c', 'x', 'x2'], ['t']), helper.make_node('Concat', ['t', 'x'], ['y'], axis=0)]
        graph = helper.make_graph(nodes, 'g',
                                  [helper.make_tensor_value_info(n, e, [2, 3]) for n, e in (('c', 9), ('x', elem), ('x2', elem))],
                                  [helper.make_tensor_value_info('y', elem, [4, 3])])
        c = np.array([[True, False, True], [False, True, False]])
        m = ao.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)]), context=context)
        x2 = x[::-1].copy()
        got = m.run([c, x, x2])[0]
        assert got.dtype == x.dtype and (got == np.concatenate([np.where(c, x, x2), x])).all(), dtype
    scalar = prepared('g (float x) => (float y) { y = Neg(x) }')
    assert scalar.run([np.float32(3)])[0].shape == () and scalar.run([np.float32(3)])[0] == -3
    empty = prepared('g (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }')
    assert empty.run([np.zeros((0, 3), np.float32)])[0].shape == (0, 3)


def what_cannot_be_a_fragment_is_run_whole():
    lines.clear()
    m = prepared('g (double[4] x) => (double[4] y) { a = Abs(x)  y = Add(a, a) }')
    close(m.run([np.arange(4.) - 2])[0], 2 * np.abs(np.arange(4.) - 2))
    close(m.run([np.arange(4.) - 3])[0], 2 * np.abs(np.arange(4.) - 3))
    assert sum(line.startswith('Fallback ') and 'float64' in line for line in lines) == 1 and not m._plans, lines
    e = raises(ao.Refused, m.plan, [np.arange(4.)])
    assert 'float64' in e.reason
    m = prepared('g (string[2] x) => (string[2] y) { y = Identity(x) }')
    assert m.run([np.array(['a', 'b'], object)])[0].tolist() == ['a', 'b']


def single_nodes_and_whole_models():
    x = floats(3, 4)
    got = ao.run_node(helper.make_node('Softmax', ['x'], ['y'], axis=1), [x], context=context)
    e = np.exp(x - x.max(1, keepdims=True))
    close(got[0], e / e.sum(1, keepdims=True))
    got = ao.run_model(model('g (float[3, 4] x) => (float[3, 4] y) { y = Sqrt(x) }'), [np.abs(x)], context=context)
    close(got[0], np.sqrt(np.abs(x)))
    assert ao.supports_device('CPU') and ao.supports_device('CPU:0') and not ao.supports_device('CUDA') and not ao.supports_device('NPU')
    assert ao.is_compatible(model('g (float[3, 4] x) => (float[3, 4] y) { y = Sqrt(x) }'))
    raises(ValueError, ao.prepare, model('g (float[3] x) => (float[3] y) { y = Sqrt(x) }'), 'CUDA')
    raises(onnx.checker.ValidationError, ao.prepare, onnx.ModelProto())


def many_threads_at_once():
    m = prepared('g (float[N, 8] x, float[8, 8] w) => (float[N, 8] y) { a = Tanh(x)  m = MatMul(a, w)  y = Relu(m) }')
    wrong = []

    def one(seed):
        rng = np.random.default_rng(seed)
        for n in (2, 3, 4, 2, 3, 4):
            x, w = rng.normal(size=(n, 8)).astype(np.float32), rng.normal(size=(8, 8)).astype(np.float32)
            want = np.maximum(np.tanh(x) @ w, 0)
            if not np.allclose(m.run([x, w])[0], want, rtol=1e-5, atol=1e-5):
                wrong.append((seed, n))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong


def without_a_server_it_is_run_whole_or_fails_if_that_is_wanted():
    gone = autofuse.Context(socket='/nonexistent/core.sock')
    x = floats(4)
    m = ao.prepare(model('g (float[4] x) => (float[4] y) { y = Abs(x) }'), context=gone)
    close(m.run([x])[0], np.abs(x))
    strict = autofuse.Context(socket='/nonexistent/core.sock', strict=True)
    m = ao.prepare(model('g (float[4] x) => (float[4] y) { y = Abs(x) }'), context=strict)
    raises(autofuse.Unavailable, m.run, [x])


if __name__ == '__main__':
    with server(**{'toolchain.host.flags': '-O1'}) as s, autofuse.Context(socket=s.path) as context:
        sys.exit(run([the_declarations_are_the_headers, each_set_of_sizes_is_compiled_once, values_that_are_parameters_are_part_of_it,
                      views_need_no_kernel, a_node_without_a_kernel_stands_between_kernels,
                      a_part_that_the_compiler_leaves_takes_its_node_along,
                      functions_are_read_as_what_they_are_made_of, weights_are_no_part_of_the_key,
                      old_models_whose_initializers_are_inputs, large_constants_and_fills_are_none_of_the_fragment,
                      element_types_of_all_kinds,
                      what_cannot_be_a_fragment_is_run_whole, single_nodes_and_whole_models, many_threads_at_once,
                      without_a_server_it_is_run_whole_or_fails_if_that_is_wanted]))
