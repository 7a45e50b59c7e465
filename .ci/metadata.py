"""What the package says of itself that depends on where it is published: links and its README.

No address is written down in the sources, for a fork or a move would make it wrong. The forge says
its own when it builds (GitHub's variables), and `OVERTONE_REPOSITORY=https://…` says it elsewhere.
Without an address there are no project links, and what the README links to within the repository
is text. hatchling calls this (pyproject.toml); a wheel built from the sdist keeps what that has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
"""A Markdown link or picture whose target is a file of the repository."""


class Published(MetadataHookInterface):
    """Fills in `urls` and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add to a project's metadata."""
        root = Path(self.root)
        address = repository(os.environ)
        version = re.search(
            r'^__version__ = "(.*)"', (root / "src/overtone/version.py").read_text(), flags=re.M
        )
        assert version is not None
        text = outside((root / "README.md").read_text(), address, f"v{version[1]}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(address)


def repository(environment: Mapping[str, str]) -> str:
    """The repository's address, "" if nobody says it."""
    said = environment.get("OVERTONE_REPOSITORY", "")
    if not said and environment.get("GITHUB_REPOSITORY"):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        said = f"{server}/{environment['GITHUB_REPOSITORY']}"
    if said and not re.fullmatch(r"https://[^\s/]+/\S+", said):
        raise ValueError(f"OVERTONE_REPOSITORY is '{said}', not an address like https://HOST/NAME")
    return said.rstrip("/")


def urls(address: str) -> dict[str, str]:
    """The project's links, by the labels that package indexes know.

    Args:
        address: of the repository, or "".
    """
    if not address:
        return {}
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/main/docs",
        "Source": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
    }


def outside(text: str, address: str, tag: str) -> str:
    """A README as it can be read outside of the repository.

    Args:
        text: Markdown, with links to files beside it.
        address: of the repository; if "", links become text and pictures their descriptions.
        tag: the release whose files are linked to.
    """

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if not address:
            return f"*{words}*" if mark else words
        return f"{mark}[{words}]({address}/{'raw' if mark else 'blob'}/{tag}/{target})"

    return LINK.sub(link, text)
