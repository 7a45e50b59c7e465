"""The numbers by which the searches for periods and seams decide, and how each was found.

Most were set by hand on the fields of the tests: red and white noise, flows against flows, combs,
blocks. A search that asks every period of every axis is only worth something if it is silent where
there is nothing, so the false alarms came first, and the faintest artifact that is found is what
was left. `benchmarks/thresholds.py` measures both for the numbers below; change one, run it, and
compare `results/thresholds.json`.
"""

from __future__ import annotations

# What is promised.

ALPHA = 1e-3
"""Chance of a false alarm that a search allows over all periods it tries.

By definition; the scores are built to keep it, and the calibration checks that they do.
"""

NEXT_ALPHA = 1e-3
"""Given an artifact, chance of a false period that is allowed over all multiples of the first.

As strict as `ALPHA`, but for the few multiples of one period instead of all periods, so weaker
harmonics suffice.
"""

COARSER_ALPHA = 1e-2
"""Given seams, chance of false ones of a multiple of their distance, over all multiples.

Set on rollouts of a packaged model at patch 16, whose decoder leaves blocks of 4 within patches:
with 1e-3 the first step was called one of patch 4. Of 150 residuals with seams of 4 alone, none
was said to have another distance.
"""

# Which periods are tried.

MAX_PERIOD = 64
"""Largest period that is tried on grids that it need not divide.

By cost: each such period has a crop and a spectrum of its own.
"""

MIN_REPEATS = 4
"""How often a period must fit along an axis that it need not divide.

By construction: cropped axes are windowed, which leaves modes between the lattice's from four on.
"""

MIN_PATCHES = 2
"""How often it must fit along a periodic axis that it divides, so that anything repeats at all."""

MIN_BORDERS = 2
"""Seams that make a comb along an axis: one alone is a front of the flow.

It was 4 until a residual of patches of 16 on 32 cells was called one of period 4.
"""

MIN_MODES = 2
"""Modes that make a lattice, by definition: one can't be told from a wave."""

# What a lattice is compared with.

NEIGHBOURS = {1: 12, 2: 20, 3: 26}
"""How many modes a neighbourhood should have, by number of axes.

As few as give a steady median, set by hand: the farther modes are, the less they say about a steep
spectrum. In three dimensions they are the modes that touch one.
"""

MIN_NEIGHBOURS = 4
"""With fewer there are no quartiles, so nothing is judged."""

MARGIN = 1.0
"""How far, in e-folds (4 dB), a lattice must stand above the highest shifted one beside it.

Smooth ups and downs of a spectrum, such as those of a field against its shifted copy, can have
their tops on a lattice. They are rounder than that. Set by hand; tests hold it to such fields.
"""

NEXT_MARGIN = 0.25
"""The same for the multiples of a period that was found, 1 dB.

Set by hand: there is a lattice already, so its ups and downs need not be ruled out as strictly.
Tests hold it to combs in steep spectra, whose coarse harmonics are faint.
"""

CLIP = 7.0
"""Largest height of a single mode that counts for significance: 7 e-folds, 30 dB.

Set by hand, so that one strong wave of the flow is not taken for a lattice.
"""

MIN_SPREAD = 0.02
"""Differences of log-power that are never taken for more than rounding or curvature.

Set by hand; it matters only for pools of many frames, whose spectra hardly scatter.
"""

# Which harmonics of a period are there.

QUIET = 0.01
"""Harmonics that are there by chance more often than this may be missing.

Set by hand; tests hold it to waves with some harmonics of a period only.
"""

LOUD_LINE = 13.0
"""dB; a line along an axis that is higher, and about as high as the others, is one of them.

Set by hand; the highest of a thousand modes of noise is 10 dB above their median.
"""

LOUD_SHARE = 0.75
"""And what "about as high" is, in dB over dB; set by hand, held to the same waves."""

QUIET_SHARE = 0.5
"""Harmonics whose excess is less than such a share of the others' (dB over dB) may be missing.

Set by hand, held to the same waves.
"""

# What a seam is.

MIN_SEAM = 0.1
"""e-folds that borders must stand out by (0.4 dB): less may be a property of the grid's cells.

Set by hand; it matters only for pools of many frames.
"""

SEAM_REACH = 8
"""Cells to each side, at most, that a place is compared with.

Shear layers and fronts are wider than a seam; far cells would make them stand out. It is not
critical: 4 and 16 find about as many faint seams, and neither finds any in 120 flows against flows.
"""
