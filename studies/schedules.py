"""Schedules that studies compare; the forms are in docs/schedules.md."""

STILL = ("4", "8", "16", "4-8-16")
"""Schedules on a grid that stays where it is."""
MAIN = (*STILL, *(f"{schedule}+shift" for schedule in STILL))
PERMUTATIONS = ("4-8-16", "4-16-8", "8-4-16", "8-16-4", "16-4-8", "16-8-4")
SCHEDULES = (
    *("4", "8", "16"),
    *PERMUTATIONS,
    *(f"random:4-8-16:{seed}" for seed in range(3)),
    *("bursts:16:4:5", "bursts:4:16:5", "dwell:4-8-16:2", "dwell:4-8-16:4"),
    *("warmup:4-4-8-8:16", "reverse:16:8-8-4-4:40"),
    *("16+shift", "4-8-16+shift", "warmup:4-4-8-8:16+shift"),
)
"""The paper's schedule families, and the shifted ones."""
PAIRS = ("16", "16+shift", "4-8-16", "4-8-16+shift")
"""The coarsest patch and the cycle, without shifts and with them."""
