#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes autofuse/_tables.py from client/autofuse.h: the header as cffi's prepared tables, so that importing the package parses no C.

    generate.py [--header FILE] [--out FILE]

Run it where the header changed; tests/python/test_header.py compares.
"""
import argparse
import contextlib
import os
import re

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))


def declarations(header: str) -> str:
    """What cffi reads of the header: declarations, without comments and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    rank = re.search(r"#define\s+AUTOFUSE_MAX_RANK\s+(\d+)", text)
    assert rank, "the header names no AUTOFUSE_MAX_RANK"
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.S)
    text = re.sub(r"^#.*?(?<!\\)$", "", re.sub(r"\\\n", " ", text), flags=re.M)
    text = re.sub(r"\s*\bAUTOFUSE_CHECK\b", "", text).replace("AUTOFUSE_MAX_RANK", rank.group(1))
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip()) + "\n"


def tables(header: str) -> str:
    """Source of _tables.py."""
    builder = cffi.FFI()
    builder.cdef(declarations(header))
    builder.set_source("autofuse._tables", None)
    target = os.path.join(HERE, f".tables.{os.getpid()}.py")
    try:
        with contextlib.redirect_stdout(None):
            builder.emit_python_code(target)
        with open(target, encoding="utf-8") as f:
            body = f.read()
    finally:
        if os.path.exists(target):
            os.unlink(target)
    return "# SPDX-License-Identifier: Apache-2.0\n" + body


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--header", default=os.path.join(os.path.dirname(HERE), "client", "autofuse.h"))
    p.add_argument("--out", default=os.path.join(HERE, "autofuse", "_tables.py"))
    o = p.parse_args()
    with open(o.header, encoding="utf-8") as f:
        text = tables(f.read())
    with open(o.out, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
