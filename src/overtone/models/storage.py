"""Model folders: weights as safetensors, everything else as JSON. Nothing is ever executed.

A folder is written under a temporary name and then renamed, so that it is complete or absent. The
JSON file holds the SHA-256 of the weights, which is verified on loading. That finds damage, not
tampering: whoever replaces the weights can replace the number beside them. A digest that is kept
elsewhere, `load_model(path, sha256=...)`, finds both. `load_model` is the one door to every saved
model. What it is given is, in this order, the name of a model that comes with the package, a
folder, or a repository on the hub (`overtone.hub`).
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from overtone.errors import CheckpointError, suggest
from overtone.files import replacing, restore_folder, sha256
from overtone.guard.folders import claim, replacing_owned
from overtone.guard.names import shown
from overtone.hub import CALIBRATION, CARD, NEEDED, SCHEME, download, installed, parse
from overtone.models.calibration import Calibration
from overtone.models.compat import modern_config, modern_weights
from overtone.version import __version__

if TYPE_CHECKING:
    from overtone.models.base import Model

CONFIG, WEIGHTS = NEEDED
KIND = "model"
"""What the marker of such a folder says; see `guard.folders`."""
FORMAT = "overtone-emulator-1"
MAX_CONFIG_BYTES = 64_000_000
"""Largest configuration that is read."""
HALVES = (torch.float16, torch.bfloat16)
"""Precisions that single-precision weights may be stored in; they are converted."""
LOG = "metrics.jsonl"
"""What a training run's folder has from its start."""
PICKLES = {".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"}


def save_folder(
    path: str | Path,
    weights: Mapping[str, Tensor],
    config: Mapping[str, Any],
    *,
    card: str | None = None,
    carry: bool = False,
    calibration: Calibration | None = None,
) -> None:
    """Write a model folder, replacing an older model folder of that name in one step.

    Args:
        path: the folder.
        weights: named tensors.
        config: plain data, for JSON.
        card: what the model is, in Markdown; see `models.card`.
        carry: take along what somebody else put into the older folder, instead of refusing.
        calibration: what was measured with these weights; it names the new file's checksum.
    """
    from safetensors.torch import save_file  # pyright: ignore[reportUnknownVariableType]

    with replacing_owned(path, KIND, carry=carry, error=CheckpointError) as scratch:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        save_file(tensors, scratch / WEIGHTS)
        content = {
            "format": FORMAT,
            "overtone": __version__,
            "sha256": sha256(scratch / WEIGHTS),
            **config,
        }
        (scratch / CONFIG).write_text(json.dumps(content, indent=2) + "\n")
        if card is not None:
            (scratch / CARD).write_text(card)
        if calibration is not None:
            own = replace(calibration, weights=content["sha256"])
            (scratch / CALIBRATION).write_text(own.to_json())


def save_calibration(path: str | Path, calibration: Calibration) -> Path:
    """Put a calibration into the folder of the model that it was measured with.

    Args:
        path: as for `load_model`.
        calibration: names the weights that it is of.

    Returns:
        The file.
    """
    folder = find_model(path)
    stored = str(_read_config(folder / CONFIG)["sha256"])
    if calibration.weights != stored:
        raise CheckpointError(
            f"the calibration is of other weights than those in '{folder}'; calibrate that model"
        )
    file = claim(folder, KIND, error=CheckpointError).file(CALIBRATION)
    with replacing(file) as scratch:
        scratch.write_text(calibration.to_json())
    return file


def load_folder(
    path: str | Path, *, sha256: str | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a model folder: weights, and the configuration it was saved with.

    Args:
        path: as for `load_model`.
        sha256: as for `load_model`.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file  # pyright: ignore[reportUnknownVariableType]

    path = find_model(path)
    _refuse_others(path)
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            expected = "Expected a folder that Emulator.save wrote"
            if (path / LOG).is_file():
                expected = (
                    "It is a training run that was stopped before it kept its first model: go on "
                    f"with `overtone train RECIPE --out {path} --resume`"
                )
            raise CheckpointError(f"'{path}' is not a model folder: it has no {name}. {expected}")
    stored = _read_config(path / CONFIG)
    _require_digest(path / WEIGHTS, stored["sha256"], sha256)
    config = modern_config(stored)
    try:
        weights = load_file(path / WEIGHTS)
    except SafetensorError as error:
        raise CheckpointError(f"'{path / WEIGHTS}' can't be read: {error}") from error
    return modern_weights(weights, stored), config


def _read_config(path: Path) -> dict[str, Any]:
    """A folder's configuration, of which no more is known than its format."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ValueError(f"it has more than {MAX_CONFIG_BYTES} bytes")
        content: Any = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}, not a mapping of names")
        config = cast("dict[str, Any]", content)
        stored = str(config["format"]), str(config["sha256"])
    # A number of thousands of digits is a ValueError, a thousand brackets a RecursionError.
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise CheckpointError(f"'{path}' can't be read: {shown(repr(error))[:300]}") from error
    if stored[0] != FORMAT:
        raise CheckpointError(
            f"'{path.parent}' has format '{shown(stored[0])[:60]}'; this version reads '{FORMAT}'"
        )
    return config


def _require_digest(path: Path, stored: str, pinned: str | None) -> None:
    """Compare a file with the checksum beside it, and with one that is known from elsewhere."""
    if pinned is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", str(pinned)):
        raise CheckpointError(
            f"sha256 is '{shown(pinned)[:80]}'; expected the 64 hexadecimal digits of a SHA-256"
        )
    found = sha256(path)
    if pinned is not None and found != pinned.lower():
        raise CheckpointError(
            f"'{path}' has the SHA-256 {found}, expected was {pinned.lower()}: these are not the "
            "weights that were asked for"
        )
    if found != stored:
        raise CheckpointError(
            f"'{path}' is not the file that was saved: its SHA-256 differs from the one "
            "in config.json. It is damaged or was replaced; copy, load or save the model again"
        )


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], path: str | Path) -> None:
    """Give a model the weights of a folder, or say in which of them the two differ.

    Their precision must be the model's own; half precision is converted. All must be finite.

    Args:
        model: built by the folder's configuration.
        weights: named tensors, from `load_folder`.
        path: the folder, to name it in an error.
    """
    own = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if own != given:
        differing = sorted(n for n in own.keys() & given.keys() if own[n] != given[n])
        shapes = [f"{n}: {given[n]} in the file, {own[n]} expected" for n in differing[:3]]
        raise CheckpointError(
            f"the weights in '{path}' do not match its configuration: "
            f"missing {sorted(own.keys() - given.keys())[:3]}, "
            f"unknown {sorted(given.keys() - own.keys())[:3]}, other shapes {shapes}"
        )
    for name, tensor in model.state_dict().items():
        _require_numbers(name, weights[name], tensor.dtype, path)
    model.load_state_dict(weights)


def _require_numbers(name: str, given: Tensor, wanted: torch.dtype, path: str | Path) -> None:
    """Refuse weights of another kind of number than the model's, and ones that are no numbers."""
    halved = wanted == torch.float32 and given.dtype in HALVES
    if given.dtype != wanted and not halved:
        raise CheckpointError(
            f"the weights '{shown(name)}' in '{path}' are {given.dtype}; the model has {wanted}, "
            "for which float16 and bfloat16 are converted, too. Save them in one of these"
        )
    if not bool(given.isfinite().all()):
        raise CheckpointError(
            f"the weights '{shown(name)}' in '{path}' hold NaN or infinity; the file is of a "
            "training that failed, or damaged"
        )


def fingerprint(model: object) -> str:
    """SHA-256 over all weights and buffers of a model: names, shapes, types and numbers.

    It is the same for a model in memory and for one that was saved and loaded. What has no weights,
    such as a solver, is known by its class.
    """
    if not isinstance(model, nn.Module):
        name = f"{type(model).__module__}.{type(model).__qualname__}"
        return hashlib.sha256(name.encode()).hexdigest()
    total = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        values = tensor.detach().cpu().contiguous()
        own = name.removeprefix("_orig_mod.")  # a compiled model is the same model
        total.update(f"{own}\0{tuple(values.shape)}\0{values.dtype}\0".encode())
        total.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


@dataclass(frozen=True)
class Located:
    """Where a model was found.

    Attributes:
        folder: its weights and its configuration; nothing may be there if nothing was found.
        said: what the name was taken for, e.g. `a packaged model`.
    """

    folder: Path
    said: str


def locate_model(name: str | Path, *, revision: str | None = None) -> Located:
    """Find out what a name means: a packaged model, a folder or a repository, in this order.

    `./name` is always a folder, and so is a `Path` that exists; `hf://org/name` is always a
    repository. A repository is fetched into the hub's cache.

    Args:
        name: as for `load_model`.
        revision: of a repository.
    """
    text, path = str(name), Path(name)
    certain = isinstance(name, str) and text.startswith(SCHEME)
    found = None if certain else _at_hand(name)
    if found is not None:
        if revision is not None:
            raise CheckpointError(
                f"'{text}' is {found.said}, which has no revisions; revision is "
                f"'{shown(revision)}'. A repository is hf://org/name"
            )
        return found
    repository = parse(text, revision) if isinstance(name, str) else None
    if repository is None or not (certain or installed()):
        return Located(path, "nothing that exists")
    try:
        fetched = download(repository)
    except CheckpointError as error:
        if certain:
            raise
        raise CheckpointError(f"there is no folder '{text}'{_nearby(path)}; {error}") from error
    note = f"; {fetched.note}" if fetched.note else ""
    return Located(fetched.folder, f"the repository {repository}, commit {fetched.commit}{note}")


def _at_hand(name: str | Path) -> Located | None:
    """What needs no network: a packaged model or a folder; None if there is neither."""
    text, path = str(name), Path(name)
    restore_folder(path)
    packaged = pretrained_folder(text)
    if packaged is not None and not (isinstance(name, Path) and path.exists()):
        if path.exists():
            warnings.warn(
                f"'{text}' is the packaged model of that name; for the folder write './{text}'",
                stacklevel=2,
            )
        return Located(packaged, "a packaged model")
    if not path.exists():
        return None
    other = isinstance(name, str) and parse(text) is not None and installed()
    hint = f" (a repository of that name would be {SCHEME}{text})" if other else ""
    return Located(_weights_in(path), f"a folder{hint}")


def _weights_in(path: Path) -> Path:
    """The model folder itself: of a training run's folder, its best model or else its last."""
    if not (path / WEIGHTS).exists():
        for name in ("best", "last"):
            restore_folder(path / name)
            if (path / name / WEIGHTS).exists():
                return path / name
    return path


def find_model(path: str | Path, *, revision: str | None = None) -> Path:
    """The model folder itself, wherever a name leads; see `locate_model`.

    Of a training run's folder it is the best model or else the last. A folder that a killed process
    was just replacing is brought back first.
    """
    return locate_model(path, revision=revision).folder


def _nearby(path: Path) -> str:
    """A folder beside a missing one whose name is much the same."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return suggest(str(path), [str(other) for other in beside if other.is_dir()])


def _refuse_others(path: Path) -> None:
    """Refuse what is no model folder, pickles above all."""
    pickles = [path] if path.suffix in PICKLES and path.is_file() else []
    if path.is_dir() and not (path / WEIGHTS).exists():
        pickles = sorted(file for file in path.iterdir() if file.suffix in PICKLES)
    if pickles:
        raise CheckpointError(
            f"'{pickles[0]}' is a pickle file, which could run code when loaded; expected a folder "
            f"with {WEIGHTS} and {CONFIG}, as Emulator.save writes it"
        )
    if not path.exists():
        _refuse_missing(path)
    if path.is_file():
        raise CheckpointError(f"'{path}' is a file; expected the folder that holds {WEIGHTS}")


def _refuse_missing(path: Path) -> None:
    names = pretrained_names()
    hub = "a repository org/name on the hub"
    if parse(str(path)) is not None and not installed():
        hub += ", which needs pip install 'overtone[hub]'"
    raise CheckpointError(
        f"'{path}' does not exist{suggest(str(path), names) or _nearby(path)}; expected a folder "
        f"that Emulator.save wrote, a model that comes with the package ({', '.join(names)}), or "
        f"{hub}"
    )


PACKAGED = Path(__file__).parents[1] / "weights"
"""Where the models are that come with the package."""


def pretrained_names() -> list[str]:
    """What `from_pretrained` and all commands take in the place of a folder."""
    folders = PACKAGED.iterdir() if PACKAGED.is_dir() else ()
    return sorted(path.name for path in folders if path.is_dir())


def pretrained_folder(name: str | Path) -> Path | None:
    """The folder of a packaged model, or None if there is none of that name."""
    return PACKAGED / str(name) if str(name) in pretrained_names() else None


KINDS = {
    "emulator": ("overtone.models.emulator", "Emulator"),
    "cvit": ("overtone.models.cvit", "CViT"),
    "baseline": ("overtone.baselines", "Baseline"),
    "flexible": ("overtone.flexify", "FlexibleStepper"),
}
"""Kind of a model -> module and class; imported when a folder asks for it."""


def load_model(
    path: str | Path, *, revision: str | None = None, sha256: str | None = None
) -> Model:
    """Read a saved model, whatever kind it is. It is in evaluation mode.

    Args:
        path: the name of a model that comes with the package; a folder that a model's `save` wrote,
            or that of a training run, which holds such folders; or a repository on the hub,
            `org/name` or `org/name@revision`. The first of these that there is, is meant;
            `./org/name` is always a folder, `hf://org/name` always a repository.
        revision: branch, tag or commit of a repository; the default branch if None.
        sha256: what the SHA-256 of `model.safetensors` must be, in hexadecimal. The checksum that
            is stored beside the weights finds damage, not tampering; this one finds both.
    """
    return load_with_config(find_model(path, revision=revision), sha256=sha256)[0]


def load_with_config(
    path: str | Path, *, sha256: str | None = None
) -> tuple[Model, dict[str, Any]]:
    """Read a saved model, and all that its folder's configuration says."""
    folder = find_model(path)
    weights, config = load_folder(folder, sha256=sha256)
    kind = config["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        hint = suggest(str(kind), [*KINDS])
        raise CheckpointError(
            f"'{path}' holds a model of kind {shown(repr(kind))[:80]}{hint}; this version knows "
            f"{', '.join(KINDS)}. It was written by a newer version or edited by hand"
        )
    module, name = KINDS[kind]
    return getattr(import_module(module), name).restore(weights, config, folder), config
