# SPDX-License-Identifier: Apache-2.0
"""The connection to the server, and requests."""
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Union

from autofuse import _ffi, _server, debug, flags
from autofuse._ffi import ffi, lib, text
from autofuse.bundle import Bundle
from autofuse.errors import ArgumentError, AutofuseError, Timeout, Unavailable, check, new_error
from autofuse.fragment import Fragment

Log = Callable[[int, str], None]
"""Gets logging's level and a line: why the server is not used, once per reason (a warning); `Fallback <origin> $reason: …` (info)."""
Source = Union[Fragment, str, bytes]
logger = logging.getLogger("autofuse")
LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
NOT_USED = "autofused is not used:"  # how the library begins such a line
SLICE_MS = 100  # a wait goes on in slices, between which Python sees signals


class Progress(NamedTuple):
    """What the server says while it works."""

    text: str
    elapsed_ms: int
    n_waiters: int


class MemoStats(NamedTuple):
    """Of the in-process memo."""

    hits: int
    misses: int
    entries: int
    bytes: int
    evictions: int


class _Handle:
    """The C context with what it calls back. Requests keep it."""

    def __init__(self, options: dict[str, Any], log: Log) -> None:
        def tell(_userdata: Any, level: int, line: Any) -> None:
            log(LEVELS[level] if level < len(LEVELS) else logging.ERROR, text(line))

        self.callback = ffi.callback("void(void *, enum autofuse_log_level, const char *)", tell)
        kept = {k: ffi.new("char[]", os.fsencode(v)) if isinstance(v, str) else v for k, v in options.items()}
        o = ffi.new("struct autofuse_options *", {"size": ffi.sizeof("struct autofuse_options"), "log": self.callback, **kept})
        made, error = ffi.new("struct autofuse_context **"), new_error()
        check(lib().autofuse_context_open(o, made, error), error)
        self.pointer = ffi.gc(made[0], lib().autofuse_context_close)


class Request:
    """A submitted fragment. Any number of threads may wait for it."""

    def __init__(self, handle: _Handle, pointer: Any, symbols: list[str], kept: "list[Any]", raised: "list[BaseException]") -> None:
        self._handle, self._symbols, self._kept, self._raised = handle, symbols, kept, raised
        self._pointer = ffi.gc(pointer, lib().autofuse_request_free)

    def wait(self, timeout: float | None = None) -> Bundle:
        """The answer. timeout in seconds (Timeout: the request goes on, wait again); None: until the request's deadline."""
        until = None if timeout is None else time.monotonic() + timeout
        bundle, error = ffi.new("struct autofuse_bundle **"), new_error()
        while True:
            left = SLICE_MS if until is None else min(SLICE_MS, max(0, int((until - time.monotonic()) * 1000)))
            status = lib().autofuse_request_wait(self._pointer, left, bundle, error)
            if self._raised:
                if status == 0:
                    lib().autofuse_bundle_unref(bundle[0])
                lib().autofuse_error_free(error[0])
                raise self._raised.pop()
            try:
                check(status, error)
                return Bundle(bundle[0], self._symbols)
            except Timeout:
                if until is not None and time.monotonic() >= until:
                    raise

    def cancel(self) -> None:
        """Waiters get Canceled; the server ends the compile unless others wait for it."""
        lib().autofuse_request_cancel(self._pointer)


class Context:
    """A connection and a memo, for any number of threads; a forked child goes on with what it inherited. Opening does not connect.

    socket: of the server; None: $AUTOFUSE_SOCKET, else the system's, else this user's. strict: None: $AUTOFUSE_STRICT. log: None: logging's
    "autofuse". memo_bytes: 0: 64 MiB; None: no memo. packs: files of bundles. autostart: a server is started where none answers, unless
    $AUTOFUSE_AUTOSTART is 0."""

    def __init__(self, socket: str | None = None, strict: bool | None = None, log: Log | None = None, client_name: str | None = None,
                 memo_bytes: int | None = 0, packs: list[str] | None = None, autostart: bool = False, connect_timeout_ms: int = 0) -> None:
        self._start_failed = False
        self._held = threading.local()
        self._socket, self._autostart, self._log = socket, autostart, log or logger.log
        options: dict[str, Any] = {"socket": socket, "server_uid": -1, "memo_bytes": 2**64 - 1 if memo_bytes is None else memo_bytes,
                                   "connect_timeout_ms": connect_timeout_ms, "strict": -1 if strict is None else int(strict),
                                   "client_name": client_name, "packs": ":".join(packs) if packs else None}
        self._options = {k: v for k, v in options.items() if v is not None}
        self._handle: _Handle | None = _Handle(self._options, self._tell)
        self._starting = threading.Lock()
        self._was_up = False
        self._has_packs = bool(packs or os.environ.get("AUTOFUSE_PACKS"))  # they may answer without a server

    @property
    def is_strict(self) -> bool:
        """Whether the user wants a failure instead of a fall-back."""
        return bool(lib().autofuse_context_is_strict(self._open().pointer))

    def submit(self, source: Source, *, deadline_ms: int = 0, priority: int = 0, lookup_only: bool = False, bypass_memo: bool = False,
               progress: Callable[[Progress], None] | None = None) -> Request:
        """Sends a fragment (or its JSON) unless the memo answers. deadline_ms: 0: ten minutes. priority: 0: a rank waits … 255: warm-up.
        lookup_only: NotFound instead of a compile. progress: called by wait(), in its thread."""
        if self._autostart and not self._was_up and not self._has_packs:
            self._ensure_server()
        raised: list[BaseException] = []
        o = ffi.new("struct autofuse_submit_options *",
                    (ffi.sizeof("struct autofuse_submit_options"), deadline_ms, priority, lookup_only, bypass_memo))
        kept: list[Any] = [o]
        if progress:
            kept.append(self._progress(progress, raised))
            o.progress = kept[-1]
        handle = self._open()
        made, error = ffi.new("struct autofuse_request **"), new_error()
        if isinstance(source, Fragment):
            check(lib().autofuse_submit(handle.pointer, source.handle, o, made, error), error)
            kept.append(source)
            return Request(handle, made[0], source.symbols, kept, raised)
        data = source.encode() if isinstance(source, str) else bytes(source)
        check(lib().autofuse_submit_text(handle.pointer, data, len(data), o, made, error), error)
        return Request(handle, made[0], [], kept, raised)

    @staticmethod
    def _progress(progress: Callable[[Progress], None], raised: list[BaseException]) -> Any:
        last: list[Progress] = []

        def tell(_userdata: Any, p: Any) -> None:
            try:
                now = Progress(text(p.text), p.elapsed_ms, p.n_waiters)
                if [now] != last:  # each slice of a wait says again what was said last
                    last[:] = [now]
                    progress(now)
            except BaseException as e:  # to the caller of wait()
                raised.append(e)

        return ffi.callback("void(void *, const struct autofuse_progress *)", tell)

    def compile(self, source: Source, *, deadline_ms: int = 0, priority: int = 0, lookup_only: bool = False, bypass_memo: bool = False,
                progress: Callable[[Progress], None] | None = None) -> Bundle:
        """Submits and waits. An exception while it waits (an interrupt, one of `progress`) cancels the request."""
        how: dict[str, Any] = {"deadline_ms": deadline_ms, "priority": priority, "lookup_only": lookup_only, "bypass_memo": bypass_memo,
                               "progress": progress}
        if not flags.is_enabled():
            raise Unavailable("AUTOFUSE_FLAGS has --enable_autofuse=false")
        used = self._handle
        self._held.lines = [] if self._autostart else None
        try:
            bundle = self._compile(source, how)
        except Unavailable as e:
            if not (self._autostart and e.retryable and self._renew(used)):
                self._say_held()
                raise
            self._held.lines = None
            bundle = self._compile(source, how)
        finally:
            self._held.lines = None
        self._was_up = True
        if directory := flags.debug_dir():
            self._show(directory, source, bundle)
        return bundle

    def _show(self, directory: str, source: Source, bundle: Bundle) -> None:
        """Writes what AUTOFUSE_DFX_FLAGS asks for; where it cannot, a warning."""
        nodes = source.nodes if isinstance(source, Fragment) else debug.nodes_of_text(source)
        try:
            debug.dump(directory, source.name if isinstance(source, Fragment) else "fragment", nodes, bundle,
                       lambda kernel: self.kernel_source(bundle, kernel))
        except OSError as e:
            self._tell(logging.WARNING, f"AUTOFUSE_DFX_FLAGS: nothing is written: {e}")

    def _compile(self, source: Source, how: dict[str, Any]) -> Bundle:
        request = self.submit(source, **how)
        try:
            return request.wait()
        except BaseException as e:
            if not isinstance(e, AutofuseError):
                request.cancel()
            raise

    def _ensure_server(self) -> bool:
        """Whether a server is up. Where none can be started: one warning, and Unavailable; later requests look for one, but start none."""
        with self._starting:
            if self._start_failed:
                return False
            try:
                return _server.ensure(self._socket)
            except Unavailable as e:
                self._log(logging.WARNING, f"{NOT_USED} {e}")
                self._start_failed = True
                raise

    def _tell(self, level: int, line: str) -> None:
        held = getattr(self._held, "lines", None)
        if not line.startswith(NOT_USED):
            self._log(level, line)
        elif held is not None:  # this thread may start a server yet
            held.append((level, line))
        elif not self._start_failed:  # else it was said
            self._log(level, line)

    def _say_held(self) -> None:
        """No server is to be had after all."""
        held, self._held.lines = self._held.lines, None
        for level, line in held or ():
            self._tell(level, line)

    def _renew(self, used: _Handle | None) -> bool:
        """No server answered: whether one does now. The library looks for servers more and more seldom; a new handle looks at once."""
        if not self._ensure_server():
            return False
        with self._starting:
            if self._handle is used and used is not None:  # no other thread was here before
                self._handle = _Handle(self._options, self._tell)
        return True

    def memo_stats(self) -> MemoStats:
        """Counters of the memo."""
        s = ffi.new("struct autofuse_memo_stats *")
        lib().autofuse_context_memo_stats(self._open().pointer, s)
        return MemoStats(s.hits, s.misses, s.entries, s.bytes, s.evictions)

    def forget(self) -> None:
        """Drops every memo entry; bundles in use stay valid."""
        lib().autofuse_context_forget(self._open().pointer)

    def kernel_source(self, bundle: Bundle, kernel: int) -> str:
        """The Ascend C of a bundle's kernel, from the server's store; NotFound where it has it no longer."""
        made, error = ffi.new("char **"), new_error()
        check(lib().autofuse_kernel_source(self._open().pointer, bundle.handle, kernel, made, error), error)
        try:
            return text(made[0])
        finally:
            _ffi.free(made[0])

    def server_stats(self) -> dict[str, Any]:
        """The server's counters."""
        made, error = ffi.new("char **"), new_error()
        check(lib().autofuse_server_stats(self._open().pointer, made, error), error)
        try:
            return dict(json.loads(text(made[0])))
        finally:
            _ffi.free(made[0])

    def close(self) -> None:
        """Ends this object's use of the context, once calls under way return; requests and bundles stay valid."""
        self._handle = None

    def _open(self) -> _Handle:
        handle = self._handle
        if handle is None:
            raise ArgumentError("the context is closed")
        return handle

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


_default: Context | None = None
_default_lock = threading.Lock()


def default_context() -> Context:
    """This process's own, opened at the first call; starts a server of this user's where none answers."""
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = Context(autostart=True)
    return _default


def _after_fork() -> None:
    """In a forked child: locks that other threads of the parent held are new ones; the context goes on."""
    global _default_lock
    _default_lock = threading.Lock()
    if _default is not None:
        _default._starting = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
