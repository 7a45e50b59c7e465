"""What the numbers say, in sentences that claim no more than the intervals allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from overtone.evaluate.results import Estimate, Results
from overtone.metrics.confidence import FEW, has_width, number, with_interval
from overtone.report.series import Series, model_names, num_seeds, series
from overtone.report.style import patch_name

ALPHA = 0.01
"""p-value below which a grid artifact is called significant."""

Pick = Callable[[Series], Estimate]


def sentences(results: Results) -> list[str]:
    """The summary, one or two plain sentences an entry."""
    found = series(results)
    said = [*_best(results, found), *_artifacts(found), *_seams(results, found)]
    said += _blow_ups(results, found)
    return [*said, *_cautions(results)] if found else ["No rollouts were evaluated."]


def interval(estimate: Estimate) -> str:
    """A value with its interval, or alone where one trajectory leaves no interval."""
    return with_interval(estimate.value, estimate.low, estimate.high)


def known_spread(estimate: Estimate) -> bool:
    """Whether there is an interval at all."""
    return has_width(estimate.low, estimate.high)


def overlaps(a: Estimate, b: Estimate) -> bool:
    """Whether two intervals have a value in common."""
    return a.low <= b.high and b.low <= a.high


def ranked(own: Sequence[Series], pick: Pick) -> list[Series]:
    """Series with a finite error and no blow-up, best first."""
    sound = [s for s in own if math.isfinite(pick(s).value) and s.blow_up is None]
    return sorted(sound, key=lambda s: pick(s).value)


def best_of(own: Sequence[Series]) -> Series:
    """The schedule with the lowest error; if all blow up, the one that does so last."""
    sound = ranked(own, lambda s: s.vrmse_all)
    return sound[0] if sound else max(own, key=lambda s: s.blow_up or 0)


def _best(results: Results, found: Sequence[Series]) -> Iterator[str]:
    names = model_names(results)
    for name in names:
        own = [s for s in found if s.model == name]
        order = ranked(own, lambda s: s.vrmse_all)
        if len(own) > 1 and order:
            if results.steps > 10:
                early = ranked(own, lambda s: s.vrmse_10)
                yield _name_best(early, lambda s: s.vrmse_10, f"{name}: over the first 10 steps")
            yield _name_best(
                order, lambda s: s.vrmse_all, f"{name}: over all {results.steps} steps"
            )
            yield from _prices(order)
    order = ranked(found, lambda s: s.vrmse_all)
    if len(names) > 1 and order:
        start = f"Of all models and schedules, over all {results.steps} steps"
        yield _name_best(order, lambda s: s.vrmse_all, start, models=True)
    elif len(found) == 1 and order:
        (only,) = order
        yield (
            f"{only.name}, the only one evaluated, has a VRMSE of "
            f"{interval(only.vrmse_all)} over all {results.steps} steps."
        )


def _name_best(order: Sequence[Series], pick: Pick, start: str, *, models: bool = False) -> str:
    def called(s: Series) -> str:
        return s.name if models else f"schedule {s.schedule}"

    best, rivals = order[0], order[1:]
    what = "combination" if models else "schedule"
    said = f"{start}, {called(best)} has the lowest VRMSE, {interval(pick(best))}."
    if not rivals:
        return f"{said} No other {what} came through without a blow-up."
    said += f" Next is {called(rivals[0])} with {interval(pick(rivals[0]))}."
    if not all(known_spread(pick(s)) for s in order):
        return f"{said} Without intervals, nobody can tell whether that order is chance."
    close = [called(s) for s in rivals if overlaps(pick(best), pick(s))]
    if not close:
        return f"{said} No other interval reaches that of the best."
    return f"{said} The best's interval overlaps {_listing(close)}: that order may be chance."


def _listing(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"that of {names[0]}"
    if len(names) > 3:
        return f"those of {len(names)} others"
    return f"those of {', '.join(names[:-1])} and {names[-1]}"


def _prices(order: Sequence[Series]) -> Iterator[str]:
    """What the best costs, and the cheapest that the intervals do not tell from it."""
    best = order[0]
    dearest = max(order, key=lambda s: s.tokens)
    if dearest.tokens > best.tokens:
        share = f"{100 * best.tokens / dearest.tokens:.0f} %"
        yield (
            f"{best.model}: schedule {best.schedule} spends {best.tokens:,} tokens on a rollout, "
            f"{share} of the {dearest.tokens:,} of schedule {dearest.schedule}."
        )
    alike = [s for s in order if known_spread(s.vrmse_all)]
    alike = [s for s in alike if overlaps(s.vrmse_all, best.vrmse_all)]
    cheapest = min(alike, key=lambda s: s.tokens, default=best)
    if cheapest.tokens < best.tokens:
        yield (
            f"{best.model}: the cheapest schedule whose interval overlaps the best's is "
            f"{cheapest.schedule}, with {best.tokens / cheapest.tokens:.1f} times fewer tokens "
            f"than {best.schedule}."
        )


def _artifacts(found: Sequence[Series]) -> Iterator[str]:
    seen = [(s, h) for s in found for patch in s.patches if (h := s.harmonics(patch))]
    if not seen:
        return
    sure = [(s, h) for s, h in seen if h.p_value < ALPHA]
    if not sure:
        yield f"No residual has lines of a patch grid that are significant at {ALPHA}."
        return
    s, h = max(sure, key=lambda pair: pair[1].overall)
    yield (
        f"The strongest lines of a patch grid are those of {s.name} at period "
        f"{patch_name(h.patch)}: {number(h.overall)} dB above its spectral neighbourhood, "
        f"{number(100 * h.share)} % of the residual's power."
    )
    with_artifact = {(s.model, s.schedule) for s, _ in sure}
    clean = [s for s in found if s.patches and (s.model, s.schedule) not in with_artifact]
    if clean:
        yield (
            f"{len(clean)} of {len(found)} residuals have no such lines that are significant at "
            f"{ALPHA}: {_names(clean)}."
        )


def _seams(results: Results, found: Sequence[Series]) -> Iterator[str]:
    """The largest and the smallest seams at the last step, each at the grid in use."""
    whole = [s for s in found if len(s.seams) == results.steps]
    if not whole:
        return
    order = sorted(whole, key=lambda s: s.seams[-1].value)
    least, most = order[0], order[-1]
    if most.seams[-1].low <= 0:
        yield "No residual jumps more at the borders of patches than within them at the last step."
        return
    yield (
        f"At the last step the residual of {most.name} jumps {interval(most.seams[-1])} dB more "
        "across the borders of that step's patches than within them"
        + (f", that of {least.name} {interval(least.seams[-1])} dB." if len(whole) > 1 else ".")
    )


def _blow_ups(results: Results, found: Sequence[Series]) -> Iterator[str]:
    blown = [s for s in found if s.blow_up is not None]
    if blown:
        listed = ", ".join(f"{s.name} (step {s.blow_up})" for s in blown[:6])
        more = f" and {len(blown) - 6} more" if len(blown) > 6 else ""
        yield (
            f"{len(blown)} of {len(found)} rollouts turned non-finite within {results.steps} "
            f"steps, first at the step in brackets: {listed}{more}. They are not ranked. Their "
            "means over steps are infinite, shown as –, where they include that step; their curves "
            "are, at each step, means over the trajectories that are left."
        )


def _names(many: Sequence[Series]) -> str:
    shown = ", ".join(s.name for s in many[:6])
    return shown + (f" and {len(many) - 6} more" if len(many) > 6 else "")


def _cautions(results: Results) -> Iterator[str]:
    count = results.data.trajectories
    if count == 1:
        yield "One trajectory only: there are no intervals, and another one may rank otherwise."
    elif count < FEW:
        yield f"With {count} trajectories the intervals are rough guesses, often too narrow."
    if num_seeds(results) > 1:
        yield (
            f"Up to {num_seeds(results)} models share a name (seeds): their numbers are means, "
            "and an interval is the envelope of the seeds' intervals."
        )
