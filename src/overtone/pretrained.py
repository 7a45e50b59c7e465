"""The trained models that come with the package, by name."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "weights"


def pretrained_names() -> list[str]:
    """What `from_pretrained` and all commands take in the place of a folder."""
    return (
        sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) if FOLDER.is_dir() else []
    )


def pretrained_folder(name: str | Path) -> Path | None:
    """The folder of a packaged model, or None if there is none of that name."""
    return FOLDER / str(name) if str(name) in pretrained_names() else None
