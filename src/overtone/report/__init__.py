"""Figures, tables and the page that show what an evaluation found."""

from overtone.report.animation import animate
from overtone.report.artifact import folded_maps
from overtone.report.bands import band_errors
from overtone.report.constraints import physics_constraints
from overtone.report.curves import training_curves
from overtone.report.dial import next_step_dial, rollout_dial
from overtone.report.errors import rollout_errors
from overtone.report.growth import harmonic_growth, seam_growth
from overtone.report.overview import overview
from overtone.report.panels import field_panels
from overtone.report.spectra import residual_spectra
from overtone.report.write import write_report

__all__ = [
    "animate",
    "band_errors",
    "field_panels",
    "folded_maps",
    "harmonic_growth",
    "next_step_dial",
    "overview",
    "physics_constraints",
    "residual_spectra",
    "rollout_dial",
    "rollout_errors",
    "seam_growth",
    "training_curves",
    "write_report",
]
