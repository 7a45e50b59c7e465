"""Sequences of patches that no family has, found step by step.

A beam search: a few beginnings of a rollout are kept, each goes on with every word, and the best
of all that come of it are kept again. A word is some steps at one patch, or one round through all
patches; rollouts that are long have longer words, so that there are never more than `DECISIONS` of
them. Every beginning is rolled out once, however many go on from it.

A beginning is judged by the mean error of the whole rollout if the error stayed as it is. That
favours whoever has spent most so far. So beginnings are sorted by what they have spent into
`CLASSES`, and the best of each are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.assess.cost import Cost, Costs, Price
from overtone.assess.plan_bench import Bench, Crew
from overtone.assess.search_families import sequence, shifted
from overtone.domain import Window
from overtone.schedules import Choice, Constant, Explicit, Patch, Schedule

DECISIONS = 24
CLASSES = 4
WIDTH = 2
"""Beginnings that are kept of each class, at least."""
EFFORT = 96
"""Steps times beginnings of each class: short rollouts are cheap, so more are kept."""


@dataclass(frozen=True, eq=False)
class Beginning:
    """A rollout that has come so far.

    Attributes:
        patches: of its steps.
        windows: what it has come to, for each crew.
        errors: of its steps, `(N, steps so far)` float64.
        cost: of its steps.
    """

    patches: tuple[Patch, ...]
    windows: tuple[Window, ...]
    errors: Tensor
    cost: Cost

    def outlook(self, steps: int) -> float:
        """Log of the mean error over a rollout if the last error stays, mean over flights."""
        left = steps - len(self.patches)
        total = self.errors.sum(dim=1) + left * self.errors[:, -1]
        return (total / steps).clamp(min=1e-30).log().mean().item()


@dataclass(frozen=True, eq=False)
class Beam:
    """A search for sequences.

    Attributes:
        bench: where they are tried.
        costs: what steps cost.
        patches: from fine to coarse.
        kind: of the shifts, see `shift_kinds`.
        limits: what a whole rollout may cost.
        price: by which beginnings are classed.
    """

    bench: Bench
    costs: Costs
    patches: Sequence[Patch]
    kind: str
    limits: Mapping[Price, float]
    price: Price

    def search(self, flights: Sequence[int]) -> list[Schedule]:
        """The best sequences of each class, tried on some flights; none if nothing fits."""
        crews = [*self.bench.crews(flights)]
        none = torch.zeros(len(flights), 0, dtype=torch.float64)
        kept = [Beginning((), tuple(crew.start for crew in crews), none, Cost())]
        while kept and len(kept[0].patches) < self.bench.steps:
            grown = [new for old in kept for new in self._grow(old, crews)]
            kept = self._best(grown)
        return [self._schedule(sequence(own.patches)) for own in kept[: CLASSES * WIDTH]]

    def num_steps(self, flights: Sequence[int]) -> int:
        """How many steps a search computes, at most."""
        words = CLASSES * self._width * len(self._words(self.bench.steps))
        return self.bench.steps * words * self.bench.num_crews(flights)

    @property
    def _width(self) -> int:
        return max(WIDTH, EFFORT // self.bench.steps)

    def _schedule(self, schedule: Schedule) -> Schedule:
        return shifted(schedule, self.kind, self.bench.domain, self.patches[-1])

    def _words(self, left: int) -> list[tuple[Patch, ...]]:
        length = min(left, -(-self.bench.steps // DECISIONS))
        words = [(patch,) * length for patch in self.patches]
        if length > 1:
            words.append(tuple(self.patches[i % len(self.patches)] for i in range(length)))
        return words

    def _grow(self, old: Beginning, crews: Sequence[Crew]) -> Iterator[Beginning]:
        """What a beginning becomes with each word that leaves enough for the rest."""
        done = len(old.patches)
        for word in self._words(self.bench.steps - done):
            patches = old.patches + word
            schedule = self._schedule(Explicit(patches))
            choices = [schedule(step).on(self.bench.domain) for step in range(done, len(patches))]
            cost = sum(map(self.costs.step, choices), old.cost)
            rest = self._least().times(self.bench.steps - len(patches))
            if (cost + rest).within(self.limits):
                windows, errors = self._advance(old, crews, choices)
                yield Beginning(patches, windows, torch.cat([old.errors, errors], dim=1), cost)

    def _least(self) -> Cost:
        """The cheapest patch's step, where its shift makes it dearest."""
        prices = []
        for patch in self.patches:
            schedule = self._schedule(Constant(patch))
            own = [self.costs.step(schedule(step)) for step in range(self.bench.steps)]
            prices.append(max(own, key=self._of))
        return min(prices, key=self._of)

    @property
    def _of(self) -> Callable[[Cost], float]:
        return lambda cost: cost.price(self.price)

    def _advance(
        self, old: Beginning, crews: Sequence[Crew], choices: Sequence[Choice]
    ) -> tuple[tuple[Window, ...], Tensor]:
        errors = torch.empty(len(old.errors), len(choices), dtype=torch.float64)
        windows = []
        for crew, window in zip(crews, old.windows, strict=True):
            now, own = self.bench.advance(crew, window, len(old.patches), choices)
            windows.append(now)
            errors[crew.places] = own
        return tuple(windows), errors

    def _best(self, grown: Sequence[Beginning]) -> list[Beginning]:
        """The best of each class, best first."""
        if not grown:
            return []
        spent = [self._of(own.cost) for own in grown]
        low, span = min(spent), max(spent) - min(spent)
        classes: dict[int, list[Beginning]] = {}
        for own, price in zip(grown, spent, strict=True):
            place = int((price - low) / span * (CLASSES - 1e-9)) if span else 0
            classes.setdefault(place, []).append(own)

        def outlook(own: Beginning) -> float:
            return own.outlook(self.bench.steps)

        groups = [sorted(group, key=outlook)[: self._width] for group in classes.values()]
        return sorted((own for group in groups for own in group), key=outlook)
