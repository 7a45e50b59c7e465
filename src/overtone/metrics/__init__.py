"""How far a prediction is from the truth: cell by cell, scale by scale, and in its physics."""

from overtone.metrics.artifacts.growth import (
    Fold,
    HarmonicGrowth,
    HarmonicPool,
    HarmonicTracker,
    fold,
)
from overtone.metrics.artifacts.harmonics import HarmonicExcess, harmonic_excess
from overtone.metrics.artifacts.periods import Period, PeriodFinder, find_period
from overtone.metrics.artifacts.seams import SeamFinder, Seams, find_seams, seams, worst_seams
from overtone.metrics.artifacts.swell import harmonic_swell
from overtone.metrics.pointwise import (
    mae,
    mse,
    nmse,
    pearson,
    rmse,
    time_to_decorrelation,
    vmse,
    vrmse,
)
from overtone.metrics.spectrum import (
    BANDS,
    Spectrum,
    axis_spectrum,
    band_edges,
    band_energy,
    bsmse,
    bsnmse,
    isotropic_spectrum,
    mode_power,
)

__all__ = [
    "BANDS",
    "Fold",
    "HarmonicExcess",
    "HarmonicGrowth",
    "HarmonicPool",
    "HarmonicTracker",
    "Period",
    "PeriodFinder",
    "SeamFinder",
    "Seams",
    "Spectrum",
    "axis_spectrum",
    "band_edges",
    "band_energy",
    "bsmse",
    "bsnmse",
    "find_period",
    "find_seams",
    "fold",
    "harmonic_excess",
    "harmonic_swell",
    "isotropic_spectrum",
    "mae",
    "mode_power",
    "mse",
    "nmse",
    "pearson",
    "rmse",
    "seams",
    "time_to_decorrelation",
    "vmse",
    "vrmse",
    "worst_seams",
]
