"""What may be asked of this machine: an estimate first, then a refusal with both numbers.

What is about to be allocated or written is compared with what there is. The limit on memory can be
set: `OVERTONE_MAX_MEMORY=8GB`. Where nothing can be written, that is said before anything is
computed.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from overtone.errors import DataError, OvertoneError

UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
VARIABLE = "OVERTONE_MAX_MEMORY"


def require_memory(
    needed: float, what: str, advice: str, *, error: type[OvertoneError] = DataError
) -> None:
    """Refuse an allocation that does not fit into the memory that is available.

    Args:
        needed: bytes.
        what: what they are for.
        advice: how to need less.
        error: the exception to raise.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise error(
            f"{what} takes {readable(needed)}, but only {readable(available)} of memory are "
            f"available; {advice} (or set {VARIABLE}, e.g. to 64GB)"
        )


def require_disk(
    needed: float, folder: str | Path, what: str, *, error: type[OvertoneError] = DataError
) -> None:
    """Refuse files that do not fit on the disk.

    Args:
        needed: bytes.
        folder: where they are to be; it need not exist yet.
        what: what they are.
        error: the exception to raise.
    """
    place = Path(folder).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    if needed > free:
        raise error(
            f"{what} takes {readable(needed)}, but only {readable(free)} are free where "
            f"'{folder}' is; ask for less, or choose another folder"
        )


def require_writable(folder: str | Path, *, error: type[OvertoneError] = DataError) -> None:
    """Refuse a folder in which no file can be made; what was made to find out is removed again.

    Args:
        folder: it need not exist yet.
        error: the exception to raise.
    """
    folder = Path(folder)
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".writable-", suffix=".tmp"):
            pass
    except OSError as reason:
        raise error(
            f"nothing can be written to '{folder}': {reason.strerror or reason}. Nothing was "
            "computed; choose another folder"
        ) from reason
    finally:
        for place in missing:
            with suppress(OSError):  # it was never made, or somebody else has filled it
                place.rmdir()


def require_writable_file(path: str | Path, *, error: type[OvertoneError] = DataError) -> None:
    """Refuse a file that can't be made, or whose name a folder has; see `require_writable`."""
    if Path(path).is_dir():
        raise error(f"'{path}' is a folder; expected the name of a file")
    require_writable(Path(path).parent, error=error)


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping, or what the user allows; None if unknown."""
    if given := os.environ.get(VARIABLE, "").strip():
        return _parse(given)
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _parse(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*(k|M|G|T|P)?B?", text, flags=re.IGNORECASE)
    if not found:
        raise OvertoneError(f"{VARIABLE} is {text!r}; expected a size such as 8GB")
    return int(float(found[1]) * 1000 ** (" kmgtp".index((found[2] or " ").lower())))


def readable(num_bytes: float) -> str:
    """A number of bytes in the unit that suits it, e.g. `1.5 MB`."""
    power = 0
    while num_bytes >= 1000 and power < len(UNITS) - 1:
        num_bytes /= 1000
        power += 1
    return f"{num_bytes:.{1 if power else 0}f} {UNITS[power]}"
