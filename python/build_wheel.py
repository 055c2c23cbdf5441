#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel that carries what it needs of this build: the libraries, the server's programs, rules and twin (`make wheel`).

    build_wheel.py --build DIR --out DIR [--python PYTHON]

PYTHON: one with pip and setuptools. The programs still need the system's libraries: README.md names them.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def installed(build: str, scratch: str) -> str:
    """The prefix of the build's own installation below scratch."""
    tools = [t for t in ("/usr/bin/meson", shutil.which("meson")) if t and os.path.exists(t)]
    for meson in tools:  # the one that set the build up
        command = [meson, "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            found = glob.glob(glob.escape(scratch) + "/**/bin/autofused", recursive=True)
            assert len(found) == 1, found
            return os.path.dirname(os.path.dirname(found[0]))
    sys.exit(f"meson install failed: {done.stderr or done.stdout}" if tools else "no meson")


def carry(prefix: str, native: str) -> None:
    """Copies what runs: libraries by the names that are loaded, no archives, of headers the one that TensorFlow's op is built with."""
    for name in ("bin", "libexec", "share/autofused"):
        shutil.copytree(os.path.join(prefix, name), os.path.join(native, name))
    os.makedirs(os.path.join(native, "lib"))
    os.makedirs(os.path.join(native, "include"))
    shutil.copy(os.path.join(prefix, "include", "autofuse.h"), os.path.join(native, "include"))
    for path in glob.glob(glob.escape(prefix) + "/lib/**/libautofuse*.so.[0-9]", recursive=True):
        shutil.copy(path, os.path.join(native, "lib"))
    for path in glob.glob(glob.escape(native) + "/bin/*") + glob.glob(glob.escape(native) + "/libexec/autofused/*"):
        subprocess.run(["strip", path], check=False)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    p.add_argument("--out", default=".")
    p.add_argument("--python", default=sys.executable)
    o = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="autofuse-wheel.") as scratch:
        source = os.path.join(scratch, "python")
        shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        carry(installed(o.build, os.path.join(scratch, "dest")), os.path.join(source, "autofuse", "_native"))
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        subprocess.run([o.python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation",
                        "--wheel-dir", o.out, f"--config-settings=--build-option=--plat-name={platform}", source], check=True)


if __name__ == "__main__":
    main()
