# SPDX-License-Identifier: Apache-2.0
"""The environment's switches of Ascend's autofuse, as far as they mean something here.

AUTOFUSE_FLAGS      --enable_autofuse=false: nothing is compiled, graphs run as if no server were there
AUTOFUSE_DFX_FLAGS  --codegen_compile_debug=true;--debug_dir=DIR: what was compiled is written there (debug.py)
"""
import os
from functools import lru_cache


@lru_cache(maxsize=16)
def parse(flags: str) -> dict[str, str]:
    """{name: value} of "--name=value;--name=value". A flag without a value is true; names that mean nothing here are kept."""
    found = {}
    for part in flags.replace(",", ";").split(";"):
        name, equals, value = part.strip().lstrip("-").partition("=")
        if name:
            found[name.strip()] = value.strip() if equals else "true"
    return found


def is_enabled() -> bool:
    """Unless AUTOFUSE_FLAGS says otherwise."""
    return parse(os.environ.get("AUTOFUSE_FLAGS", "")).get("enable_autofuse", "true").lower() not in ("false", "0", "off")


def debug_dir() -> str | None:
    """Where AUTOFUSE_DFX_FLAGS wants to see what is compiled; None: nowhere."""
    flags = parse(os.environ.get("AUTOFUSE_DFX_FLAGS", ""))
    if flags.get("codegen_compile_debug", "false").lower() not in ("true", "1", "on"):
        return None
    return flags.get("debug_dir") or "autofuse_debug"
