#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs generated kernels under another judge of Ascend C and compares with the reference interpreter.

    ascendc_ref.py TOOL_DIR [--build DIR] [--seeds A:B] [--only SUBSTRING] [--specials] [--batch N] [FRAGMENT.json...]

TOOL_DIR holds run.sh KERNEL.cpp NAME --blocks N --arg in:FILE|out:BYTES:FILE|zero:BYTES (vector kernels on the CPU against the vendor's
headers). Without fragments: the samples, every fragment of kernel_fragments.py, and the seeds. Floats must agree to 8 units in the last place of
their type, since exp, ln and division are the judge's own; everything else exactly. One line per failure, one at the end.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel_fragments

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ULPS = {"float32": (np.uint32, 8), "float16": (np.uint16, 8), "bfloat16": (np.uint16, 4)}


def steps_apart(got, want, word):
    """Distance in representable values; +0 equals -0."""
    sign = 1 << (word().itemsize * 8 - 1)

    def order(a):
        a = a.astype(np.int64)
        return np.where(a & sign, -(a & (sign - 1)), a)
    return np.abs(order(got) - order(want))


def is_nan(a, dtype):
    if dtype == "float32":
        return (a & 0x7FFFFFFF) > 0x7F800000
    if dtype == "float16":
        return (a & 0x7FFF) > 0x7C00
    return (a & 0x7FFF) > 0x7F80


def differs(got, want, dtype):
    if dtype not in ULPS:
        bad = got != want
        return int(np.count_nonzero(np.frombuffer(got, np.uint8) != np.frombuffer(want, np.uint8))) if bad else 0
    word, limit = ULPS[dtype]
    g, w = np.frombuffer(got, word), np.frombuffer(want, word)
    both = is_nan(g, dtype) & is_nan(w, dtype)
    one = is_nan(g, dtype) ^ is_nan(w, dtype)
    return int(np.count_nonzero(~both & (one | (steps_apart(g, w, word) > limit))))


def batch(directory, names, number):
    """Several kernels as one source, a namespace each: the vendor's headers take seconds to compile, a kernel does not."""
    path = os.path.join(directory, f"batch{number}.cpp")
    with open(path, "w", encoding="utf-8") as out:
        out.write('#include "kernel_operator.h"\n')
        for k, name in enumerate(names):
            with open(os.path.join(directory, name + ".cpp"), encoding="utf-8") as f:
                text = f.read().replace('#include "kernel_operator.h"\n', "").replace("autofused_case", f"autofused_case{k}")
            out.write(f"namespace case{k} {{ // {name}\n{text}}}\n")
    return path


def run_case(tool, line, directory, source, k):
    fields = line.split()
    name, blocks, sync, args = fields[0], fields[1], fields[2] == "1", fields[3:]
    command = [os.path.join(tool, "run.sh"), source, f"autofused_case{k}", "--blocks", blocks, "--timeout", "300"]
    outs = []
    for i, a in enumerate(args):
        kind, rest = a.split(":", 1)
        if kind == "in":
            command += ["--arg", "in:" + rest if os.path.getsize(rest) else "null"]
        elif kind == "work":
            command += ["--arg", "zero:" + rest]
        else:
            size, want, dtype = rest.split(":")
            got = os.path.join(directory, f"{name}.{i}.got")
            command += ["--arg", f"out:{size}:{got}" if size != "0" else "null"]
            if size != "0":
                outs.append((got, want, dtype))
    if sync:
        command.append("--parallel")
    r = subprocess.run(command, capture_output=True, text=True, check=False)
    if r.returncode:
        text = (r.stderr + r.stdout).strip().splitlines()
        return f"{name}: exit {r.returncode}: " + " | ".join(text[:4])
    for got, want, dtype in outs:
        with open(got, "rb") as a, open(want, "rb") as b:
            bad = differs(a.read(), b.read(), dtype)
        if bad:
            return f"{name}: {bad} of {os.path.basename(want)} differ"
    return None


def run_all(tool, lines, directory, size):
    """Yields a message or None per case."""
    for at in range(0, len(lines), size):
        part = lines[at:at + size]
        source = batch(directory, [line.split()[0] for line in part], at // size)
        for k, line in enumerate(part):
            yield run_case(tool, line, directory, source, k)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tool")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--seeds")
    p.add_argument("--only", default="")
    p.add_argument("--specials", action="store_true")
    p.add_argument("--batch", type=int, default=20, help="kernels compiled together")
    p.add_argument("fragments", nargs="*")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as d:
        paths = o.fragments or (sorted(glob.glob(os.path.join(ROOT, "examples/fragments/*.json"))) if not o.only else []) + \
            kernel_fragments.write(os.path.join(d, "fragments"), o.only)
        command = [os.path.join(o.build, "tests/tools/kernel_cases"), "--out", d] + (["--seeds", o.seeds] if o.seeds else []) + \
            (["--specials"] if o.specials else []) + paths
        made = subprocess.run(command, capture_output=True, text=True)
        print(made.stdout.strip().splitlines()[-1] if made.stdout else made.stderr)
        if made.returncode:
            print(made.stdout)
            return 1
        with open(os.path.join(d, "cases.txt"), encoding="utf-8") as f:
            lines = f.read().splitlines()
        failed = 0
        for done, message in enumerate(run_all(o.tool, lines, d, o.batch), 1):
            if message:
                failed += 1
                print("not ok " + message, flush=True)
            if done % 50 == 0:
                print(f"# {done} of {len(lines)}", flush=True)
    print(f"{'failed' if failed else 'ok'}: {len(lines)} kernels, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
