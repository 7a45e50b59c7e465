"""The verdict: the first lines of console and report, in plain words.

The headline is one or two sentences on the rollout with the lowest error of all. Then, for each
model, of its schedule with the lowest error over all steps, at which steps it is better or
worse than what needs no training and than the field's mean; and whether its training ended too
early. What the intervals do not allow is not said. The rule is in docs/reference/report.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from overtone.evaluate.results import Estimate, ModelResult, Results
from overtone.metrics.confidence import falls
from overtone.report.series import Series, model_names, series
from overtone.report.summary import FEW, best_of, interval, known_spread, overlaps, ranked

LEAST_FALL = 0.1
"""Share by which the validation error must have fallen in the second half of a training."""
BETTER, WORSE = "better", "worse"


def headline(results: Results) -> list[str]:
    """Which rollout has the lowest error, how sure that is, and what it beats; at most two."""
    found = series(results)
    if not found:
        return ["No rollouts were evaluated."]
    best, steps = best_of(found), results.steps
    if best.blow_up is not None:
        who = f"{best.name} turns" if len(found) == 1 else f"All {len(found)} rollouts turn"
        last = "" if len(found) == 1 else f", the last of them, {best.name},"
        return [f"{who} non-finite{last} at step {best.blow_up} of {steps}."]
    clauses = [*_measured([best], results, told=True)]
    beaten = f"It {'; '.join(clauses)}." if clauses else ""
    if results.data.trajectories < 2:
        beaten = "One trajectory leaves no intervals, and another one may rank otherwise."
    return [_lowest(best, found, steps), *([beaten] if beaten else [])]


def _lowest(best: Series, found: Sequence[Series], steps: int) -> str:
    """The rollout with the lowest error, and whether others may be as good."""
    over = f"VRMSE {interval(best.vrmse_all)} over {steps} step{'s' if steps > 1 else ''}"
    if len(found) == 1:
        return f"{best.name}: {over}."
    rivals = ranked(found, lambda s: s.vrmse_all)[1:]
    blown = len(found) - 1 - len(rivals)
    lost = f"; {blown} blew up" if blown else ""
    said = f"{best.name} has the lowest error of {len(found)} rollouts, {over}"
    if not rivals:
        return f"{said}; all others blew up."
    spreads = [known_spread(s.vrmse_all) for s in (best, *rivals)]
    close = sum(overlaps(best.vrmse_all, s.vrmse_all) for s in rivals)
    if not all(spreads):
        return f"{said}{lost}."
    sure = (
        f"the intervals of {close} others overlap it" if close else "no other interval reaches it"
    )
    sure = f"the interval of {rivals[0].name} overlaps it" if close == 1 else sure
    return f"{said}; {sure}{lost}."


def verdict(results: Results) -> list[str]:
    """A sentence for each model of which something can be said, or why nothing can."""
    count = results.data.trajectories
    lines = []
    for name in model_names(results):
        own = [s for s in series(results) if s.model == name]
        models = [model for model in results.models if model.name == name]
        clauses = [*_measured(own, results), *_training(models)]
        if clauses:
            lines.append(f"{best_of(own).name if own else name}: {'; '.join(clauses)}.")
    if count < 2:
        lines.append(
            "No verdict on errors: one trajectory leaves no intervals. Evaluate on more of them."
        )
    elif count < FEW and lines:
        lines.append(f"With {count} trajectories the intervals behind this are rough guesses.")
    return lines


def _measured(own: Sequence[Series], results: Results, *, told: bool = False) -> Iterator[str]:
    """What the errors of a model say; as what it does or is if `told` of it."""
    verb_of = "is " if told else ""
    if not own:
        return
    best, steps = best_of(own), results.steps
    if best.blow_up is not None:
        yield f"turns non-finite at step {best.blow_up} of {steps}"
    if results.data.trajectories < 2:
        return
    said: dict[tuple[str, str], list[str]] = {}
    for yardstick in results.yardsticks:
        for state, when in _when(_states(best.margins(yardstick.name), 0.0), steps):
            said.setdefault((state, when), []).append(yardstick.name)
    for (state, when), names in said.items():
        verb = "beats" if state == BETTER else f"{verb_of}worse than"
        yield f"{verb} {' and '.join(names)} {when}"
    for state, when in _when(_states(_sound(best), 1.0), steps):
        yield f"{verb_of}{state} than the mean (VRMSE 1) {when}"


def _sound(s: Series) -> list[Estimate]:
    """VRMSE at the steps that every trajectory reached."""
    return s.curve if s.blow_up is None else s.curve[: s.blow_up - 1]


def _states(curve: Sequence[Estimate], limit: float) -> list[str]:
    """At each step on which side of a limit the whole interval lies; empty where on neither."""
    return [BETTER if e.high < limit else WORSE if e.low > limit else "" for e in curve]


def _when(states: Sequence[str], steps: int) -> Iterator[tuple[str, str]]:
    """The first stretch of steps that are better, and of those that are worse, in words."""
    seen, first = set(), 1
    for state, group in groupby(states):
        last = first + len(list(group)) - 1
        if state and state not in seen:
            seen.add(state)
            yield state, _stretch(first, last, steps)
        first = last + 1


def _stretch(first: int, last: int, steps: int) -> str:
    if (first, last) == (1, steps):
        return f"at all {steps} steps" if steps > 1 else "at its one step"
    if first == last:
        return f"at step {first} of {steps}"
    if first == 1:
        return f"up to step {last} of {steps}"
    if last == steps:
        return f"from step {first} to the last of {steps}"
    return f"from step {first} to step {last} of {steps}"


def _training(models: Sequence[ModelResult]) -> Iterator[str]:
    """Whether the training of every seed ended while its validation error was still falling."""
    if models and all(_was_falling(model) for model in models):
        command = models[0].training.get("longer")
        following = f" (next: {command})" if isinstance(command, str) else ""
        yield f"the validation error was still falling: train longer{following}"


def _was_falling(model: ModelResult) -> bool:
    history = model.training.get("history")
    scores = history.get("scores") if isinstance(history, dict) else None
    if not isinstance(scores, (list, tuple)):
        return False
    known = [value if isinstance(value, (int, float)) else math.inf for value in scores]
    late = known[len(known) // 2 :]
    return falls(late) and late[-1] <= (1 - LEAST_FALL) * late[0]
