"""Figures, tables and the page that show what an evaluation found."""

from overtone.report.figures.animation import animate
from overtone.report.figures.artifacts import folded_maps, residual_spectra
from overtone.report.figures.axis_spectra import axis_spectra
from overtone.report.figures.best import best_errors
from overtone.report.figures.cost import training_cost
from overtone.report.figures.curves import training_curves
from overtone.report.figures.dial import next_step_dial, rollout_dial
from overtone.report.figures.heat import artifact_map
from overtone.report.figures.panels import field_panels, overview
from overtone.report.figures.steps import (
    band_errors,
    harmonic_growth,
    next_step_bands,
    physics_constraints,
    rollout_errors,
    seam_growth,
)
from overtone.report.html import write_report

__all__ = [
    "animate",
    "artifact_map",
    "axis_spectra",
    "band_errors",
    "best_errors",
    "field_panels",
    "folded_maps",
    "harmonic_growth",
    "next_step_bands",
    "next_step_dial",
    "overview",
    "physics_constraints",
    "residual_spectra",
    "rollout_dial",
    "rollout_errors",
    "seam_growth",
    "training_cost",
    "training_curves",
    "write_report",
]
