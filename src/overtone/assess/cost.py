"""What a rollout costs: tokens and FLOPs, counted, and seconds, measured on this machine.

A step's cost depends on the patch grid that it lays: on walls and open sides a moved grid has a
token more along the axis. So costs are found once for each patch and number of tokens along the
axes, and a rollout costs the sum over its steps. All are those of one trajectory that is predicted
alone. On the CPU, seconds are those of one core.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, get_args

from overtone.domain import Window
from overtone.errors import OvertoneError
from overtone.evaluate.candidates import Candidate
from overtone.evaluate.run import one_core
from overtone.grid import PatchGrid
from overtone.models.flops import call_flops
from overtone.rollout import rollout
from overtone.schedules import Choice, Constant, Schedule, Shifted, require_countable

Price = Literal["tokens", "flops", "seconds"]
"""What can be limited."""
PRICES: tuple[Price, ...] = get_args(Price)
WARM = 2
"""Calls at each patch before the clock counts: tables are made and memory is found in them."""
REPEATS = 7
"""Calls at each patch of which the median is taken."""


@dataclass(frozen=True)
class Cost:
    """The price of a step or a rollout of one trajectory.

    Attributes:
        tokens: of one frame, summed over the steps.
        flops: 0 for what is no network.
        seconds: of one core of a CPU, or that pass on another device.
    """

    tokens: int = 0
    flops: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.tokens + other.tokens, self.flops + other.flops, self.seconds + other.seconds
        )

    def times(self, num: int) -> Cost:
        """The price of so many."""
        return Cost(num * self.tokens, num * self.flops, num * self.seconds)

    def price(self, kind: Price) -> float:
        """One of the three numbers."""
        return getattr(self, kind)

    def within(self, limits: Mapping[Price, float]) -> bool:
        """Whether no limit is exceeded."""
        return all(self.price(kind) <= limit for kind, limit in limits.items())


class Costs:
    """Prices of a model's steps on a domain, each found when it is first asked for.

    Args:
        candidate: the model, on its device.
        window: one sample `(1, T, C, *space)` there, to measure the time with.
        measure: the seconds of a step of a model, if not by the clock.
    """

    def __init__(
        self,
        candidate: Candidate,
        window: Window,
        *,
        measure: Callable[[Choice], float] | None = None,
    ):
        self._candidate, self._window = candidate, window
        self._measure = measure or self._by_the_clock
        self._known: dict[PatchGrid, Cost] = {}

    def step(self, choice: Choice) -> Cost:
        """The price of one step."""
        domain = self._window.domain
        choice = choice.on(domain)
        grid = PatchGrid.lay(domain, choice.patch, choice.shift)
        # Where a grid starts does not matter, how many tokens it has along each axis does.
        kind = PatchGrid(domain, grid.patch, (0,) * domain.ndim, grid.shape)
        if kind not in self._known:
            self._known[kind] = Cost(grid.num_tokens, self._flops(choice), self._measure(choice))
        return self._known[kind]

    def of(self, schedule: Schedule, steps: int) -> Cost:
        """The price of a rollout."""
        uses = Counter(schedule(step) for step in range(require_countable(steps)))
        return sum((self.step(choice).times(num) for choice, num in uses.items()), Cost())

    def _flops(self, choice: Choice) -> int:
        candidate, domain = self._candidate, self._window.domain
        at_rest = candidate.flops(domain, choice.patch)
        if not at_rest or not any(choice.shift) or all(domain.periodic):
            return at_rest
        options = {"shift": choice.shift, "allow_untrained": candidate.allow_untrained}
        frames = candidate.model.context
        return call_flops(candidate.model, domain, choice.patch, frames=frames, **options)  # pyright: ignore[reportArgumentType]

    def _by_the_clock(self, choice: Choice) -> float:
        on_cpu = self._window.fields.device.type == "cpu"
        core: AbstractContextManager[None] = one_core() if on_cpu else nullcontext()
        with core:
            frames = rollout(
                self._candidate.model,
                self._window,
                steps=WARM + REPEATS,
                schedule=Shifted(Constant(choice.patch), offsets=[choice.shift]),
                on_blow_up="hold",
                allow_untrained=self._candidate.allow_untrained,
                timed=True,
            )
            seconds = [frames.seconds for _ in frames]
        return statistics.median(seconds[WARM:])


def read_limits(
    tokens: float | None, flops: float | None, seconds: float | None
) -> dict[Price, float]:
    """The limits that were given; each must be a positive number."""
    given: dict[Price, float | None] = {"tokens": tokens, "flops": flops, "seconds": seconds}
    limits: dict[Price, float] = {k: v for k, v in given.items() if v is not None}
    for kind, limit in limits.items():
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not limit > 0:
            raise OvertoneError(f"{kind} is {limit!r}; expected a positive number")
    return limits
