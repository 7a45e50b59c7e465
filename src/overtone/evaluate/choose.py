"""Which schedules a model is rolled out with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from overtone.domain import Domain
from overtone.errors import PatchError
from overtone.evaluate.candidates import Candidate
from overtone.grid import PatchGrid
from overtone.schedules import Constant, Cycle, Patch, Schedule, Shifted, parse_schedule

Note = Callable[[str], None]
"""Takes a sentence for the user."""


def choose_schedules(
    candidate: Candidate,
    wanted: Sequence[Schedule | str] | None,
    domain: Domain,
    steps: int,
    note: Note,
) -> tuple[Schedule, ...]:
    """The schedules that a model can follow, of those that are wanted.

    Args:
        candidate: the model.
        wanted: schedules or their string forms; None for the usual ones: each patch alone and,
            with several patches, their cycle from fine to coarse, with and without shifts. A model
            without patches is rolled out once, whatever is wanted.
        domain: what the rollouts lie on.
        steps: their length.
        note: told about every schedule that is left out.

    Raises:
        PatchError: nothing is left, or a schedule is shorter than the rollout.
    """
    if wanted is None or not candidate.patched:
        chosen = usual_schedules(candidate)
    else:
        chosen = [parse_schedule(s) if isinstance(s, str) else s for s in wanted]
    chosen = list({str(schedule): schedule for schedule in chosen}.values())
    kept = []
    for schedule in chosen:
        patches = used_patches(schedule, steps)
        unknown = [patch for patch in patches if not candidate.knows(patch)]
        if unknown:
            note(
                f"schedule {schedule} is left out for model '{candidate.name}', which does not "
                f"know patch {', '.join(map(str, unknown))}"
            )
            continue
        for patch in patches:
            PatchGrid.lay(domain, patch)  # refuses what the grid can't hold
        kept.append(schedule)
    if not kept:
        known = ", ".join(map(str, candidate.model.patches))
        raise PatchError(
            f"model '{candidate.name}' knows patch {known} and can follow none of the schedules "
            f"{', '.join(map(str, chosen))}; give one of its patches"
        )
    return tuple(kept)


def usual_schedules(candidate: Candidate) -> list[Schedule]:
    """Each patch alone, and the cycle of all from fine to coarse, with and without shifts."""
    order = sorted(candidate.model.patches, key=lambda p: math.prod(candidate.sizes(p)))
    schedules: list[Schedule] = [Constant(patch) for patch in order]
    if len(order) > 1:
        cycle = Cycle(*order)
        schedules += [cycle, Shifted(cycle)]
    return schedules


def used_patches(schedule: Schedule, steps: int) -> tuple[Patch, ...]:
    """The patches of a rollout, each once, in order of their first use."""
    return tuple(dict.fromkeys(schedule(step).patch for step in range(steps)))
