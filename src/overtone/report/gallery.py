"""Which figures a report has, in which section and order, with their titles, captions and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from overtone.evaluate.results import Results, Told
from overtone.evaluate.samples import Samples
from overtone.report.figures.animation import contrast
from overtone.report.figures.artifacts import MAX_SCHEDULES, folded_maps, residual_spectra
from overtone.report.figures.axis_spectra import axis_spectra
from overtone.report.figures.band import Banded, error_band
from overtone.report.figures.best import best_errors
from overtone.report.figures.curves import training_curves
from overtone.report.figures.dial import next_step_dial, rollout_dial
from overtone.report.figures.heat import artifact_map
from overtone.report.figures.panels import MAX_KEYS, MAX_STEPS, Key, field_panels
from overtone.report.figures.scales import VIEWS
from overtone.report.figures.steps import (
    band_errors,
    harmonic_growth,
    next_step_bands,
    physics_constraints,
    rollout_errors,
    seam_growth,
    shown_patches,
)
from overtone.report.runaway import LOST, runs_off
from overtone.report.series import evenly_chosen, model_names, num_seeds, series, unpatched
from overtone.report.style import NothingToDraw, looks, patch_name
from overtone.report.summary import ALPHA
from overtone.rollout.estimates import LEVEL

PICTURES, FIELDS = "pictures", "fields"
"""Where the first field is shown, and where the others are, folded in the same section."""
SECTIONS = {
    PICTURES: ("Truth and predictions", "pictures"),
    "errors": ("Error by step", "error by step"),
    "dial": ("The compute dial", "dial"),
    "artifacts": ("Grid artifacts", "artifacts"),
    "scales": ("Scales and physics", "scales and physics"),
    "training": ("Training", "training"),
}
"""Sections of figures, in the order of the page: their titles, and what the contents call them."""
MAX_BANDS = 3
"""Rollouts whose own estimates are drawn."""
MAX_FIELDS = 3
"""Fields with panels."""
MAX_LOST = 4
"""Rollouts that a caption names."""
MAX_MODELS = 3
"""Models with folded maps."""


@dataclass(frozen=True)
class Drawing:
    """A figure and its words.

    Attributes:
        name: of its files, without suffix.
        title: a few words.
        caption: what it shows, in which units, and what was left out.
        alt: what a reader who can't see it should know.
        figure: the figure.
        section: key of `SECTIONS`.
    """

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    section: str


def drawings(
    results: Results, samples: Samples | None, curves: Mapping[str, Path]
) -> Iterator[Drawing]:
    """All figures for which there are data, in the order of their sections."""
    yield from _panels(results, samples)
    yield from _errors(results)
    yield from _dials(results)
    yield from _artifacts(results)
    yield from _scales(results)
    yield from _training(results, curves)


def _drawn(
    section: str, name: str, title: str, caption: str, alt: str, draw: Callable[[], Figure]
) -> Iterator[Drawing]:
    """One drawing, or none if there is nothing to draw."""
    with suppress(NothingToDraw):
        yield Drawing(name, title, caption, alt, draw(), section)


def _bare(results: Results) -> str:
    """What thin grey lines are, if there are any."""
    if not results.yardsticks:
        return ""
    return (
        " Thin grey lines are what needs no training: persistence (dotted), the last frame again, "
        "and extrapolation (dash-dotted), the last change again. They move no axis; a triangle "
        "stands where one leaves the panel."
    )


def _lost(results: Results) -> str:
    """Which rollouts run off, if any do."""
    names = [s.name for s in series(results) if runs_off(s)]
    if not names:
        return ""
    more = f" and {len(names) - MAX_LOST} more" if len(names) > MAX_LOST else ""
    return (
        f" Rollouts move no axis from where their VRMSE is above {LOST:g}, and leave the panel at "
        f"a triangle: {', '.join(names[:MAX_LOST])}{more}."
    )


def _errors(results: Results) -> Iterator[Drawing]:
    count, steps = len(series(results)), results.steps
    seeds = " Thin lines are single seeds." if num_seeds(results) > 1 else " Bands are intervals."
    models = len(model_names(results))
    others = " Grey lines are the other models'." if models > 1 else ""
    cross = " A cross marks where every trajectory had turned non-finite."
    yield from _drawn(
        "errors",
        "best_errors",
        "The best schedule of each model",
        "VRMSE, mean over fields, at each rollout step, of the schedule of each model that has the "
        "lowest error over all steps. Colours are those of the schedules, markers those of the "
        "models, as in the dial." + seeds + _bare(results) + _lost(results) + cross,
        f"Line chart of the error over {steps} rollout steps for the best of {models} models.",
        lambda: best_errors(results),
    )
    yield from _drawn(
        "errors",
        "rollout_errors",
        "Every schedule" + (" of each model" if models > 1 else ""),
        "VRMSE, mean over fields, at each rollout step. Dashed lines are shifted schedules."
        + seeds + others + _bare(results) + _lost(results) + cross,
        f"Line chart of the error over {steps} rollout steps for {count} rollouts.",
        lambda: rollout_errors(results),
    )  # fmt: skip
    yield from _bands(results)


def _bands(results: Results) -> Iterator[Drawing]:
    """What calibrated models tell of their errors, from the best rollout to the worst."""
    found = [(m.name, run, run.told) for m in results.models for run in m.runs if run.told]
    chosen = evenly_chosen(sorted(found, key=lambda row: row[1].vrmse_all.value), MAX_BANDS)
    left_out = f" Shown: {len(chosen)} of {len(found)} rollouts." * (len(chosen) < len(found))
    shown = [_banded(f"{name}, {run.schedule}", told) for name, run, told in chosen]
    yield from _drawn(
        "errors",
        "error_bands",
        "What the model tells of its own error",
        "A rollout of one trajectory: the error that the model tells without the truth, with the "
        "interval that holds 90 % of such errors on the split that it was calibrated on, and the "
        "true error. Below, the patch of each step. What all patches get wrong alike is not seen."
        + left_out,
        f"Line charts of the told and the true error of {len(shown)} rollouts, patches below.",
        lambda: error_band(shown),
    )


def _banded(title: str, told: Told) -> Banded:
    bounds = {LEVEL: (told.low, told.high)} if told.low else {}
    return Banded(title, told.error, told.value, bounds, told.patches, told.horizon)


def _dials(results: Results) -> Iterator[Drawing]:
    count, steps = len(series(results)), results.steps
    bare = _bare(results)
    yield from _drawn(
        "dial",
        "rollout_dial",
        "The compute dial of rollouts",
        f"VRMSE, mean over fields and {steps} steps, against the tokens and the measured seconds "
        "of the rollout of one sample. Bars are 95 % intervals. Lower and further left is better."
        + bare + _lost(results),
        f"Scatter plot of rollout error against tokens and seconds for {count} rollouts.",
        lambda: rollout_dial(results),
    )  # fmt: skip
    yield from _drawn(
        "dial",
        "next_step_dial",
        "The compute dial of one step",
        "VRMSE of one step from true frames at each patch, against the tokens and the measured "
        "seconds of one prediction of one sample. Grey lines join the patches of a model." + bare,
        "Scatter plot of next-step error against tokens and seconds for each model and patch.",
        lambda: next_step_dial(results),
    )


def _panels(results: Results, samples: Samples | None) -> Iterator[Drawing]:
    if samples is None or not samples.predictions:
        return
    keys = telling_keys(results, samples, MAX_KEYS)
    left_out = _left_out(samples, len(keys))
    shown: dict[str, Any] = {"known": looks(results), "bare": unpatched(results)}
    views = VIEWS if samples.domain.ndim == 3 else VIEWS[:1]
    what = {"slice": "", "projection": ", mean along the last axis"}
    for number, field in enumerate(samples.domain.fields[:MAX_FIELDS]):
        for view in views:
            name = f"panels_{number}_{slug(field)}" + ("" if len(views) == 1 else f"_{view}")
            draw = partial(field_panels, samples, field, keys=keys, view=view, **shown)
            yield from _drawn(
                PICTURES if number == 0 else FIELDS,
                name,
                f"Truth, predictions and residuals: {field}{what[view]}",
                "One trajectory at chosen steps; all fields share one scale, all residuals "
                "another, which is symmetric and ends at the truth's range." + left_out,
                f"The true and the predicted {field} and their differences at chosen steps.",
                draw,
            )


def telling_keys(results: Results, samples: Samples, count: int) -> list[Key]:
    """At most `count` predictions: the pair that tells most, others from the best to the worst."""
    kept = list(samples.predictions)
    if len(kept) <= count:
        return kept
    errors = {(s.model, s.schedule): s.vrmse_all.value for s in series(results)}
    order = sorted(kept, key=lambda key: np.nan_to_num(errors.get(key, np.inf), nan=np.inf))
    pair = contrast(results, samples)
    others = [key for key in order if key not in pair]
    chosen = [*pair, *evenly_chosen(others, count - len(pair))]
    return [key for key in kept if key in chosen]


def _left_out(samples: Samples, num_keys: int) -> str:
    """What the panels do not show, as sentences; empty if they show all."""
    counts = (
        ("predictions, from the best to the worst", num_keys, len(samples.predictions)),
        ("steps kept", min(MAX_STEPS, len(samples.steps)), len(samples.steps)),
        ("fields", min(MAX_FIELDS, len(samples.domain.fields)), len(samples.domain.fields)),
    )
    parts = [f"{shown} of {there} {what}" for what, shown, there in counts if shown < there]
    return f" Shown: {'; '.join(parts)}." if parts else ""


def _artifacts(results: Results) -> Iterator[Drawing]:
    patches = ", ".join(patch_name(p) for p in shown_patches(results))
    yield from _drawn(
        "artifacts",
        "artifact_map",
        "Grid artifacts at a glance",
        "A row for each rollout. Left: how far the residual's power at the harmonics of a period "
        "stands above its spectral neighbourhood, in dB, over all steps; an asterisk marks what is "
        f"significant at {ALPHA}. Right: how much more the residual jumps across the borders of "
        "patches than within them at the last step, in dB: where that step's grid lies, and for "
        "the grid of each period, of all its offsets, at which it jumps most. About 0 dB is no "
        "artifact; the dash is what was not measured.",
        f"Heat maps of harmonic excess and of seams for periods {patches}, a row a rollout.",
        lambda: artifact_map(results),
    )
    yield from _drawn(
        "artifacts",
        "seam_growth",
        "Seams between patches",
        "How much more the residual jumps across the borders of patches than within them, at each "
        "step: of that step's own patches, where its grid lies, and of the grid of each period "
        f"({patches} cells), of all its offsets, at which the jumps are largest. 0 dB is no seam; "
        "the largest of many is a little above it by chance. Steps that differ in size and sign "
        "from patch to patch show here, though they leave no lines in the spectrum.",
        f"Line charts of the seams over the rollout, of the grid in use and of periods {patches}.",
        lambda: seam_growth(results),
    )
    yield from _drawn(
        "artifacts",
        "harmonic_growth",
        "Growth of the grid artifact",
        f"How far the residual's power at the harmonics of a period ({patches} cells) stands "
        "above its spectral neighbourhood, at each step. About 0 dB is no artifact.",
        f"Line charts of harmonic excess over the rollout for periods {patches}.",
        lambda: harmonic_growth(results),
    )
    yield from _drawn(
        "artifacts",
        "residual_spectra",
        "Spectra of the residuals",
        "Isotropic power spectra of the residual, in units of the truth's variance, and of the "
        "truth itself (dotted). Grey lines stand at the patches' harmonics, m/patch cycles per "
        "cell, the first of each patch with its name: lines of a schedule that peak there are "
        "grid artifacts." + _lost(results),
        "Line charts of residual power against wavenumber with the patch harmonics marked.",
        lambda: residual_spectra(results),
    )
    yield from _drawn(
        "artifacts",
        "axis_spectra",
        "Spectra along each axis",
        "Power of the first field's residual by wavenumber along each axis, at the middle step, "
        "and of the truth (dotted). Harmonics of the patches are evenly spaced here: a row of "
        "humps around them is an artifact of patches whose errors follow the flow.",
        "Line charts of residual power against the wavenumber along each axis.",
        lambda: axis_spectra(results),
    )
    yield from _maps(results)


def _scales(results: Results) -> Iterator[Drawing]:
    yield from _drawn(
        "scales",
        "next_step_bands",
        "Errors of one step by scale",
        "BSNMSE of one step from true frames at each patch, in three bands of wavenumbers of equal "
        "width on a log scale: the squared error at these scales over the truth's energy there. "
        "Black lines are 95 % intervals.",
        "Bar chart of the next-step error in the low, middle and high band for each patch.",
        lambda: next_step_bands(results),
    )
    yield from _drawn(
        "scales",
        "band_errors",
        "Errors of rollouts by scale",
        "BSNMSE, mean over all steps, in three bands of wavenumbers of equal width on a log "
        "scale: the squared error at these scales over the truth's energy there. Black lines are "
        "95 % intervals." + _lost(results),
        "Bar chart of the error in the low, middle and high band for each schedule.",
        lambda: band_errors(results),
    )
    yield from _drawn(
        "scales",
        "physics",
        "Physical constraints",
        "How far each quantity of the prediction is from the truth's, at each step, relative to "
        "the truth's own on the same grid: 0 is as the truth, 1 is off by as much as it. A balance "
        "is relative to the terms that cancel each other in the truth." + _lost(results),
        "Line charts of deviations from physical laws over the rollout for each schedule.",
        lambda: physics_constraints(results),
    )


def _maps(results: Results) -> Iterator[Drawing]:
    names = model_names(results)
    for number, name in enumerate(names[:MAX_MODELS]):
        own = [s for s in series(results) if s.model == name]
        caption = (
            "Mean square residual of all steps, folded onto the patch cell, in dB relative to "
            "each cell's own mean: one scale for all. A plain map is free of grid artifacts; a "
            "frame or a cross is the patch grid showing through."
        )
        if len(own) > MAX_SCHEDULES:
            caption += f" Shown: {MAX_SCHEDULES} of {len(own)} schedules."
        if len(names) > MAX_MODELS:
            caption += f" Shown: the first {MAX_MODELS} of {len(names)} models."
        yield from _drawn(
            "artifacts",
            "folded_maps" if len(names) == 1 else f"folded_maps_{number}_{slug(name)}",
            f"Where in the patch the error sits: {name}",
            caption,
            f"Maps of the error within a patch for the schedules of {name}.",
            partial(folded_maps, results, name),
        )


def _training(results: Results, curves: Mapping[str, Path]) -> Iterator[Drawing]:
    for number, (name, path) in enumerate(curves.items()):
        yield from _drawn(
            "training",
            f"training_{number}_{slug(name)}",
            f"Training of {name}",
            "Left: loss of each update (dots) and its mean over stretches of updates (lines), by "
            "patch, and the learning rate. Right: next-step error on the validation split, by "
            "patch, and the error of the validation rollout; thin grey lines are what needs no "
            "training (dotted persistence, dash-dotted extrapolation), where it was measured.",
            f"Training loss, learning rate and validation errors of {name} by update.",
            partial(training_curves, path, known=looks(results)),
        )


def slug(name: str) -> str:
    """A name's part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "unnamed"
