#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same fragment gives the same source bytes, in every process and from every build.

    same_source.py EMIT_KERNEL [--compiler CC,CXX ...] [--part K/N] [FRAGMENT.json ...]

Each fragment is planned by several processes that differ in what must not matter: addresses, what fresh memory holds, environment, locale,
time zone, working directory. With --compiler also by builds of the tree with those compilers, without optimisation. Without fragments: the
corpus and tests/fragments. `ok NAME` or `not ok NAME` each.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "corpus"))
import corpus

ELSEWHERE = {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/", "MALLOC_PERTURB_": "165", "MALLOC_TOP_PAD_": "1048576", "PADDING": "x" * 5000}


def emitted(tool, path, environment, directory):
    """What a process prints: its sources, or its error."""
    p = subprocess.run([tool, path], env={**os.environ, "MALLOC_PERTURB_": "0", **environment}, cwd=directory, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False)
    return p.returncode, p.stdout


def build(pair, directory):
    cc, cxx = pair.split(",")
    where = os.path.join(directory, os.path.basename(cc))
    subprocess.run(["meson", "setup", where, ROOT, "--buildtype", "plain"], env={**os.environ, "CC": cc, "CXX": cxx}, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", where, "tests/tools/emit_kernel"], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(where, "tests/tools/emit_kernel")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("emit_kernel")
    p.add_argument("--compiler", action="append", default=[], metavar="CC,CXX")
    p.add_argument("--part", default="0/1", help="every N-th fragment from the K-th on")
    p.add_argument("fragments", nargs="*")
    o = p.parse_args()
    first, step = map(int, o.part.split("/"))
    tool, bad, kernels = os.path.abspath(o.emit_kernel), 0, 0
    with tempfile.TemporaryDirectory() as d:
        paths = o.fragments or corpus.write(corpus.corpus.ROWS, "full", d) + sorted(glob.glob(os.path.join(HERE, "fragments", "*.json")))
        others = [build(c, d) for c in o.compiler]
        for path in map(os.path.abspath, paths[first::step]):
            code, text = emitted(tool, path, {}, ROOT)
            runs = [emitted(tool, path, ELSEWHERE, d)] + [emitted(other, path, {}, ROOT) for other in others]
            good = code == 0 and all(run == (0, text) for run in runs)
            bad += not good
            kernels += (b"\n" + text).count(b"\nkernel autofused_")
            print(f"{'ok' if good else 'not ok'} {os.path.basename(path)}", flush=True)
    print(f"# {kernels} kernels, each written {2 + len(o.compiler)} times")
    return 1 if bad or not kernels else 0


sys.exit(main())
