#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops against PyTorch eager on the CPU, on special and random values.

    torch_elementwise.py TOOL

TOOL prints what every op gives (tests/tools/elementwise_values.c). Goes on in build/venv where this Python has no
torch, or in what AUTOFUSED_TORCH_PYTHON names; without any it is skipped (exit 77). What PyTorch leaves undefined or refuses is left out: integer division by zero and of the
least number by -1, floats beyond an integer's range, negative integer exponents. One line per op and dtype.
"""
import os
import subprocess
import sys

from other_python import need

need('numpy', 'torch')
import numpy as np
import torch

TYPES = {'bool': (torch.bool, np.uint8), 'int8': (torch.int8, np.int8), 'uint8': (torch.uint8, np.uint8), 'int16': (torch.int16, np.int16),
         'int32': (torch.int32, np.int32), 'int64': (torch.int64, np.int64), 'float16': (torch.float16, np.int16),
         'bfloat16': (torch.bfloat16, np.int16), 'float32': (torch.float32, np.int32)}
FLOATS = ('float16', 'bfloat16', 'float32')
F = torch.nn.functional



def gelu(x):
    """As PyTorch, but with digits in the lower tail."""
    return x * torch.erfc(x * -0.5 ** 0.5) / 2 if x.dtype == torch.float64 else F.gelu(x)


EXACT = {
    'abs': torch.abs, 'neg': torch.neg, 'sign': torch.sign, 'relu': torch.relu, 'floor': torch.floor, 'ceil': torch.ceil,
    'round': torch.round, 'trunc': torch.trunc, 'square': torch.square, 'add': torch.add, 'sub': torch.sub, 'mul': torch.mul,
    'maximum': torch.maximum, 'minimum': torch.minimum, 'eq': torch.eq, 'ne': torch.ne, 'lt': torch.lt, 'le': torch.le, 'gt': torch.gt,
    'ge': torch.ge, 'logical_and': torch.logical_and, 'logical_or': torch.logical_or, 'logical_xor': torch.logical_xor,
    'logical_not': torch.logical_not, 'where': torch.where, 'bitwise_not': torch.bitwise_not, 'bitwise_and': torch.bitwise_and,
    'bitwise_or': torch.bitwise_or, 'bitwise_xor': torch.bitwise_xor, 'shift_left': torch.bitwise_left_shift,
    'shift_right': torch.bitwise_right_shift, 'isnan': torch.isnan, 'isinf': torch.isinf, 'isfinite': torch.isfinite,
    'true_div': torch.true_divide, 'floor_div': torch.floor_divide, 'trunc_div': lambda x, y: torch.div(x, y, rounding_mode='trunc'),
    'remainder': torch.remainder, 'fmod': torch.fmod, 'copysign': torch.copysign, 'sqrt': torch.sqrt, 'reciprocal': torch.reciprocal,
}
# Units in the last place that two right implementations may be apart: ours and theirs.
CLOSE = {
    'exp': (torch.exp, 2), 'log': (torch.log, 2), 'log1p': (torch.log1p, 4), 'expm1': (torch.expm1, 4), 'rsqrt': (torch.rsqrt, 3),
    'tanh': (torch.tanh, 3), 'sigmoid': (torch.sigmoid, 5), 'erf': (torch.erf, 4), 'sin': (torch.sin, 3), 'cos': (torch.cos, 3),
    'tan': (torch.tan, 5), 'asin': (torch.asin, 4), 'acos': (torch.acos, 4), 'atan': (torch.atan, 4), 'sinh': (torch.sinh, 4),
    'cosh': (torch.cosh, 4), 'asinh': (torch.asinh, 4), 'acosh': (torch.acosh, 4), 'atanh': (torch.atanh, 4), 'exp2': (torch.exp2, 3),
    'log2': (torch.log2, 4), 'log10': (torch.log10, 4), 'atan2': (torch.atan2, 4), 'hypot': (torch.hypot, 4), 'pow': (torch.pow, 2),
    'leaky_relu': (F.leaky_relu, 0), 'silu': (F.silu, 6), 'erfc': (torch.erfc, 5), 'gelu': (gelu, 5),
}


def decode(text, name):
    torch_type, raw = TYPES[name]
    t = torch.from_numpy(np.frombuffer(bytes.fromhex(text), dtype=raw).copy())
    return t.bool() if name == 'bool' else t.view(torch_type)


def expected(op, name, out, x):
    """(tensor or None, ulps allowed)"""
    if op == 'cast':
        return x[0].to(TYPES[out][0]), 0
    if op == 'div':
        return (torch.div(*x) if name in FLOATS else torch.div(*x, rounding_mode='trunc')), 0
    if op == 'clip':
        return (torch.clamp(x[0], -1.5, 2.25) if name in FLOATS else torch.clamp(x[0], 0 if name == 'uint8' else -3, 5)), 0
    if op in EXACT:
        return EXACT[op](*x), 0
    if op == 'pow' and name not in FLOATS:
        return torch.pow(*x), 0
    if op in CLOSE:
        return CLOSE[op][0](*x), CLOSE[op][1]
    return None, 0


def comparable(op, name, out, x):
    """Mask of elements whose result PyTorch defines, and what stands in for the others' operands."""
    keep = torch.ones(x[0].shape, dtype=torch.bool)
    if name not in FLOATS and op in ('div', 'floor_div', 'trunc_div', 'remainder', 'fmod'):
        keep &= x[1] != 0
        if name != 'uint8':
            keep &= ~((x[1] == -1) & (x[0] == torch.iinfo(x[0].dtype).min))
    if name not in FLOATS and op == 'pow':
        keep &= x[1] >= 0
    if op == 'cast' and name in FLOATS and out not in FLOATS + ('bool',):
        info = torch.iinfo(TYPES[out][0])
        wide = x[0].double()
        keep &= (wide > float(info.min) - 1) & (wide < float(info.max) + (1 if info.bits < 64 else 0))
    if op in ('sin', 'cos', 'tan'):
        keep &= ~(x[0].float().abs() > 102943) | torch.isinf(x[0])
    return keep


def order(t):
    """Bits as integers in the order of the numbers."""
    bits = t.view(torch.int32 if t.dtype == torch.float32 else torch.int16).to(torch.int64)
    least = -(1 << (8 * t.element_size() - 1))
    return torch.where(bits < 0, least - bits, bits)


def differs(got, want, ulps):
    if not got.dtype.is_floating_point:
        return got != want
    nan = torch.isnan(got) & torch.isnan(want)
    apart = (order(got) - order(want)).abs()
    # Zeros have to agree in sign, but where a result may be off at all.
    same = got.eq(want) & (torch.signbit(got).eq(torch.signbit(want)) | (ulps > 0))
    return ~(nan | same | ((apart <= ulps) & torch.isfinite(got) & torch.isfinite(want)))


def check(op, name, out, x, got):
    keep = comparable(op, name, out, x)
    x = [t[keep] for t in x]
    got = got[keep]
    want, ulps = expected(op, name, out, x)
    if want is None:
        return None
    if name in ('float16', 'bfloat16') and ulps:
        ulps = 1  # both round once from float32
    bad = differs(got, want.to(got.dtype), ulps)
    if op in SECOND and name in FLOATS:
        wide, _ = expected(op, name, out, [t.to(torch.float64) for t in x])
        bad &= differs(got, wide.float().to(got.dtype), ulps)
    if bad.any():
        i = int(bad.nonzero()[0])
        args = ', '.join(repr(t[i].item()) for t in x)
        return '%d of %d, as %s(%s) = %r, torch %r' % (int(bad.sum()), len(got), op, args, got[i].item(), want[i].item())
    return ''


# Where PyTorch in float64 may speak for it: its float32 gives up early (sigmoid below -88, sinh beyond 88.7, rests of large quotients), is not the
# nearest (sqrt), or it rounds a 16-bit quotient before it is made whole.
SECOND = set(CLOSE) | {'sqrt', 'fmod', 'remainder', 'floor_div', 'trunc_div'}

# Where PyTorch has no function with digits to compare with: it takes the tanh form's lower tail from a difference.
OWN = {'gelu_tanh'}


def main():
    torch.set_num_threads(1)
    text = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
    at, failed = 0, False
    while at < len(text):
        op, name, out, n, _ = text[at].split()
        n = int(n)
        types = ['bool' if op == 'where' and k == 0 else name for k in range(n)]
        x = [decode(text[at + 1 + k], types[k]) for k in range(n)]
        got = decode(text[at + 1 + n], out)
        at += n + 2
        if op in OWN:
            continue
        try:
            problem = check(op, name, out, x, got)
        except (RuntimeError, NotImplementedError) as e:  # not defined there on this dtype
            print('# %s %s: %s' % (op, name, str(e).splitlines()[0]))
            continue
        if problem is None:
            continue
        failed |= bool(problem)
        print('%s %s %s%s%s' % ('not ok' if problem else 'ok', op, name, ' to ' + out if op == 'cast' else '', ': ' + problem if problem else ''))
    return failed


if __name__ == '__main__':
    sys.exit(main())
