# SPDX-License-Identifier: Apache-2.0
"""Threads for runs that ask for more than one: the library's pools, one per number of threads, shared by the process."""
from typing import Any, NamedTuple

from autofuse._ffi import ffi, lib
from autofuse.errors import check, new_error


class Executor(NamedTuple):
    """For struct autofuse_run: its executor and userdata."""

    function: Any
    handle: Any


_pools: dict[int, Executor] = {}


def executor(threads: int) -> Executor | None:
    """A pool of `threads` threads, the caller's counted; None for one. Its threads start at the first launch that is worth it, sleep
    between launches, and start anew in a forked child."""
    if threads <= 1:
        return None
    found = _pools.get(threads)
    if found is None:
        made, error = ffi.new("struct autofuse_pool **"), new_error()
        check(lib().autofuse_pool_new(threads, made, error), error)
        fresh = Executor(ffi.addressof(lib(), "autofuse_pool_execute"), made[0])
        found = _pools.setdefault(threads, fresh)
        if found is not fresh:
            lib().autofuse_pool_free(made[0])
    return found
