#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tiles of the corpus' kernels against the best ones, at full size: bench_tiling on every row."""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--only", default="", help="rows whose name holds this")
    p.add_argument("options", nargs="*", help="--rows, --trees, --no-twin; behind --")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        corpus = os.path.join(ROOT, "tests/corpus/corpus.py")
        write = [sys.executable, corpus, "--write", directory, "--sizes", "full", *(["--only", o.only] if o.only else [])]
        paths = subprocess.run(write, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        return subprocess.run([os.path.join(o.build, "bench/bench_tiling"), *o.options, *paths], check=False).returncode


sys.exit(main())
