"""What a benchmark leaves behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def save(path: Path, content: Mapping[str, Any], *, indent: int = 2) -> None:
    """Write strict JSON, which knows no NaN; folders on the way are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=indent, allow_nan=False) + "\n")
