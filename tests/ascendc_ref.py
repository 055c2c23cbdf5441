#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs generated kernels under another judge of Ascend C and compares with the twin.

    ascendc_ref.py TOOL_DIR [FRAGMENT.json...] [--build DIR] [--seeds A:B [--profile N]] [--rows SUBSTRING] [--cases SUBSTRING]
                   [--symbols K] [--specials] [--inputs DIR] [--batch N] [--keep DIR]

TOOL_DIR holds run.sh KERNEL.cpp NAME --blocks N --arg in:FILE|inout:FILE:FILE|zero:BYTES [--struct FILE] [--scalar u64:N] [--parallel]
(vector kernels on the CPU against the vendor's headers). Without fragments: the samples, every row of the corpus with its shapes cut, every
fragment of kernel_fragments.py, those with symbols of tests/fragments, and the seeds. A form is solved for choice K of its symbols' values
(tests/lib/bind.h; 0), and gets its sizes as on the device.

Each fragment is planned as it is served and run on the checked twin against the reference; every kernel that it launches runs under the
judge on the same bytes and must leave the same bytes. The judge's exp and log are the C library's; it is linked with the twin's in their place,
so that everything around them can be compared bit for bit. With --own-exp it keeps its own: where a kernel calls them, floats may differ by 2
units in the last place per call (of 1.0 where the result is smaller), and other outputs, behind a compare or a cast, in one element of 50.
Where the judge says that an integer result overflowed (it guesses saturation, we wrap) a difference is counted apart.
One line per failure, one at the end.
"""
import argparse
import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(HERE, "corpus")]
import corpus
import kernel_fragments

WORDS = {"float32": (np.uint32, 2.0 ** -23), "float16": (np.uint16, 2.0 ** -10), "bfloat16": (np.uint16, 2.0 ** -7)}
INEXACT = re.compile(r"\b(Exp|Ln)\(")
OVERFLOW = "integer result out of range"
OWN = """#include "numeric/prim_f32.h"
__attribute__((visibility("hidden"))) float expf(float x) { return af_f32_exp(x); }
__attribute__((visibility("hidden"))) float logf(float x) { return af_f32_ln(x); }
"""


def numbers(raw, dtype):
    if dtype == "float32":
        return np.frombuffer(raw, np.float32).astype(np.float64)
    if dtype == "float16":
        return np.frombuffer(raw, np.float16).astype(np.float64)
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def differs(got, want, dtype, calls, signs):
    """Elements that are not as they should be. All NaNs are one; calls: of exp and ln in the kernel; signs: whether they count."""
    if got == want:
        return 0
    if dtype not in WORDS:
        size = max(1, len(want) // np.frombuffer(want, np.dtype("u1" if dtype == "bool" else dtype)).size)
        bad = np.count_nonzero(np.any(np.frombuffer(got, np.uint8).reshape(-1, size) != np.frombuffer(want, np.uint8).reshape(-1, size), axis=1))
        return 0 if calls and bad * 50 <= len(want) // size else int(bad)
    word, eps = WORDS[dtype]
    same = np.frombuffer(got, word) == np.frombuffer(want, word)
    with np.errstate(all="ignore"):
        g, w = numbers(got, dtype), numbers(want, dtype)
        same |= (np.isnan(g) & np.isnan(w)) | (not signs and np.abs(g) == np.abs(w))
        if calls:
            same |= np.abs(g - w) <= 2 * calls * np.maximum(2.0 ** -23 * np.maximum(np.abs(w), 1), eps * np.abs(w) if eps > 2.0 ** -23 else 0)
    return int(np.count_nonzero(~same))


class Case:
    """A launch: name, symbol, blocks, synchronises, arguments."""

    def __init__(self, line):
        fields = line.split()
        self.name, self.symbol, self.blocks, self.sync, self.args = fields[0], fields[1], fields[2], fields[3] == "1", fields[4:]


def batch(directory, cases, number):
    """Several kernels as one source, a namespace each: the vendor's headers take seconds to compile, a kernel does not. Calls of exp and ln by symbol."""
    calls = {}
    path = os.path.join(directory, f"batch{number}.cpp")
    with open(path, "w", encoding="utf-8") as out:
        out.write('#include "kernel_operator.h"\n')
        for case in cases:
            if case.symbol in calls:
                continue
            with open(os.path.join(directory, case.name + ".cpp"), encoding="utf-8") as f:
                text = f.read().replace('#include "kernel_operator.h"\n', "")
            calls[case.symbol] = len(INEXACT.findall(text))
            out.write(f"namespace case{len(calls)} {{ // {case.name}\n{text}}}\n")
    return path, calls


def twin_functions(directory):
    """An object with the twin's exp and log under the C library's names."""
    source, path = os.path.join(directory, "own.c"), os.path.join(directory, "own.o")
    with open(source, "w", encoding="utf-8") as out:
        out.write(OWN)
    subprocess.run(["cc", "-std=gnu17", "-O2", "-fPIC", "-fno-builtin", "-ffp-contract=off", "-fno-math-errno", "-I", ROOT, "-c", source, "-o", path], check=True)
    return ["--flag", path]


MEMBER = re.compile(r"^    (u?int\d+_t|float) \w+;$", re.MULTILINE)


def sizes(path, source):
    """A form's sizes by value. Up to two words of them travel in registers: words of floats alone in those for floats."""
    with open(path, "rb") as f:
        raw = f.read()
    if len(raw) > 16:
        return ["--struct", path]
    raw, at, floats = raw.ljust(-(-len(raw) // 8) * 8, b"\0"), 0, {}
    with open(source, encoding="utf-8") as f:
        for member in MEMBER.findall(f.read().split("struct Tiling {")[1].split("};")[0]):
            size = 8 if "64" in member else 4
            at = -(-at // size) * size
            floats[at // 8] = floats.get(at // 8, True) and member == "float"
            at += size
    out = []
    for i in range(0, len(raw), 8):
        value = struct.unpack_from("<d", raw, i)[0] if floats.get(i // 8) else int.from_bytes(raw[i:i + 8], "little")
        out += ["--scalar", f"{'f64' if floats.get(i // 8) else 'u64'}:{value!r}"]
    return out


def run_case(tool, case, directory, source, calls, flags):
    """None, a message, or OVERFLOW."""
    command = [os.path.join(tool, "run.sh"), source, case.symbol, "--blocks", case.blocks, "--timeout", "300", *flags]
    outs = []
    for i, a in enumerate(case.args):
        kind, rest = a.split(":", 1)
        if kind == "struct":
            command += sizes(rest, os.path.join(directory, case.name + ".cpp"))
            continue
        if kind == "work":
            command += ["--arg", "zero:" + rest]
            continue
        before, *more = rest.split(":")
        if not os.path.getsize(before):
            command += ["--arg", "null"]
        elif kind == "in":
            command += ["--arg", "in:" + before]
        else:
            got = os.path.join(directory, f"{case.name}.{i}.got")
            command += ["--arg", f"inout:{before}:{got}"]
            outs.append((got, *more))
    if case.sync:
        command.append("--parallel")
    r = subprocess.run(command, capture_output=True, text=True, check=False)
    if r.returncode:
        text = (r.stderr + r.stdout).strip().splitlines()
        return f"{case.name}: exit {r.returncode}: " + " | ".join(text[:4])
    for got, want, dtype in outs:
        with open(got, "rb") as a, open(want, "rb") as b:
            bad = differs(a.read(), b.read(), dtype, calls, "copysign" not in case.symbol)  # what sign an invalid operation's NaN has is the processor's own
        if bad and OVERFLOW in r.stderr:
            return OVERFLOW
        if bad:
            return f"{case.name}: {bad} elements of {os.path.basename(want)} ({dtype}) differ; {calls} calls of exp and ln"
    return None


def run_all(o, cases, directory):
    """Yields a message, OVERFLOW or None per case."""
    flags, size = [] if o.own_exp else twin_functions(directory), o.batch
    for at in range(0, len(cases), size):
        part = cases[at:at + size]
        source, calls = batch(directory, part, at // size)
        for case in part:
            yield run_case(o.tool, case, directory, source, calls[case.symbol] if o.own_exp else 0, flags)


def fragments(o, directory):
    if o.fragments:
        return o.fragments
    everything = o.rows is None and o.cases is None and o.seeds is None and o.symbols is None
    paths = sorted(glob.glob(os.path.join(ROOT, "examples/fragments/*.json"))) if everything else []
    if everything or o.rows is not None:
        paths += corpus.write([r for r in corpus.corpus.ROWS if any(p in r.name for p in (o.rows or "").split(","))], "small", os.path.join(directory, "rows"))
    if everything or o.cases is not None:
        paths += [path for part in (o.cases or "").split(",") for path in kernel_fragments.write(os.path.join(directory, "fragments"), part)]
    if everything or o.symbols is not None:
        paths += sorted(glob.glob(os.path.join(ROOT, "tests/fragments/symbols_*.json")))
    return paths


def judge(o, d):
    command = [os.path.join(o.build, "tests/tools/fragment_runs"), "--dump", d] + (["--specials"] if o.specials else [])
    for option in ("seeds", "profile", "symbols", "inputs"):
        command += ["--" + option, getattr(o, option)] if getattr(o, option) else []
    command += fragments(o, d)
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        print(f"not ok fragment_runs ended with {made.returncode}")
        return 1
    failed = 0
    for entry in map(corpus.json.loads, made.stdout.splitlines()):
        if not entry["equal"] and not entry["why"].startswith("refused: "):
            failed += 1
            print(f"not ok {entry['name']}: {entry.get('error') or entry['why']}", flush=True)
    with open(os.path.join(d, "cases.txt"), encoding="utf-8") as f:
        cases = [Case(line) for line in f]
    overflows = 0
    for done, message in enumerate(run_all(o, cases, d), 1):
        overflows += message is OVERFLOW
        if message and message is not OVERFLOW:
            failed += 1
            print("not ok " + message, flush=True)
        if done % 50 == 0:
            print(f"# {done} of {len(cases)}", flush=True)
    print(f"{'failed' if failed else 'ok'}: {len(cases)} kernels, {failed} failures, {overflows} with integers that overflow")
    return 1 if failed or not cases else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tool")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--seeds")
    p.add_argument("--rows", help="rows of the corpus whose name has one of these in it: a,b")
    p.add_argument("--cases", help="fragments of kernel_fragments.py, likewise")
    p.add_argument("--symbols", metavar="K", help="tests/fragments/symbols_*.json, and forms among the others, at choice K of their symbols' values")
    p.add_argument("--profile", metavar="N", help="of the seeds (tests/lib/random_graph.h); 12 on have symbols")
    p.add_argument("--specials", action="store_true")
    p.add_argument("--inputs", metavar="DIR", help="elements of inputs, as fragment_runs takes them")
    p.add_argument("--own-exp", action="store_true", help="leave the judge its exp and log")
    p.add_argument("--batch", type=int, default=20, help="kernels compiled together")
    p.add_argument("--keep", metavar="DIR", help="work here and leave everything")
    p.add_argument("fragments", nargs="*")
    o = p.parse_args()
    if o.keep:
        os.makedirs(o.keep, exist_ok=True)
        return judge(o, o.keep)
    with tempfile.TemporaryDirectory() as d:
        return judge(o, d)


if __name__ == "__main__":
    sys.exit(main())
