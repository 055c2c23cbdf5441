# SPDX-License-Identifier: Apache-2.0
"""Starting a server of this user's on demand, by autofusectl's rules: same paths, same lock, so that both start one between them."""
import fcntl
import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autofuse import _ffi
from autofuse.errors import Unavailable

SYSTEM_SOCKET = "/run/autofused/core.sock"
START_TIMEOUT_S = 30.0
# The server is nobody's child here: the shell that starts it ends at once, so that no os.wait() of the program meets it.
_SPAWN = '"$0" --socket "$1" & echo $!'


def candidates(named: str | None) -> list[str]:
    """Sockets in the order in which the library tries them."""
    named = named or os.environ.get("AUTOFUSE_SOCKET")
    if named:
        return [named]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own = f"{runtime}/autofused/core.sock" if runtime else f"/tmp/autofused-{os.geteuid()}/core.sock"
    return [SYSTEM_SOCKET, own]


def probe(path: str) -> str:
    """"up", "absent", or what is in the way of starting a server there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as s:
        try:
            s.connect(path)
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        except ConnectionRefusedError:
            try:
                return "absent" if stat.S_ISSOCK(os.stat(path).st_mode) else f"{path} is not a socket"
            except FileNotFoundError:
                return "absent"
        except BlockingIOError:
            return "up"  # its queue is full
        except OSError as e:
            return f"{path}: {e.strerror or e}"
    return "up"


def program() -> str:
    """The server's program: beside the package, in its build tree, beside the library, in PATH."""
    prefix = Path(_ffi.library_path()).resolve().parent
    places = [_ffi.PACKAGE / "_native" / "bin", *(tree / "daemon" for tree in _ffi.build_trees()), prefix.parent / "daemon"]
    places += [p / "bin" for p in (prefix.parent, prefix.parent.parent)]  # lib/ and lib/<triplet>/
    for place in places:
        if os.access(place / "autofused", os.X_OK):
            return str(place / "autofused")
    return shutil.which("autofused") or "autofused"


def _make_directory(directory: str) -> None:
    os.makedirs(directory, mode=0o755, exist_ok=True)
    st = os.lstat(directory)
    if not stat.S_ISDIR(st.st_mode) or st.st_uid != os.geteuid():
        raise PermissionError(1, "the directory is not this user's")


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Held by whoever starts a server here; the kernel releases it."""
    _make_directory(directory)
    fd = os.open(f"{directory}/start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)  # in slices: an interrupt arrives
        yield
    finally:
        os.close(fd)


def _said(log: int, start: int) -> str:
    lines = os.pread(log, 4096, start).decode(errors="replace").strip().split("\n")
    return f": {lines[-1]}" if lines[-1] else ""


def _spawn(path: str, log: int) -> int:
    """Process id of a server with a session of its own and no descriptor but the log."""
    shell = subprocess.Popen(["/bin/sh", "-c", _SPAWN, program(), path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                             start_new_session=True, close_fds=True, cwd="/")
    assert shell.stdout
    with shell.stdout:
        line = shell.stdout.readline()
    shell.wait()
    return int(line)


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _start(path: str, directory: str) -> None:
    log = os.open(f"{directory}/autofused.log", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        begin = os.lseek(log, 0, os.SEEK_END)
        pid, until = _spawn(path, log), time.monotonic() + START_TIMEOUT_S
        while (state := probe(path)) != "up":
            gone = not _is_alive(pid)
            if gone and probe(path) == "up":
                return
            if gone or time.monotonic() > until:
                how = "ended at once" if gone else "does not answer"
                raise Unavailable(f"no server is running, and one started at {path} {how}{_said(log, begin)}", retryable=state == "absent")
            time.sleep(0.01)
    finally:
        os.close(log)


def is_allowed() -> bool:
    """Unless $AUTOFUSE_AUTOSTART is 0."""
    return os.environ.get("AUTOFUSE_AUTOSTART") != "0"


def ensure(named: str | None = None) -> bool:
    """Whether a server is up: started here where none answered and that is allowed. Unavailable where none can be started."""
    paths = candidates(named)
    states = [probe(p) for p in paths]
    if "up" in states:
        return True
    if not is_allowed():
        return False
    at = 0 if os.geteuid() == 0 else len(paths) - 1  # root's own server is the system's
    if states[at] != "absent":
        raise Unavailable(f"no server is running, and none can be started: {states[at]}")
    path = paths[at]
    directory = os.path.dirname(path) or "."
    try:
        with _locked(directory):
            if probe(path) != "up":  # another process may have started it meanwhile
                _start(path, directory)
    except OSError as e:
        raise Unavailable(f"no server is running, and none can be started in {directory}: {e.strerror or e}") from e
    return True
