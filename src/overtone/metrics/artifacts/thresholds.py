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

The same as `ALPHA`, but for the few multiples of one period instead of all periods, so weaker
harmonics suffice. With 1e-2 a few combs of period 4 in a hundred were said to have one of 8 or 12.
"""

COARSER_ALPHA = 1e-2
"""Given seams, chance of false ones of a multiple of their distance, over all multiples.

Set on rollouts of a packaged model at patch 16, whose decoder leaves blocks of 4 within patches:
with 1e-3 the first steps were called ones of patch 4.
"""

# Which periods are tried.

MAX_PERIOD = 64
"""Largest period that is tried on grids that it need not divide.

By cost: each such period has a crop and a spectrum of its own. No patch model of the papers that we
read has larger patches.
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
their tops on a lattice. They are rounder than that: the number is from fields less their copies.
"""

NEXT_MARGIN = 0.25
"""The same for the multiples of a period that was found, 1 dB: set by hand on combs in red noise.

There is a lattice already, so a flow's ups and downs are not what has to be ruled out.
"""

CLIP = 7.0
"""Largest height of a single mode that counts for significance: 7 e-folds, 30 dB.

Set by hand, so that one strong wave of the flow is not taken for a lattice.
"""

MIN_SPREAD = 0.02
"""Differences of log-power that are never taken for more than rounding or curvature.

Set by hand on pools of many frames, whose spectra hardly scatter.
"""

# Which harmonics of a period are there.

QUIET = 0.01
"""Harmonics that are there by chance more often than this may be missing.

Set by hand on waves with some harmonics of a period only.
"""

LOUD_LINE = 13.0
"""dB; a line along an axis that is higher, and about as high as the others, is one of them.

Well above the highest of some hundred modes of one frame (power of noise is exponential: 10 dB).
"""

LOUD_SHARE = 0.75
"""And what "about as high" is, in dB over dB; set by hand on the same waves."""

QUIET_SHARE = 0.5
"""Harmonics whose excess is less than such a share of the others' (dB over dB) may be missing."""

# What a seam is.

MIN_SEAM = 0.1
"""e-folds that borders must stand out by (0.4 dB): less may be a property of the grid's cells.

Set by hand: decoders and solvers treat odd and even cells a little differently.
"""

SEAM_REACH = 8
"""Cells to each side, at most, that a place is compared with.

Shear layers and fronts are wider than a seam; far cells would make them stand out. Flows against
flows have no seams with 8, nor with half of it or twice as many.
"""
