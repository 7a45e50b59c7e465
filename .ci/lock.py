"""Write requirements.lock: the versions of constraints.txt, each with the hashes of its wheels.

Hashes are those that the package index announces; which index is pip's own choice. Wheels are
listed for the systems that Overtone is installed on, never source archives, which would run code
before anything of theirs was checked. torch has no hashes: its CPU builds come from other places
under the same version. Run by `make lock` after a change of constraints.txt.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
UNHASHED = ("torch",)
PYTHONS = (11, 12, 13, 14)
"""Versions 3.x of CPython."""
SYSTEMS = re.compile(r"any|(?:many)?linux.*_(?:x86_64|aarch64)|macosx_.*|win_amd64")


class Links(HTMLParser):
    """The files of a project's page and their hashes, as package indexes list them (PEP 503)."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an `<a href="…/NAME#sha256=DIGEST">`."""
        address = dict(attrs).get("href") or ""
        if found := re.search(r"([^/]+)#sha256=([0-9a-f]{64})$", address):
            self.files[found[1]] = found[2]


def index() -> str:
    """The address of the package index that pip uses."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    from pip._internal.models.index import PyPI

    return os.environ.get("PIP_INDEX_URL") or done.stdout.strip() or PyPI.simple_url


def fits(tag: Tag) -> bool:
    """Whether a wheel of this tag can be installed where Overtone runs."""
    if not SYSTEMS.fullmatch(tag.platform):
        return False
    found = re.fullmatch(r"(cp|py)3(\d*)", tag.interpreter)
    if found is None:
        return False
    kind, minor = found[1], int(found[2] or 0)
    if kind == "py" or tag.abi == "abi3":
        return minor <= max(PYTHONS)
    return minor in PYTHONS and tag.abi in ("none", tag.interpreter)


def files(name: str, address: str) -> dict[str, str]:
    """All files of a project on an index, and their SHA-256."""
    links = Links()
    page = f"{address.rstrip('/')}/{canonicalize_name(name)}/"
    request = urllib.request.Request(page, headers={"Accept": "text/html"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        links.feed(answer.read().decode())
    return links.files


def wheels(found: dict[str, str], version: Version) -> list[str]:
    """SHA-256 of those files that are wheels of one version and fit, sorted."""
    chosen = set()
    for name, digest in found.items():
        try:
            _, own, _, tags = parse_wheel_filename(name)
        except InvalidWheelFilename:
            continue
        if own == version and any(map(fits, tags)):
            chosen.add(digest)
    return sorted(chosen)


def main() -> None:
    """Write the file; a version without a wheel is an error."""
    lines = ["# Written by `make lock` from constraints.txt; SECURITY.md says what it is for."]
    address = index()
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pin = Requirement(line)
        if canonicalize_name(pin.name) in UNHASHED:
            continue
        ((_, version),) = ((s.operator, Version(s.version)) for s in pin.specifier)
        digests = wheels(files(pin.name, address), version)
        if not digests:
            sys.exit(f"error: the index has no wheel of {line}; choose a version that has one")
        lines += [" \\\n    ".join([line, *(f"--hash=sha256:{digest}" for digest in digests)])]
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
