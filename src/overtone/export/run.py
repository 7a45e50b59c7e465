"""From a model to a folder of programs, complete and tried, or to no folder at all."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from overtone.domain import Domain, PerAxis, Window, per_axis
from overtone.errors import ExportError, OvertoneError
from overtone.export.bundle import bundle
from overtone.export.formats import FORMATS, quiet, require_format
from overtone.export.guide import examples, readme
from overtone.export.manifest import MANIFEST, Exported, Source, manifest
from overtone.export.program import moved_axes, trace, waves
from overtone.export.verify import BATCHES, Program, difference
from overtone.guard.folders import replacing_owned, require_ours
from overtone.guard.limits import require_writable
from overtone.guard.names import shown
from overtone.models.base import Model, short_patch
from overtone.models.storage import find_model, load_with_config
from overtone.progress import Tick
from overtone.schedules import Patch

KIND = "export"
"""What the marker of such a folder says; see `guard.folders`."""


def export(
    model: Model | str | Path,
    out: str | Path,
    *,
    patches: Sequence[Patch] | Patch | None = None,
    formats: Sequence[str] | str = ("onnx",),
    grid: PerAxis | None = None,
    window: Window | None = None,
    units: Mapping[str, str] | None = None,
    allow_untrained: bool = False,
    progress: Tick | None = None,
) -> dict[str, Any]:
    """Write a folder of programs that run without Overtone, one for each patch and format.

    Every program is loaded again and rolled out beside the model; a folder is there when all of
    them agree with it. See `program` for what a program does, `manifest` for what is said of it.

    Args:
        model: a model, its folder, or the name of one that comes with the package.
        out: the folder; an older export of that name is replaced.
        patches: those to export; all that the model was trained for by default.
        formats: `"onnx"`, `"pt2"`, `"aoti"`, or several of them.
        grid: number of cells along each axis; the model's own by default. Programs are for one.
        window: what to try the programs on; smooth random fields by default.
        units: of fields, by their names, to be kept in the manifest.
        allow_untrained: accept patches that the model was not trained for.
        progress: called with what is done, what there is to do, and what is going on.

    Returns:
        What `manifest.json` says.
    """
    names = tuple(dict.fromkeys([formats] if isinstance(formats, str) else formats))
    if not names:
        raise ExportError(f"formats is {formats!r}; expected at least one of {', '.join(FORMATS)}")
    for name in names:
        require_format(name)
    model, source, inputs = _load(model)
    _require_plain(model)
    require_ours(out, KIND, inputs=inputs, error=ExportError)
    require_writable(Path(out), error=ExportError)
    domain = _domain(model, grid)
    chosen = _patches(model, domain, patches, allow_untrained)
    _require_fields(units or {}, domain)
    tried = _accepted(model, domain, window)
    work = _Work(model, domain, tried, allow_untrained, progress)
    with (
        _evaluating(model),
        replacing_owned(out, KIND, inputs=inputs, error=ExportError) as scratch,
    ):
        programs = work.write(scratch, chosen, names)
        if "onnx" in names:
            (scratch / "rollout.py").write_text(bundle())
        for name, text in examples(model, domain, programs).items():
            (scratch / name).write_text(text)
        (scratch / "README.md").write_text(readme(model, domain, source, programs, units or {}))
        said = "given by the user" if window is not None else "smooth random waves"
        content = manifest(
            model, domain, source, programs, units=units or {}, window=said, folder=scratch
        )
        (scratch / MANIFEST).write_text(json.dumps(content, indent=2) + "\n")
    return content


class _Work:
    """Writes programs one by one, and tries each.

    Args:
        model, domain, allow_untrained, progress: as for `export`.
        windows: what to try programs on.
    """

    def __init__(
        self,
        model: Model,
        domain: Domain,
        windows: Sequence[Window],
        allow_untrained: bool,
        progress: Tick | None,
    ):
        self.model, self.domain, self.windows = model, domain, windows
        self.allow_untrained, self.progress = allow_untrained, progress
        self.moved = moved_axes(model, domain)

    def write(
        self, folder: Path, patches: Sequence[Patch], formats: Sequence[str]
    ) -> list[Exported]:
        """All programs; the first that is not the model ends it."""
        found: list[Exported] = []
        total = len(patches) * (1 + 2 * len(formats))
        for patch in patches:
            name = program_name(self.model, patch)
            done = len(found) * 2 + patches.index(patch)
            self._tell(done, total, f"{name}: tracing")
            traced = self._traced(patch, {FORMATS[kind].exact for kind in formats})
            for kind in formats:
                path = folder / f"{name}{FORMATS[kind].suffix}"
                self._tell(done + 1, total, f"{name}: writing {kind}")
                try:
                    with quiet():
                        FORMATS[kind].write(traced[FORMATS[kind].exact], path)
                except Exception as error:
                    raise _refused(self.model, f"written as {kind}", error) from error
                self._tell(done + 2, total, f"{name}: trying {kind}")
                found.append(self._tried(path, kind, patch))
                done += 2
        self._tell(total, total, "done")
        return found

    def _traced(self, patch: Patch, wanted: set[bool]) -> dict[bool, ExportedProgram]:
        """The program of a patch, with the model's complex numbers or without."""
        options = {"allow_untrained": self.allow_untrained}
        try:
            with quiet():
                return {
                    exact: trace(self.model, self.domain, patch, exact=exact, **options)
                    for exact in sorted(wanted)
                }
        except Exception as error:
            raise _refused(self.model, "traced", error) from error

    def _tried(self, path: Path, kind: str, patch: Patch) -> Exported:
        """Roll a written program out beside the model."""
        how = FORMATS[kind]
        with quiet():
            program = Program(how.load(path), self.model.context, self.moved)
            largest = max(
                difference(
                    self.model, program, window, patch=patch, allow_untrained=self.allow_untrained
                )
                for window in self.windows
            )
        if not largest <= how.tolerance:
            raise ExportError(
                f"'{path.name}' is not the model: its frames differ by {largest:.2g} standard "
                f"deviations, at most {how.tolerance:g} is expected of '{kind}'. Nothing was "
                "written. Try another format, or another window if the model blows up on this one"
            )
        return Exported(patch, kind, path.name, largest, how.tolerance)

    def _tell(self, done: int, total: int, what: str) -> None:
        if self.progress is not None:
            self.progress(done, total, what)


def program_name(model: Model, patch: Patch) -> str:
    """What a program's file is called, without its suffix: `patch-8`, `patch-4x8` or `step`."""
    if not model.patched:
        return "step"
    sizes = (patch,) if isinstance(patch, int) else patch
    return f"patch-{'x'.join(map(str, sizes))}"


def _refused(model: Model, what: str, error: Exception) -> Exception:
    """Whatever torch says about what it can't do, in a line."""
    if isinstance(error, OvertoneError):
        return error
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    lines = [line for line in str(root).splitlines() if line.strip()]
    said = shown(lines[0])[:300] if lines else ""
    return ExportError(
        f"this model ({model.kind}) can't be {what}: {type(root).__name__}: {said}. Try another "
        "format, or another kind of model"
    )


def _load(model: Model | str | Path) -> tuple[Model, Source, list[Path]]:
    """The model, where it came from, and what was read."""
    if isinstance(model, Model):
        return model, Source(type(model).__name__), []
    if isinstance(model, nn.Module):
        raise ExportError(
            f"the model is a {type(model).__name__}; expected a model of Overtone's, or its "
            "folder. ot.flexify and ot.FlexibleStepper make others into one"
        )
    loaded, config = load_with_config(model)
    folder = find_model(model)
    return loaded, Source(Path(model).resolve().name, config["sha256"]), [folder]


def _require_plain(model: Model) -> None:
    """Refuse weights that are elsewhere, or of another kind, than a program's inputs will be."""
    for name, tensor in model.state_dict().items():
        wide = tensor.is_floating_point() and tensor.dtype != torch.float32
        if tensor.device.type != "cpu" or wide:
            raise ExportError(
                f"the model's '{name}' is {tensor.dtype} on '{tensor.device}'; expected float32 on "
                "the CPU: model.cpu().float()"
            )


@contextmanager
def _evaluating(model: Model) -> Generator[None]:
    """Within it, the model is in evaluation mode."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)


def _domain(model: Model, grid: PerAxis | None) -> Domain:
    """The model's domain, with another number of cells if that was asked for."""
    own = model.domain
    if grid is None:
        return own
    shape = per_axis(grid, own.ndim, "grid")
    return Domain(shape, own.extent, own.boundaries, own.fields, own.dt, own.dt_range)


def _patches(
    model: Model, domain: Domain, given: Sequence[Patch] | Patch | None, allow_untrained: bool
) -> list[Patch]:
    """The patches to export, each once; a model without patches has one program."""
    if not model.patched:
        return [1]
    wanted = model.patches if given is None else [given] if isinstance(given, int) else given
    sizes = [per_axis(patch, domain.ndim, "patch") for patch in wanted]
    if not sizes:
        raise ExportError(f"patches is {given!r}; expected at least one, such as 8")
    for patch in sizes:
        model.lay(domain, patch, 0, allow_untrained)  # refuses what it does not know
    return [short_patch(patch) for patch in dict.fromkeys(sizes)]


def _require_fields(units: Mapping[str, str], domain: Domain) -> None:
    for name in units:
        if name not in domain.fields:
            raise ExportError(
                f"a unit is given for '{shown(name)}'; the fields are {', '.join(domain.fields)}"
            )


def _accepted(model: Model, domain: Domain, window: Window | None) -> list[Window]:
    """Windows to try programs on, of different numbers of samples."""
    if window is None:
        return [waves(domain, model.context, samples=batch, seed=batch) for batch in BATCHES]
    if window.domain.shape != domain.shape:
        raise ExportError(
            f"the window lies on {window.domain.shape} cells, the programs will on {domain.shape}; "
            "give one of that grid, or that grid with grid="
        )
    if window.num_frames < model.context:
        raise ExportError(
            f"the window has {window.num_frames} frames; programs read exactly {model.context}"
        )
    accepted = model.accept(window)
    return [Window(accepted.fields.float(), accepted.domain)]
