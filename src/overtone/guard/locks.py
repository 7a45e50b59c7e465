"""One writer for a folder at a time; the second is told who the first is.

The lock is the kernel's, on a file in the folder that says who holds it. It ends with its process,
however that ends, so a file that nobody holds is stale and is taken over. Where there are no such
locks (some network disks, Windows), the file alone decides: it is stale if it names a process of
this machine that is no more.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from overtone.errors import OvertoneError
from overtone.guard.names import shown

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".overtone.lock"
PAUSE = 0.2
"""Seconds between two looks at a lock that is waited for."""

_held: set[int] = set()


class Lock:
    """A lock that is held.

    Attributes:
        folder: what it is on; whoever gives the folder another name says so here.
    """

    def __init__(self, folder: Path, handle: int):
        self.folder, self._handle = folder, handle

    def release(self) -> None:
        """Let others in, and leave nothing behind."""
        path = self.folder / LOCK
        _held.discard(self._handle)
        if _is_at(self._handle, path):
            path.unlink()
        os.close(self._handle)


@contextmanager
def locked(
    folder: str | Path,
    *,
    wait: Callable[[str], None] | None = None,
    error: type[OvertoneError] = OvertoneError,
) -> Iterator[Lock]:
    """Keep other processes, and other threads of this one, from writing into a folder.

    Args:
        folder: made if it is not there, and removed again if nothing was put into it.
        wait: called again and again, with what to say, while somebody else holds it.
        error: raised if somebody else holds it and there is no `wait`.
    """
    folder = Path(folder)
    made = [path for path in (folder, *folder.absolute().parents) if not path.exists()]
    lock = Lock(folder, _acquire(folder / LOCK, wait, error))
    try:
        yield lock
    finally:
        lock.release()
        with suppress(OSError):  # one is not empty, as it should be
            for path in made:
                (lock.folder if path == folder else path).rmdir()


def _acquire(path: Path, wait: Callable[[str], None] | None, error: type[OvertoneError]) -> int:
    """An open lock file that is ours, with our name in it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)  # its holder may take it along
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            ours = _lock(handle, path)
            if ours and _is_at(handle, path):
                os.ftruncate(handle, 0)
                os.pwrite(handle, json.dumps(_self()).encode(), 0)
                _held.add(handle)
                return handle
            if not ours and wait is None:
                raise error(_refusal(path, _read(path)))
            if not ours and wait is not None:
                wait(f"waiting for {_who(_read(path))}, who is writing '{path.parent}'")
        except BaseException:
            os.close(handle)
            raise
        # Held by somebody else, or removed by them just before we had it: look again.
        os.close(handle)
        time.sleep(0 if ours else PAUSE)


def _lock(handle: int, path: Path) -> bool:
    """Whether the open file is ours now."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                raise
    return not _is_alive(_read(path))


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _self() -> dict[str, Any]:
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return {"process": os.getpid(), "host": socket.gethostname(), "since": since}


def _read(path: Path) -> dict[str, Any]:
    """What a lock file says; nothing if it can't be read."""
    try:
        content = json.loads(path.read_text(errors="replace"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_alive(holder: dict[str, Any]) -> bool:
    """Whether the process that a file names may still be there; another host's may be."""
    process = holder.get("process")
    if not isinstance(process, int) or process <= 0:
        return False
    if holder.get("host") != socket.gethostname():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's, so it is there
    return True


def _refusal(path: Path, holder: dict[str, Any]) -> str:
    return (
        f"'{path.parent}' is in use by {_who(holder)}; it is left alone. Wait for it or stop it, "
        "or choose another folder"
    )


def _who(holder: dict[str, Any]) -> str:
    if not holder:
        return "another process"
    process, host, since = (shown(holder.get(k, "?")) for k in ("process", "host", "since"))
    return f"process {process} on {host}, since {since}"


def _forget() -> None:
    """In a forked child: what reads data beside a run must not keep its lock when the run dies."""
    for handle in _held:
        with suppress(OSError):
            os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
