"""Where files are kept that can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$OVERTONE_CACHE`, or `overtone` in the user's cache folder."""
    if "OVERTONE_CACHE" in os.environ:
        return Path(os.environ["OVERTONE_CACHE"])
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "overtone"
