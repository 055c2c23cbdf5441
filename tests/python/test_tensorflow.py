#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""autofuse.tensorflow against TensorFlow eager: kernels, sizes that are symbols, gradients, variables, what stays TensorFlow's.

AUTOFUSED_TENSORFLOW_PYTHON names a Python that has it, where build/venv has not; without it is skipped.
"""
import os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from other_python import need

if os.environ.get('AUTOFUSED_TENSORFLOW_PYTHON'):
    os.environ['AUTOFUSED_TORCH_PYTHON'] = os.environ['AUTOFUSED_TENSORFLOW_PYTHON']
need('cffi', 'numpy', 'tensorflow')
os.environ.update(TF_CPP_MIN_LOG_LEVEL='3', CUDA_VISIBLE_DEVICES='')
import logging

import numpy as np
import tensorflow as tf
from afpy import ROOT, autofuse, raises, run, server
import autofuse.tensorflow as aft

lines = []


class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


logging.getLogger('autofuse').addHandler(Lines())
logging.getLogger('autofuse').setLevel(logging.INFO)
rng = np.random.default_rng(7)


def normal(*shape, dtype=np.float32):
    return tf.constant(rng.normal(size=shape).astype(np.float32), tf.as_dtype(dtype))


def compiled(f, *specs):
    return aft.compile(f, input_signature=list(specs) or None, context=context)


def open_(*shape):
    return tf.TensorSpec(shape, tf.float32)


def close(got, want, rtol=1e-5):
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype and a.shape == b.shape, (a, b)
            np.testing.assert_allclose(a.numpy().astype(np.float64), b.numpy().astype(np.float64), rtol=rtol, atol=rtol)


def samples():
    """The three published functions: one kernel each."""
    def abs_relu_exp(x):
        return tf.exp(tf.nn.relu(tf.abs(x)))

    def abs_reduce_sum(x):
        return tf.reduce_sum(tf.abs(x), axis=1)

    def abs_add_relu(x, b):
        return tf.nn.relu(tf.abs(x) + b)

    x, b = normal(256, 100), normal(1, 100)
    for f, args in ((abs_relu_exp, [normal(64, 1024)]), (abs_reduce_sum, [x]), (abs_add_relu, [x, b])):
        g = compiled(f)
        close(g(*args), f(*args))
        assert len(g.kernels) == 1 and g.kernels[0].startswith('autofused_') and not g.left, (g.kernels, g.left)
        assert g._plans()[0].n_runs == 1


def open_sizes_are_symbols():
    f = lambda x, b: tf.nn.softmax(tf.abs(x) + b)  # noqa: E731
    g = compiled(f, open_(None, None), open_(1, None))
    for n, m in ((31, 40), (7, 40), (128, 65), (2, 3)):
        x, b = normal(n, m), normal(1, m)
        close(g(x, b), f(x, b))
    assert len(g._plans()) == 1, g._plans()
    for n, m in ((40, 40), (1, 8), (0, 8), (6, 1)):  # equal sizes, and those of 0 and 1, are compiled for themselves
        x, b = normal(n, m), normal(1, m)
        close(g(x, b), f(x, b))
    assert len(g._plans()) == 5, len(g._plans())


def gradients_of(f, xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


def gradients_are_tensorflows_own_compiled():
    def f(x, b):
        return tf.tanh(tf.nn.relu(x * 2 + b)) * tf.sigmoid(x), tf.reduce_mean(tf.square(x), axis=0)

    for specs in ((), (open_(None, 24), open_(1, 24))):
        g = compiled(f, *specs)
        for n in (12, 33):
            xs = [normal(n, 24), normal(1, 24)]
            close(gradients_of(g, xs), gradients_of(f, xs))
    back = list(g._traced.values())[0].flat._backward
    plan = list(back.plans.values())[0][0]
    assert plan.kernels and len(back.plans) == 1 and plan.n_runs, (plan.kernels, plan.left)

    def twice(h, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = h(x)
            d = inner.gradient(y, x)
        return outer.gradient(d, x)

    h = lambda x: tf.exp(x) * tf.sin(x)  # noqa: E731
    x = normal(40)
    close(twice(compiled(h), x), twice(h, x), 1e-4)


def variables_are_fed_and_trained():
    w, b = tf.Variable(normal(20, 10)), tf.Variable(tf.zeros([10]))

    def f(x):
        h = tf.nn.gelu(tf.matmul(x, w) + b)
        return {'loss': tf.reduce_mean(tf.square(h)), 'none': None, 'h': (tf.nn.softmax(h), h)}

    g = compiled(f, open_(None, 20))
    for n in (16, 9):
        x = normal(n, 20)
        close(g(x), f(x))
        grads = []
        for h in (g, f):
            with tf.GradientTape() as tape:
                y = h(x)['loss']
            grads.append(tape.gradient(y, [w, b]))
        close(grads[0], grads[1])
        w.assign_sub(grads[1][0])
        b.assign_sub(grads[1][1])
    assert [left.op for left in g.left] == ['MatMul'] and len(g.kernels) == 2, (g.left, g.kernels)
    assert any(line == 'Fallback MatMul $reason: op MatMul' for line in lines), lines


def within_another_function():
    f = lambda x: tf.exp(-tf.abs(x)) + 1  # noqa: E731
    g = compiled(f)
    outer = tf.function(lambda x: g(x) * 2)
    x = normal(5, 6)
    close(outer(x), f(x) * 2)
    close(gradients_of(outer, [x]), gradients_of(lambda x: f(x) * 2, [x]))
    trained = tf.function(lambda x: gradients_of(g, [x]))
    close(trained(x), gradients_of(f, [x]))
    text = str(outer.get_concrete_function(x).graph.as_graph_def())
    assert 'AutofuseLaunch' in text or os.environ.get('AUTOFUSE_TENSORFLOW_OP'), text
    vague = tf.function(lambda x: compiled(f, open_(None, 6))(x), input_signature=[open_(None, 6)])
    close(vague(x), f(x))  # no size is known there: TensorFlow's


def what_has_effects_is_tensorflows_whole():
    lines.clear()
    count = tf.Variable(0)

    def f(x):
        count.assign_add(1)
        return tf.abs(x)

    g = compiled(f)
    x = normal(4)
    close(g(x), tf.abs(x))
    close(g(x), tf.abs(x))
    assert count.numpy() == 2 and sum('AssignAddVariableOp' in line for line in lines) == 1, lines
    noisy = compiled(lambda x: x + tf.random.uniform([4]))
    assert noisy(x).shape == (4,) and not noisy.kernels


def every_op_of_the_table_agrees():
    x, y = normal(6, 40), normal(6, 40)
    p = tf.abs(x) * 0.4 + 0.1  # between 0.1 and about 1.5
    c = tf.clip_by_value(x, -0.9, 0.9)
    raw = tf.raw_ops
    groups = [
        (lambda x, p, c: [tf.abs(x), -x, tf.sign(x), tf.nn.relu(x), tf.exp(x), tf.math.log(p), tf.math.log1p(p), tf.math.expm1(x),
                          tf.sqrt(p), tf.math.rsqrt(p), tf.math.reciprocal(p), tf.tanh(x), tf.sigmoid(x), tf.math.erf(x),
                          tf.math.erfc(x)], [x, p, c]),
        (lambda x, p, c: [tf.sin(x), tf.cos(x), tf.tan(c), tf.asin(c), tf.acos(c), tf.atan(x), tf.sinh(x), tf.cosh(x), tf.asinh(x),
                          tf.acosh(p + 1), tf.atanh(c), tf.floor(x), tf.math.ceil(x), tf.round(x), tf.math.rint(x),
                          tf.square(x)], [x, p, c]),
        (lambda x, p, c: [tf.nn.softplus(x), tf.nn.softsign(x), tf.nn.relu6(x * 4), tf.nn.elu(x), tf.nn.leaky_relu(x, 0.3),
                          tf.nn.softmax(x), tf.nn.log_softmax(x), tf.clip_by_value(x, -1, 0.5), tf.zeros_like(x), tf.ones_like(x),
                          tf.stop_gradient(x) + 1,
                          tf.cast(x > 0, tf.float32), tf.cast(x, tf.float16), tf.cast(x * 3, tf.int32)], [x, p, c]),
        (lambda x, y, p: [x + y, x - y, x * y, x / p, tf.maximum(x, y), tf.minimum(x, y), tf.pow(p, y), x // p, x % p, tf.atan2(x, p),
                          tf.math.squared_difference(x, y), tf.math.divide_no_nan(x, tf.nn.relu(y)), tf.add_n([x, y, p]),
                          tf.nn.bias_add(x, y[0])], [x, y, p]),
        (lambda x, y, p: [x == y, x != y, x < y, x <= y, x > y, x >= y, (x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0), tf.math.is_nan(x),
                          tf.math.is_inf(x), tf.math.is_finite(x), tf.where(x > 0, y, p), tf.where(x > 0, y, 0.0)], [x, y, p]),
        (lambda x, y, p: [tf.reduce_sum(x, 0), tf.reduce_mean(x, 1, keepdims=True), tf.reduce_max(x), tf.reduce_min(x, [0, 1]),
                          tf.reduce_prod(p, 1), tf.reduce_any(x > 1, 0), tf.reduce_all(x > -1, -1)], [x, y, p]),
        (lambda x, y, p: [tf.reshape(x, [4, -1]) + 0, tf.expand_dims(x, 1) + 1, tf.squeeze(tf.expand_dims(x, 0)) * 2, tf.transpose(x) + 1,
                          tf.broadcast_to(x[:1], [6, 40]) + y, tf.concat([x, y], 1), tf.stack([x, y], 1), tf.gather(x, [3, 0, 0, 5]),
                          tf.gather(x, [7, 1], axis=1), tf.tile(x[:1] * 1, [3, 1]) + 1, tf.fill([2, 3], 4.0) * x[0, 0]], [x, y, p]),
        (lambda x, y, p: [raw.TanhGrad(y=x, dy=y), raw.SigmoidGrad(y=x, dy=y), raw.SqrtGrad(y=p, dy=y), raw.RsqrtGrad(y=p, dy=y),
                          raw.ReciprocalGrad(y=x, dy=y), raw.ReluGrad(gradients=y, features=x), raw.Relu6Grad(gradients=y, features=x * 4),
                          raw.SoftplusGrad(gradients=y, features=x)], [x, y, p]),
    ]
    for f, args in groups:
        g = compiled(f)
        close(g(*args), f(*args))
        assert g.kernels
        kept = {left.op for left in g.left} - {'StridedSlice'}
        assert not kept - {'Reshape', 'BroadcastTo', 'ExpandDims', 'Fill', 'Tile'}, g.left
    for dtype in (np.float16, tf.bfloat16, np.int32, np.int8):
        a = tf.cast(normal(5, 7) * 4, dtype)
        h = lambda a: tf.maximum(a + a, -a)  # noqa: E731
        g = compiled(h)
        close(g(a), h(a))
        assert len(g.kernels) == 1
    wide = compiled(lambda a: tf.abs(a) + 1)
    close(wide(tf.constant([1.5, -2.5], tf.float64)), tf.constant([2.5, 3.5], tf.float64))
    assert not wide.kernels


def without_a_server_it_is_tensorflows_or_fails_if_that_is_wanted():
    x = normal(4)
    gone = autofuse.Context(socket='/nonexistent/core.sock')
    close(aft.compile(tf.abs, context=gone)(x), tf.abs(x))
    strict = autofuse.Context(socket='/nonexistent/core.sock', strict=True)
    raises(autofuse.Unavailable, aft.compile(tf.abs, context=strict), x)


def the_examples_say_that_they_are_one_kernel():
    place = os.path.join(ROOT, 'examples', 'tensorflow')
    for name in ('abs_relu_exp', 'abs_reduce_sum', 'abs_add_relu_broadcast'):
        done = subprocess.run([sys.executable, os.path.join(place, name + '.py')], env={**os.environ, 'AUTOFUSE_SOCKET': s.path},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0 and 'one autofused_* kernel: yes\nequal to eager: yes' in done.stdout, done.stdout + done.stderr


def without_the_op_it_runs_through_py_function():
    if os.environ.get('AUTOFUSE_TENSORFLOW_OP') == '0':
        return
    done = subprocess.run([sys.executable, os.path.abspath(__file__), 'samples', 'open_sizes', 'gradients', 'within'],
                          env={**os.environ, 'AUTOFUSE_TENSORFLOW_OP': '0'}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and done.stdout.count('\nok ') + done.stdout.startswith('ok ') == 4, done.stdout + done.stderr


if __name__ == '__main__':
    with server(**{'toolchain.host.flags': '-O1'}) as s, autofuse.Context(socket=s.path) as context:
        os.environ['XDG_CACHE_HOME'] = s.base
        sys.exit(run([samples, open_sizes_are_symbols, gradients_are_tensorflows_own_compiled, variables_are_fed_and_trained,
                      within_another_function, the_examples_say_that_they_are_one_kernel, what_has_effects_is_tensorflows_whole,
                      every_op_of_the_table_agrees,
                      without_a_server_it_is_tensorflows_or_fails_if_that_is_wanted, without_the_op_it_runs_through_py_function]))
