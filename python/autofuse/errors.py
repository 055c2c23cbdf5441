# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, one class per status of the library."""
from typing import Any

from autofuse._ffi import ffi, lib, text


class AutofuseError(Exception):
    """Any failure of the library. `status` is the number of enum autofuse_status; `retryable`: the same call may succeed later."""

    status = 0
    retryable = False

    def __init__(self, message: str = "", status: int | None = None, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        if status is not None:
            self.status = status

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.status, self.retryable)


class ArgumentError(AutofuseError):
    """The call itself is wrong, or a fragment was changed after it was submitted."""

    status = 1


class OutOfMemory(AutofuseError, MemoryError):
    """No memory."""

    status = 2


class Invalid(AutofuseError, ValueError):
    """The fragment is wrong: the text names nodes and fields, one mistake a line."""

    status = 3


class Unavailable(AutofuseError):
    """No server, one that is not trusted, or a fault of it: run the graph without it."""

    status = 4


class CompileError(AutofuseError):
    """The toolchain refused the generated code; the text is its message."""

    status = 5


class Timeout(AutofuseError, TimeoutError):
    """The wait ended, the request goes on."""

    status = 6


class DeadlineExceeded(AutofuseError):
    """The request's deadline passed."""

    status = 7


class Canceled(AutofuseError):
    """By Request.cancel()."""

    status = 8


class NotFound(AutofuseError):
    """lookup_only: not compiled yet."""

    status = 9


class TargetError(AutofuseError):
    """An unknown SoC, or a toolchain that the server does not have."""

    status = 10


class KernelError(AutofuseError):
    """A kernel could not be loaded, or broke a rule of the checked twin."""

    status = 11


class ShapeError(AutofuseError, ValueError):
    """Memory or symbols given to a run do not suit the bundle."""

    status = 12


class CallbackError(AutofuseError):
    """A framework node failed, or there is nobody to run it."""

    status = 13


BY_STATUS: dict[int, type[AutofuseError]] = {c.status: c for c in AutofuseError.__subclasses__()}


def raise_error(status: int, error: Any) -> None:
    """Raises what an `struct autofuse_error **` holds after a call that failed, and frees it."""
    message, retryable = "", False
    if error[0]:
        message, retryable = text(lib().autofuse_error_text(error[0])), bool(lib().autofuse_error_is_retryable(error[0]))
        lib().autofuse_error_free(error[0])
        error[0] = ffi.NULL
    raise BY_STATUS.get(status, AutofuseError)(message or text(lib().autofuse_status_name(status)), status, retryable)


def new_error() -> Any:
    """Place for an error of one call."""
    return ffi.new("struct autofuse_error **")


def check(status: int, error: Any) -> None:
    """Raises unless a call succeeded."""
    if status:
        raise_error(status, error)
