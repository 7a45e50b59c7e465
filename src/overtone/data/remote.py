"""Files behind a URL, by fsspec; what servers do wrong becomes an error that names the URL.

A server may answer anything. What it sends is taken for data only if it is what was asked for: as
many bytes, of that part of the file, in time (`OVERTONE_TIMEOUT`, in seconds).
Nothing is kept on the disk.
"""

from __future__ import annotations

import gc
import io
import math
import os
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from overtone.errors import DataError, OvertoneError

WEB = ("http://", "https://")
WHOLE_ONLY = "the server does not send parts of files. Download it, and read it from the disk"
TIMEOUT = "OVERTONE_TIMEOUT"
DEFAULT_TIMEOUT = 30.0
"""Seconds that a server has for each of its answers, of at most a few megabytes."""
MISSING = (404, 410)
"""Answers of a web server that has no such file."""


def ask(path: str, question: str, **options: Any) -> Any:
    """What fsspec's file system answers about a URL; what goes wrong there in our words.

    Args:
        path: the URL.
        question: name of a method, e.g. `"info"`.
        options: of the method.

    Raises:
        FileNotFoundError: there is no such file, and that is what was found out.
        DataError: nothing was found out.
    """
    system, place = _connect(path)
    try:
        return getattr(system, question)(place, **options)
    except Exception as error:
        missing = error.__cause__ is None or _status(error) in MISSING
        if isinstance(error, FileNotFoundError) and missing:
            raise
        raise _unanswered(path, error) from error


def is_file(path: str) -> bool:
    """Whether there is a file at a URL."""
    if not path.startswith(WEB):
        return bool(ask(path, "isfile"))
    try:  # fsspec's own answer would be no for every kind of trouble
        return bool(ask(path, "info"))
    except FileNotFoundError:
        return False


def _connect(path: str) -> tuple[Any, str]:
    """The file system that a URL is in, and where in it."""
    try:
        import fsspec
    except ImportError as error:
        raise DataError(
            f"'{path}' is remote, and fsspec is not installed; pip install 'overtone[remote]'"
        ) from error
    try:
        return fsspec.url_to_fs(path, **(_web_options() if path.startswith(WEB) else {}))
    except OvertoneError:
        raise
    except (ImportError, ValueError) as error:
        raise DataError(f"'{path}' can't be opened by fsspec: {error}") from error


class RemoteFile(io.RawIOBase, IO[bytes]):
    """A remote file whose reads are complete or an error; h5py would not notice what is missing.

    Args:
        path: its URL.
    """

    def __init__(self, path: str):
        self._stream, self._path = ask(path, "open", mode="rb"), path

    def readable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        try:
            return self._stream.seek(offset, whence)
        except ValueError as error:
            raise DataError(f"'{self._path}': {WHOLE_ONLY}") from error

    def tell(self) -> int:
        """The place where it is."""
        return self._stream.tell()

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes; fewer only at the end of the file."""
        start, total = self._stream.tell(), getattr(self._stream, "size", None)
        try:
            content = self._stream.read(-1 if size is None else size)
        except Exception as error:
            raise _unanswered(self._path, error) from error
        if total is not None:
            left = max(0, total - start)
            expected = left if size is None or size < 0 else min(size, left)
            if len(content) < expected:
                raise self._cut(len(content), expected, start)
        return content

    def readinto(self, buffer: Any) -> int:
        """Fill all of a buffer."""
        view, start = memoryview(buffer).cast("B"), self._stream.tell()
        # h5py calls this with its lock in hand, and fsspec answers in another thread. If that one
        # happened to collect garbage with something of h5py's in it, each would wait for the other.
        collecting = gc.isenabled()
        gc.disable()
        try:
            content = self.read(len(view))
        finally:
            if collecting:
                gc.enable()
        if len(content) != len(view):
            raise self._cut(len(content), len(view), start)
        view[:] = content
        return len(content)

    def close(self) -> None:
        """Close it."""
        if hasattr(self, "_stream"):  # it is not where opening failed
            self._stream.close()
        super().close()

    def _cut(self, count: int, expected: int, start: int) -> DataError:
        return DataError(
            f"'{self._path}' ended early: {count} bytes instead of {expected} from byte {start} "
            "on. It is cut there, or the connection was lost; try again or copy the dataset"
        )


def _web_options() -> dict[str, Any]:
    """How fsspec is to talk to web servers: with a time limit, and with a look at each answer."""
    import aiohttp

    return {
        "client_kwargs": {"timeout": aiohttp.ClientTimeout(total=_timeout())},
        "get_client": _client,
    }


def _timeout() -> float:
    text = os.environ.get(TIMEOUT, "").strip() or str(DEFAULT_TIMEOUT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise OvertoneError(f"{TIMEOUT} is {text!r}; expected seconds, e.g. 30")
    return seconds


async def _client(**options: Any) -> Any:
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_look_at_redirect)
    trace.on_request_end.append(_look_at_answer)
    return aiohttp.ClientSession(trace_configs=[trace], **options)


async def _look_at_redirect(session: Any, context: Any, parameters: Any) -> None:
    """Follow a redirect on the same server, or to one that proves who it is, as archives do."""
    here = str(parameters.url)
    there = urljoin(here, parameters.response.headers.get("Location", ""))
    old, new = urlsplit(here), urlsplit(there)
    if new.scheme != "https" and (new.scheme, new.netloc) != (old.scheme, old.netloc):
        raise DataError(
            f"'{here}' leads to '{there}', which is elsewhere; it is not followed. Give that "
            "address itself if it is the one that you mean"
        )


async def _look_at_answer(session: Any, context: Any, parameters: Any) -> None:
    """Refuse a whole file, or a page, in the place of the part that was asked for."""
    wanted = parameters.headers.get("Range", "bytes=0-")
    if parameters.response.status == 200 and not wanted.startswith("bytes=0-"):
        raise DataError(f"'{parameters.url}': {WHOLE_ONLY}")


def _unanswered(path: str, error: Exception) -> DataError:
    """What went wrong at a server, by the first cause of fsspec's error."""
    while isinstance(error.__cause__, Exception) and not isinstance(error, DataError):
        error = error.__cause__
    if isinstance(error, DataError):
        return DataError(str(error))  # another one: an error can't be the cause of its own cause
    if isinstance(error, TimeoutError):
        reason = f"no answer within {_timeout():g} seconds ({TIMEOUT} sets the limit)"
    elif status := _status(error):
        reason = f"the server answers {status} {getattr(error, 'message', '')}".rstrip()
    else:
        reason = " ".join(f"{type(error).__name__}: {error}".rstrip(".: ").split())
    return DataError(f"'{path}' can't be read: {reason}. Try again later, or copy the dataset")


def _status(error: BaseException) -> int | None:
    """The status of a web server's answer, if that is what an error is about."""
    return getattr(error.__cause__ or error, "status", None)
