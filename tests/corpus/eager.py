#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the corpus with eager PyTorch on scaled rows: do the fragments mean what a framework computes, and as exactly?

    eager.py [--build DIR] [--only NAME] [--sizes small,odd] [--every N]

The judge is eager itself in float64 on the same inputs. Each float of ours may be off by 4 units in the last place, or by twice what eager
in the row's own dtypes is off at most; everything else must equal eager. Goes on in build/venv where this Python has no torch; ends with 77
(skipped) where none has it.
"""
import argparse
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import corpus
import rows as table

from other_python import need

need("torch")
import torch
import torch.nn.functional as F

EAGER = {}
ULP = {torch.float32: 2.0 ** -23, torch.float16: 2.0 ** -10, torch.bfloat16: 2.0 ** -7}


def eager(fn):
    EAGER[fn.__name__] = fn
    return fn


def last(t):
    return (t.shape[-1],)


def steps(x, y):
    for _ in range(20):
        x = (x * 0.5 + y).abs()
    return x


EAGER.update(
    add_ge=lambda x, y, z: x + y >= z,
    abs_relu_exp=lambda x: x.abs().relu().exp(),
    chain_60=steps,
    gelu_tanh=lambda x: F.gelu(x, approximate="tanh"),
    gelu_erf_bf16=F.gelu,
    swiglu_f16=lambda a, b: F.silu(a) * b,
    siblings=lambda a, b: (a + b, a - b, a * b),
    recompute_or_store=lambda a, b, c: (a.exp() * b, a.exp() * c),
    bias_relu_dropout_apply=lambda x, b, m: torch.where(m, torch.zeros_like(x), (x + b).relu() * (1 / 0.9)),
    loss_scale_check=lambda g: (wide(g) / 1024, torch.isfinite(wide(g) / 1024).all()),
    quantise_int8=lambda x: (x * 20 + 3).round().clamp(-128, 127).to(torch.int8),
    dequantise_int8=lambda q: (q.to(torch.float32) - 3) * 0.05,
    broadcast_256x100=lambda x, y: (x.abs() + y).relu(),
    broadcast_both=lambda x, y: x + y,
    mul_sum_last=lambda a, b: (a * b).sum(-1),
    mul_sum_first=lambda a, b: (a * b).sum(0),
    sum_all=lambda x: (x * x).sum(),
    sum_middle=lambda x: x.abs().sum(1),
    stats_of_one_read=lambda x: (x.sum(-1), x.amax(-1), x.mean(-1), x.var(-1)),
    argmax_last=lambda x: x.argmax(-1),
    odd_columns_sum=lambda x: x.relu().sum(-1),
    softmax=lambda x: x.softmax(-1),
    softmax_long_row=lambda x: x.softmax(-1),
    masked_scaled_softmax=lambda x, m: (x * 0.125).masked_fill(m, -torch.inf).softmax(-1),
    causal_softmax_bf16=lambda x: x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).triu(1), -torch.inf).softmax(-1),
    log_softmax=lambda x: x.log_softmax(-1),
    softmax_backward=lambda y, g: y * (g - (y * g).sum(-1, keepdim=True)),
    layer_norm=lambda x, w, b: F.layer_norm(x, last(x), w, b),
    layer_norm_long_row=lambda x, w, b: F.layer_norm(x, last(x), w, b),
    residual_layer_norm_bf16=lambda x, r, w, b: (F.layer_norm(x + r, last(x), w, b), x + r),
    rms_norm=lambda x, w: F.rms_norm(x, last(x), w, 1e-6),
    residual_rms_norm_sum_returned=lambda x, r, w: (F.rms_norm(x + r, last(x), w, 1e-6), x + r),
    group_norm=lambda x, w, b: F.group_norm(x, groups_of(x), w, b),
    batch_norm_relu=lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b).relu(),
    cross_entropy=F.cross_entropy,
    cross_entropy_vocab_151936=lambda x, t: F.cross_entropy(wide(x), t, reduction="none"),
    embedding_add=lambda e, i, p: F.embedding(i, e) + p,
    concat_of_computed=lambda a, b: torch.cat([a + 1, b * 2], -1),
    transpose_add=lambda a, b: a.t() + b,
    slice_strided_mul=lambda x, y: x[:, : last(y)[0]] * y,
    pad_then_relu=lambda x: F.pad(x, (1, 1, 1, 1), value=-0.5).relu())


def wide(x):
    """As .float(), but a float64 stays."""
    return x if x.dtype == torch.float64 else x.float()


def groups_of(x):
    return next(table.Sizes(k).groups[4] for k in ("full", "small", "odd") if tuple(x.shape) == table.Sizes(k).groups[:4])


@eager
def adam(p, g, m, v):
    m2, v2 = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p - 1e-3 * (m2 / 0.9) / ((v2 / 0.001).sqrt() + 1e-8), m2, v2


@eager
def adamw_bf16_master(p, g, m, v):
    g = wide(g)
    m2, v2 = m * 0.9 + g * 0.1, v * 0.95 + g * g * 0.05
    q = p * (1 - 1e-5) - 1e-4 * m2 / (v2.sqrt() + 1e-8)
    return q, q if q.dtype == torch.float64 else q.bfloat16(), m2, v2


@eager
def layer_norm_backward(g, x, w, mean, rstd):
    """Of autograd, for the same mean and rstd."""
    dx, dw, db = torch.ops.aten.native_layer_norm_backward(g, x, last(x), mean, rstd, w, torch.zeros_like(w), [True, True, True])
    return dx, dw, db


@eager
def rotary(q, c, s):
    a, b = q.split(last(q)[0] // 2, -1)
    return torch.cat([-b, a], -1) * s + q * c


@eager
def split_act_concat(x):
    a, b, c = x.chunk(3, -1)
    return torch.cat([a.sigmoid(), b.tanh(), c.relu()], -1)


def make(row, i, v):
    """Random elements of a row's i-th input."""
    dtype = getattr(torch, v.dtype)
    if v.dtype == "bool":
        return torch.rand(v.shape) > 0.9
    if v.dtype == "int8":
        return (torch.randn(v.shape) * 20).clamp(-128, 127).to(dtype)
    positive = (row.name, i) in {("adam", 3), ("adamw_bf16_master", 3), ("batch_norm_relu", 2), ("layer_norm_backward", 4)}
    return (torch.rand(v.shape) + 0.1 if positive else torch.randn(v.shape)).to(dtype)


def elements(t):
    return t.contiguous().flatten().view(torch.uint8).numpy().tobytes()


def compare(ours, own, exact):
    """None, or what is wrong with one output."""
    if not ours.dtype.is_floating_point:
        bad = int((ours != own).sum())
        return f"{bad} of {ours.numel()} differ" if bad else None
    off, theirs = (ours.double() - exact).abs(), (own.double() - exact).abs().max().item()
    bad = off > torch.clamp(4 * ULP[ours.dtype] * exact.abs(), min=2 * theirs)
    bad |= ~torch.isfinite(off) & ~(ours.isnan() & exact.isnan()) & (ours.double() != exact)
    return f"{int(bad.sum())} of {ours.numel()} off, by up to {off.max().item():g}; eager by {theirs:g}" if bad.any() else None


def check(row, fragment, inputs, directory):
    own = EAGER[row.name](*inputs)
    exact = EAGER[row.name](*(t.double() if t.dtype.is_floating_point else t for t in inputs))
    own, exact = ([x] if torch.is_tensor(x) else list(x) for x in (own, exact))
    for i, (v, o, e) in enumerate(zip(fragment.outputs, own, exact, strict=True)):
        with open(os.path.join(directory, f"{row.name}.{i}.out"), "rb") as f:
            ours = torch.frombuffer(bytearray(f.read()), dtype=getattr(torch, v.dtype)).reshape(v.shape)
        if o.dtype != ours.dtype or o.shape != ours.shape:
            return f"output {i}: {o.dtype} {tuple(o.shape)} in eager"
        wrong = compare(ours, o, e)
        if wrong:
            return f"output {i}: {wrong}"
    return None


def run(build, rows, kind, directory):
    inputs = {}
    for row in rows:
        torch.manual_seed(sum(row.name.encode()))
        fragment = table.build(row, kind)
        indices = {i: torch.tensor(chosen) for i, chosen in fragment.indices.items()}
        inputs[row.name] = [indices[i] if i in indices else make(row, i, v) for i, v in enumerate(fragment.inputs)]
        for i, t in enumerate(inputs[row.name]):
            with open(os.path.join(directory, f"{row.name}.{i}.in"), "wb") as f:
                f.write(elements(t))
    reports = corpus.tool(build, "--run", "--inputs", directory, "--outputs", directory, *corpus.write(rows, kind, directory))
    for row in rows:
        report = reports[row.name]
        wrong = report.get("error") or report["why"]
        yield row.name, report["equal"] is None, wrong or check(row, table.build(row, kind), inputs[row.name], directory)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.environ.get("AF_BUILD_ROOT", os.path.join(corpus.ROOT, "build")))
    p.add_argument("--only", default="")
    p.add_argument("--sizes", default="small,odd")
    p.add_argument("--every", type=int, default=1, help="each N-th row")
    o = p.parse_args()
    chosen = [r for r in table.ROWS if any(part in r.name for part in o.only.split(","))][:: o.every]
    torch.set_num_threads(1)
    bad = 0
    with open(os.path.join(HERE, "pending.txt"), encoding="utf-8") as f:
        pending = set(f.read().split("\n"))
    for kind in o.sizes.split(","):
        with tempfile.TemporaryDirectory() as d:
            for name, unplanned, wrong in run(o.build, chosen, kind, d):
                late = unplanned and name in pending
                bad += bool(wrong) and not late
                print(f"{'not ok' if wrong and not late else 'ok'} {kind}/{name}" + (f" {'# not planned yet' if late else wrong}" if wrong else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
