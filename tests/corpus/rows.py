# SPDX-License-Identifier: Apache-2.0
"""The fusion corpus: 46 fragments, what each may cost in launches and bytes, and what TorchInductor plans for it.

A row is a function from a Fragment and Sizes to its nodes. launches and ratio (bytes moved over the least possible) are limits on
Ascend910B2. peer is TorchInductor 2.13's (kernels, bytes over the least) with each buffer counted once per kernel that touches it.
"""
import collections
import math

from fragment import Fragment

Row = collections.namedtuple("Row", "name launches ratio peer build")
ROWS = []


class Sizes:
    """full: the corpus itself. small: shapes cut by a factor. odd: nothing divides anything."""

    def __init__(self, kind):
        pick = {"full": 0, "small": 1, "odd": 2}[kind]
        self.rows = (4096, 64, 37)[pick]
        self.columns = (1024, 128, 131)[pick]
        self.flat = (4 << 20, 8192, 5003)[pick]
        self.long = (1000000, 62500, 70001)[pick]        # elements of the longest row
        self.long_rows = (4, 2, 3)[pick]
        self.norm = (48000, 48000, 50003)[pick]
        self.norm_rows = (128, 2, 3)[pick]
        self.vocab = (151936, 18992, 20011)[pick]
        self.vocab_rows = (32, 4, 3)[pick]
        self.table = (30000, 300, 211)[pick]
        self.width = (512, 64, 57)[pick]                 # of an embedding
        self.heads, self.time, self.head = ((32, 1024, 128), (4, 16, 128), (3, 13, 34))[pick]
        self.batch, self.square = ((8, 1024), (2, 64), (3, 67))[pick]
        self.middle = ((64, 256, 256), (8, 16, 64), (5, 37, 43))[pick]
        self.groups = ((16, 64, 64, 64, 32), (2, 16, 8, 8, 8), (3, 6, 7, 5, 3))[pick]
        self.images = ((8, 64, 96, 96), (2, 16, 12, 12), (3, 5, 7, 9))[pick]
        self.broadcast = ((256, 100), (64, 100), (37, 101))[pick]
        self.narrow = (65536, 1024, 523)[pick]


def row(launches, ratio, peer=(1, 1.0)):
    def add(fn):
        ROWS.append(Row(fn.__name__, launches, ratio, peer, fn))
        return fn
    return add


def build(r, kind):
    f = Fragment(r.name)
    r.build(f, Sizes(kind))
    return f


# pointwise

@row(1, 1.02)
def add_ge(f, s):
    x, y, z = (f.input(s.flat) for _ in range(3))
    f.output(f.compare("ge", f.add(x, y), z))


@row(1, 1.02)
def abs_relu_exp(f, s):
    f.output(f.exp(f.relu(f.abs(f.input(s.flat)))))


@row(1, 1.02)
def chain_60(f, s):
    t, y = f.input(s.flat), f.input(s.flat)
    for _ in range(20):
        t = f.abs(f.add(f.mul(t, 0.5), y))
    f.output(t)


@row(1, 1.02)
def gelu_tanh(f, s):
    f.output(f.gelu(f.input(s.flat), approximate="tanh"))


@row(1, 1.02)
def gelu_erf_bf16(f, s):
    f.output(f.gelu(f.input(s.flat, dtype="bfloat16"), approximate="none"))


@row(1, 1.02)
def swiglu_f16(f, s):
    a, b = f.input(s.flat, dtype="float16"), f.input(s.flat, dtype="float16")
    f.output(f.mul(f.silu(a), b))


@row(1, 1.02)
def siblings(f, s):
    a, b = f.input(s.flat), f.input(s.flat)
    f.output(f.add(a, b), f.sub(a, b), f.mul(a, b))


@row(1, 1.02)
def recompute_or_store(f, s):
    a, b, c = (f.input(s.flat) for _ in range(3))
    t = f.exp(a)
    f.output(f.mul(t, b), f.mul(t, c))


@row(1, 1.02)
def bias_relu_dropout_apply(f, s):
    x, b, m = f.input(s.rows, s.columns), f.input(s.columns), f.input(s.rows, s.columns, dtype="bool")
    f.output(f.where(m, 0.0, f.mul(f.relu(f.add(x, b)), 1 / 0.9)))


@row(1, 1.02)
def adam(f, s):
    p, g, m, v = (f.input(s.flat) for _ in range(4))
    m2 = f.add(f.mul(m, 0.9), f.mul(g, 0.1))
    v2 = f.add(f.mul(v, 0.999), f.mul(f.mul(g, g), 0.001))
    step = f.mul(f.div(m2, 0.9), 1e-3)
    f.output(f.sub(p, f.div(step, f.add(f.sqrt(f.div(v2, 0.001)), 1e-8))), m2, v2)


@row(1, 1.02)
def adamw_bf16_master(f, s):
    p, g, m, v = f.input(s.flat), f.input(s.flat, dtype="bfloat16"), f.input(s.flat), f.input(s.flat)
    g = f.cast(g, "float32")
    m2 = f.add(f.mul(m, 0.9), f.mul(g, 0.1))
    v2 = f.add(f.mul(v, 0.95), f.mul(f.mul(g, g), 0.05))
    q = f.sub(f.mul(p, 1 - 1e-5), f.div(f.mul(m2, 1e-4), f.add(f.sqrt(v2), 1e-8)))
    f.output(q, f.cast(q, "bfloat16"), m2, v2)


@row(1, 1.02, (2, 1.0))
def loss_scale_check(f, s):
    h = f.mul(f.cast(f.input(s.flat, dtype="float16"), "float32"), 1 / 1024)
    f.output(h, f.reduce("reduce_all", f.isfinite(h, dtype="bool")))


@row(1, 1.02)
def quantise_int8(f, s):
    t = f.round(f.add(f.mul(f.input(s.flat), 20.0), 3.0))
    f.output(f.cast(f.clip(t, min=-128, max=127), "int8"))


@row(1, 1.02)
def dequantise_int8(f, s):
    f.output(f.mul(f.sub(f.cast(f.input(s.flat, dtype="int8"), "float32"), 3.0), 0.05))


@row(1, 1.10)
def broadcast_256x100(f, s):
    x, y = f.input(*s.broadcast), f.input(1, s.broadcast[1])
    f.output(f.relu(f.add(f.abs(x), y)))


@row(1, 1.05)
def broadcast_both(f, s):
    f.output(f.add(f.input(s.rows, 1), f.input(1, s.columns)))


# reductions

@row(1, 1.02)
def mul_sum_last(f, s):
    f.output(f.reduce("reduce_sum", f.mul(f.input(s.rows, s.columns), f.input(s.rows, s.columns)), -1))


@row(1, 1.02)
def mul_sum_first(f, s):
    f.output(f.reduce("reduce_sum", f.mul(f.input(s.rows, s.columns), f.input(s.rows, s.columns)), 0))


@row(1, 1.02)
def sum_all(f, s):
    x = f.input(s.flat)
    f.output(f.reduce("reduce_sum", f.mul(x, x)))


@row(1, 1.02)
def sum_middle(f, s):
    f.output(f.reduce("reduce_sum", f.abs(f.input(*s.middle)), 1))


@row(1, 1.02, (8, 1.0))
def stats_of_one_read(f, s):
    x = f.input(s.rows, s.columns)
    f.output(f.reduce("reduce_sum", x, -1), f.reduce("reduce_max", x, -1), f.reduce("reduce_mean", x, -1), f.reduce("var", x, -1, correction=1))


@row(1, 1.02)
def argmax_last(f, s):
    f.output(f.argmax(f.input(s.rows, s.columns), -1))


@row(1, 1.10)
def odd_columns_sum(f, s):
    f.output(f.reduce("reduce_sum", f.relu(f.input(s.narrow, 17)), -1))


# reduce and elementwise in one kernel

@row(1, 1.02, (4, 1.0))
def softmax(f, s):
    f.output(f.softmax(f.input(s.rows, s.columns)))


@row(1, 1.02, (4, 1.0))
def masked_scaled_softmax(f, s):
    x, m = f.input(s.rows, s.columns), f.input(s.rows, s.columns, dtype="bool")
    f.output(f.softmax(f.masked_fill(f.mul(x, 0.125), m, -math.inf)))


@row(1, 1.02, (6, 3.0))
def causal_softmax_bf16(f, s):
    x = f.input(s.batch, s.square, s.square, dtype="bfloat16")
    ones = f.node("broadcast", [f.scalar(True, "bool")], ("bool", (s.square, s.square)), shape=[s.square, s.square], origin="aten.full.default")
    f.output(f.softmax(f.masked_fill(x, f.triu(ones, diagonal=1), -math.inf)))


@row(1, 1.02, (8, 1.0))
def log_softmax(f, s):
    f.output(f.softmax(f.input(s.rows, s.columns), log=True))


@row(1, 1.02, (3, 1.0))
def softmax_backward(f, s):
    y, g = f.input(s.rows, s.columns), f.input(s.rows, s.columns)
    f.output(f.mul(y, f.sub(g, f.reduce("reduce_sum", f.mul(y, g), -1, keepdims=True))))


@row(1, 2.02, (6, 1.0))
def softmax_long_row(f, s):
    f.output(f.softmax(f.input(s.long_rows, s.long)))


@row(1, 1.02, (8, 1.0))
def layer_norm(f, s):
    f.output(f.layer_norm(f.input(s.rows, s.columns), f.input(s.columns), f.input(s.columns)))


@row(1, 2.02, (4, 1.0))
def layer_norm_long_row(f, s):
    f.output(f.layer_norm(f.input(s.norm_rows, s.norm), f.input(s.norm), f.input(s.norm)))


@row(1, 1.02, (9, 1.25))
def residual_layer_norm_bf16(f, s):
    x, r = (f.input(s.rows, s.columns, dtype="bfloat16") for _ in range(2))
    w, b = (f.input(s.columns, dtype="bfloat16") for _ in range(2))
    t = f.add(x, r)
    f.output(f.layer_norm(t, w, b), t)


def scaled_by_rms(f, x, w):
    mean = f.reduce("reduce_mean", f.mul(x, x), -1, keepdims=True)
    return f.mul(f.mul(x, f.rsqrt(f.add(mean, 1e-6))), w)


@row(1, 1.02, (3, 1.0))
def rms_norm(f, s):
    f.output(scaled_by_rms(f, f.input(s.rows, s.columns), f.input(s.columns)))


@row(1, 1.02, (4, 1.25))
def residual_rms_norm_sum_returned(f, s):
    x, r, w = f.input(s.rows, s.columns), f.input(s.rows, s.columns), f.input(s.columns)
    t = f.add(x, r)
    f.output(scaled_by_rms(f, t, w), t)


@row(2, 1.05, (4, 1.667))
def layer_norm_backward(f, s):
    g, x, w = f.input(s.rows, s.columns), f.input(s.rows, s.columns), f.input(s.columns)
    mean, rstd = f.input(s.rows, 1), f.input(s.rows, 1)
    n = float(s.columns)
    xh = f.mul(f.sub(x, mean), rstd)
    gw = f.mul(g, w)
    a = f.div(f.reduce("reduce_sum", gw, -1, keepdims=True), n)
    b = f.div(f.mul(xh, f.reduce("reduce_sum", f.mul(gw, xh), -1, keepdims=True)), n)
    f.output(f.mul(f.sub(f.sub(gw, a), b), rstd), f.reduce("reduce_sum", f.mul(g, xh), 0), f.reduce("reduce_sum", g, 0))


@row(1, 1.02, (3, 1.501))
def group_norm(f, s):
    n, c, h, w, groups = s.groups
    x, scale, bias = f.input(n, c, h, w), f.input(c), f.input(c)
    f.output(f.node("group_norm", [x, scale, bias], (x.dtype, x.shape), groups=groups, epsilon=1e-5, origin="aten.native_group_norm.default"))


@row(1, 1.02)
def batch_norm_relu(f, s):
    x = f.input(*s.images)
    m, v, w, b = (f.input(s.images[1]) for _ in range(4))
    f.output(f.relu(f.node("batch_norm", [x, m, v, w, b], (x.dtype, x.shape), epsilon=1e-5)))


def negative_log_likelihood(f, logs, target):
    """Per row, as the framework decomposes it: a target of -100 does not count."""
    counts = f.compare("ne", target, -100)
    safe = f.where(counts, target, 0, dtype="int64")
    picked = f.node("gather_elements", [logs, f.unsqueeze(safe, 1)], (logs.dtype, (logs.shape[0], 1)), axis=1, origin="aten.gather.default")
    return f.where(counts, f.neg(f.squeeze(picked, 1)), 0.0), counts


@row(1, 1.05, (5, 2.002))
def cross_entropy(f, s):
    x, t = f.input(s.rows, s.columns), f.index_input(s.rows, s.columns)
    loss, counts = negative_log_likelihood(f, f.softmax(x, log=True), t)
    n = f.cast(f.reduce("reduce_sum", counts, dtype="int64"), "float32")
    f.output(f.div(f.reduce("reduce_sum", loss), n))


@row(1, 1.05, (6, 1.0))
def cross_entropy_vocab_151936(f, s):
    x, t = f.input(s.vocab_rows, s.vocab, dtype="bfloat16"), f.index_input(s.vocab_rows, s.vocab)
    f.output(negative_log_likelihood(f, f.softmax(f.cast(x, "float32"), log=True), t)[0])


# data movement

@row(1, 1.05, (3, 2.455))
def rotary(f, s):
    q = f.input(1, s.heads, s.time, s.head)
    cos, sin = f.input(s.time, s.head), f.input(s.time, s.head)
    half = s.head // 2
    turned = f.concat(f.neg(f.slice(q, -1, half, s.head)), f.slice(q, -1, 0, half), axis=-1)
    f.output(f.add(f.mul(turned, sin), f.mul(q, cos)))


@row(1, 1.02, (1, 1.031))
def embedding_add(f, s):
    e, i, p = f.input(s.table, s.width), f.index_input(s.rows, s.table), f.input(s.width)
    f.output(f.add(f.node("gather", [e, i], (e.dtype, (s.rows, s.width)), axis=0, origin="aten.index.Tensor"), p))
    f.touched[0] = len(set(f.indices[1])) * s.width * 4
    f.by_data = True


@row(1, 1.02, (2, 1.0))
def concat_of_computed(f, s):
    a, b = f.input(s.rows, s.columns), f.input(s.rows, s.columns)
    f.output(f.concat(f.add(a, 1.0), f.mul(b, 2.0), axis=-1))


@row(1, 1.02, (3, 1.0))
def split_act_concat(f, s):
    a, b, c = f.split(f.input(s.rows, 3 * s.columns), -1, s.columns, s.columns, s.columns)
    f.output(f.concat(f.sigmoid(a), f.tanh(b), f.relu(c), axis=-1))


@row(1, 1.05)
def transpose_add(f, s):
    a, b = f.input(s.rows, s.columns), f.input(s.columns, s.rows)
    f.output(f.add(f.view("transpose", a, (s.columns, s.rows), perm=[1, 0], origin="aten.permute.default"), b))


@row(1, 1.10)
def slice_strided_mul(f, s):
    x, y = f.input(s.rows, 2 * s.columns), f.input(s.rows, s.columns)
    f.output(f.mul(f.slice(x, -1, 0, s.columns), y))
    f.touched[0] = y.nbytes


@row(1, 1.02)
def pad_then_relu(f, s):
    x = f.input(s.rows, s.columns)
    padded = f.node("pad", [x, f.scalar(-0.5)], (x.dtype, (s.rows + 2, s.columns + 2)), low=[1, 1], high=[1, 1], origin="aten.constant_pad_nd.default")
    f.output(f.relu(padded))
