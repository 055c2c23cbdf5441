#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_backend_run: how many of the onnx package's CPU node tests its own runner really runs through autofuse.onnx, none failing.

    onnx_backend.py [--build DIR]

tests/python/test_onnx_backend.py counts and compares. No figure where onnx is not installed (deploy/install-python).
"""
import argparse, os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIPPED = 77


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    build = os.path.abspath(p.parse_args().build)
    rc = subprocess.run([sys.executable, os.path.join(ROOT, 'tests', 'python', 'test_onnx_backend.py'), '--json'],
                        env={**os.environ, 'AF_BUILD_ROOT': build}).returncode
    return 0 if rc == SKIPPED else rc


sys.exit(main())
