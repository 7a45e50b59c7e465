"""The linear model of error growth in a rollout: what a schedule excites, and how it grows.

`lattices.py` has the frequencies of patch grids, `recurrence.py` the errors there, step by step,
and `parts.py` the same model for error estimates.
"""

from overtone.theory.lattices import (
    common_period,
    is_excited,
    lattice,
    lattice_intersection,
    lattice_union,
)
from overtone.theory.recurrence import (
    PHASE_LOCKED,
    ErrorModel,
    Growth,
    coherence,
    expected_energy,
    growth,
    injection_covariance,
    simulate,
)

__all__ = [
    "PHASE_LOCKED",
    "ErrorModel",
    "Growth",
    "coherence",
    "common_period",
    "expected_energy",
    "growth",
    "injection_covariance",
    "is_excited",
    "lattice",
    "lattice_intersection",
    "lattice_union",
    "simulate",
]
