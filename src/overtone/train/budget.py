"""How long a run lasts: what is used of its budget, when it validates, and how long it still takes.

A budget has up to four limits (updates, minutes, processor minutes, FLOPs); the first that is
reached ends the run. The time that is left is counted on the wall's clock: training by what it took
since this process began, and as many validations as are still to come. Unrolled updates, which come
late and cost as many steps, are counted as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from overtone.train.config import MOST, RunConfig
from overtone.train.state import RunProgress

ROUNDING = 1e-9
"""By how much a share may fall short of a point, as 0.29 · 100 does of 29."""


@dataclass(frozen=True)
class Budget:
    """What a run may use.

    Attributes:
        config: of the run.
    """

    config: RunConfig

    def done(self, progress: RunProgress) -> float:
        """Share that is used, 0 to 1."""
        train = self.config.train
        shares = [progress.update / self.config.num_updates]
        if train.max_minutes is not None:
            shares.append(progress.seconds / 60 / train.max_minutes)
        if train.max_cpu_minutes is not None:
            shares.append(progress.cpu_seconds / 60 / train.max_cpu_minutes)
        if train.max_flops is not None:
            shares.append(progress.flops / train.max_flops)
        return min(max(shares), 1.0)

    def validates(self, before: float, progress: RunProgress) -> bool:
        """Whether a validation is due after an update.

        Args:
            before: share that was used before it.
            progress: after it.
        """
        now, valid = self.done(progress), self.config.valid
        if now >= 1:
            return True
        if valid.points is not None:
            return _points(now, valid.points) > _points(before, valid.points)
        return progress.update % valid.every == 0

    def seconds_left(self, progress: RunProgress, start: RunProgress, validation: float) -> float:
        """Seconds on the clock until the end.

        Args:
            progress: now.
            start: when this process began.
            validation: seconds that a validation takes.
        """
        train, spent = self.config.train, max(progress.seconds - start.seconds, 0.0)
        ends = [_to_go(self._steps(progress), self._steps(start), self._most_steps, spent)]
        if train.max_minutes is not None:
            ends.append(60 * train.max_minutes - progress.seconds)
        if train.max_cpu_minutes is not None:
            most = 60 * train.max_cpu_minutes
            ends.append(_to_go(progress.cpu_seconds, start.cpu_seconds, most, spent))
        if train.max_flops is not None:
            ends.append(_to_go(progress.flops, start.flops, train.max_flops, spent))
        left = max(min(ends), 0.0)
        return left + validation * self._validations_left(progress, start, left)

    def used(self, progress: RunProgress) -> str:
        """What is used of it, in the unit that it is given in."""
        train = self.config.train
        if train.max_minutes is not None:
            return f"{progress.seconds / 60:.1f}/{train.max_minutes:g} min"
        if train.max_cpu_minutes is not None:
            return f"{progress.cpu_seconds / 60:.1f}/{train.max_cpu_minutes:g} CPU min"
        if train.max_flops is not None:
            return f"{progress.flops / 1e15:.3g}/{train.max_flops / 1e15:.3g} PFLOP"
        return f"{progress.update}/{self.config.num_updates}"

    def __str__(self) -> str:
        """All of its limits, in words."""
        train = self.config.train
        limits = {
            "{:g} min": train.max_minutes,
            "{:g} CPU min": train.max_cpu_minutes,
            "{:.3g} FLOP": train.max_flops,
            "{:,} updates": self.config.num_updates if self.config.num_updates < MOST else None,
        }
        return " or ".join(text.format(most) for text, most in limits.items() if most is not None)

    def _steps(self, progress: RunProgress) -> float:
        """Unrolled steps that as many updates make, by the share of updates alone."""
        num, train = self.config.num_updates, self.config.train
        late = max(progress.update - train.unroll_from * num, 0.0)
        return progress.update + (train.unroll - 1) * late

    @property
    def _most_steps(self) -> float:
        return self._steps(RunProgress(update=self.config.num_updates))

    def _validations_left(self, progress: RunProgress, start: RunProgress, seconds: float) -> int:
        """How many are to come in so many seconds, the one at the end among them."""
        valid, done = self.config.valid, self.done(progress)
        if done >= 1:
            return 0
        if valid.points is not None:
            return valid.points - _points(done, valid.points)
        last = progress.update + self._updates_left(progress, start, seconds)
        return math.ceil(last / valid.every) - progress.update // valid.every

    def _updates_left(self, progress: RunProgress, start: RunProgress, seconds: float) -> int:
        train, done, most = self.config.train, self.done(progress), self.config.num_updates
        steps = sum(progress.patches.values()) - sum(start.patches.values())
        spent = progress.seconds - start.seconds
        if steps <= 0 or spent <= 0:
            return most - progress.update
        early = seconds * max(train.unroll_from - done, 0.0) / (1 - done)
        made = (early + (seconds - early) / train.unroll) * steps / spent
        return min(round(made), most - progress.update)


def _points(share: float, count: int) -> int:
    """How many of the points of a budget lie behind."""
    return int(share * count + ROUNDING)


def _to_go(now: float, start: float, most: float, seconds: float) -> float:
    """Seconds for what is left of an amount, at the pace since the start."""
    return (most - now) * seconds / (now - start) if now > start else math.inf
