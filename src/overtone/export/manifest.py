"""`manifest.json`: all that a program's user must know, and what it was made from.

| key | holds |
|---|---|
| `format` | `overtone-export-1` |
| `model` | name, kind and configuration of the model, SHA-256 of its weights if it was a folder |
| `domain` | grid, extent, boundaries, fields in their order, dt |
| `units` | unit of each field where it was given, or null |
| `context` | frames of a window |
| `patched` | whether there are patches; if not, one program serves all |
| `shift` | for each axis, whether programs take shifts along it |
| `inputs`, `output` | names, types and shapes of the programs' tensors; "batch" is free |
| `max_batch` | most samples of a call |
| `programs` | for each: patch, format, file, difference from the model, tolerance |
| `verified` | what the difference is measured with: batches, steps and window |
| `files` | SHA-256 of every other file of the folder |
| `made_with` | versions, system, processor |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from overtone.domain import Domain
from overtone.export.program import MAX_BATCH, moved_axes
from overtone.export.verify import BATCHES, STEPS
from overtone.files import sha256
from overtone.models.base import Model
from overtone.schedules import Patch
from overtone.version import machine, package_version

FORMAT = "overtone-export-1"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Exported:
    """A program that was written and tried.

    Attributes:
        patch: cells of a token; 1 for a model without patches.
        format: one of `FORMATS`.
        file: its name in the folder.
        difference: largest one from the model, see `verify`.
        tolerance: what it may be at most.
    """

    patch: Patch
    format: str
    file: str
    difference: float
    tolerance: float


@dataclass(frozen=True)
class Source:
    """Where a model came from.

    Attributes:
        name: of its folder, or what the caller calls it.
        sha256: of its weights' file, if there is one.
    """

    name: str
    sha256: str | None = None


def manifest(
    model: Model,
    domain: Domain,
    source: Source,
    programs: Sequence[Exported],
    *,
    units: Mapping[str, str],
    window: str,
    folder: Path,
) -> dict[str, Any]:
    """The content of the file, plain data.

    Args:
        model: what was exported.
        domain: what its programs are for.
        source: where the model came from.
        programs: what was written.
        units: of some of the fields.
        window: what the programs were tried on, in words.
        folder: where all other files are.
    """
    moved = moved_axes(model, domain)
    cells = list(domain.shape)
    fields = len(domain.fields)
    inputs = [_tensor("window", "float32", ["batch", model.context, fields, *cells])]
    inputs += [_tensor("shift", "int64", [domain.ndim])] * any(moved)
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != MANIFEST)
    return {
        "format": FORMAT,
        "model": {**asdict(source), **model.blueprint()},
        "domain": domain.to_dict(),
        "units": {field: units.get(field) for field in domain.fields},
        "context": model.context,
        "patched": model.patched,
        "shift": list(moved),
        "max_batch": MAX_BATCH,
        "inputs": inputs,
        "output": _tensor("frame", "float32", ["batch", fields, *cells]),
        "programs": [asdict(program) for program in programs],
        "verified": {"batches": list(BATCHES), "steps": STEPS, "window": window},
        "files": {path.name: sha256(path) for path in files},
        "made_with": machine() | {n: package_version(n) for n in ("onnx", "onnxruntime")},
    }


def _tensor(name: str, kind: str, shape: list[Any]) -> dict[str, Any]:
    return {"name": name, "dtype": kind, "shape": shape}
