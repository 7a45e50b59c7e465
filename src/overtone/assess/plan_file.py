"""A plan as plain data, and its file.

`Plan.model_json_schema()` is the schema of the file in JSON's own terms. `plan:FILE` is the
schedule of a plan that was saved; `overtone.schedules.Planned` says who can follow it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from overtone.assess.cost import Cost, Price
from overtone.errors import DataError
from overtone.evaluate.results import Data, Estimate, Number, Record
from overtone.files import replacing
from overtone.guard.names import shown
from overtone.schedules.forms import MAX_PLAN_BYTES, PLAN_FORMAT


class Spent(Record):
    """What a rollout of one trajectory costs: see `overtone.assess.cost.Cost`."""

    tokens: int
    flops: int
    seconds: Number


class Option(Record):
    """A schedule that was tried on all trajectories.

    Attributes:
        schedule: its string form.
        error: VRMSE over all steps, mean over trajectories, and its 95 % bootstrap interval.
        cost: of a rollout.
        on_front: whether no other schedule has both a lower price and a lower error.
        searched: whether the beam search found it.
    """

    schedule: str
    error: Estimate
    cost: Spent
    on_front: bool
    searched: bool = False


class PlannedModel(Record):
    """What a plan was made for.

    Attributes:
        name: for people.
        fingerprint: SHA-256 of its weights, by which it is known again.
        patches: those that it was planned with, from fine to coarse.
    """

    name: str
    fingerprint: str
    patches: tuple[int | tuple[int, ...], ...]


class Plan(Record):
    """The whole of a plan's file; `Plan.model_json_schema()` is its schema in JSON's own terms.

    Attributes:
        format: of the file.
        command: how to make it again.
        seed: of the order of trajectories, and of the bootstrap.
        machine: what seconds depend on.
        model, data: what it was made for, and with.
        starts: rollouts that were made from these trajectories.
        steps: length of the rollouts.
        limits: what a rollout may cost.
        target: the error that was asked for, or None for the lowest.
        price: what the front sets against the error.
        fits: whether limits and target are met; if not, `schedule` is the best that was found.
        schedule: what was chosen.
        error: what to expect of it, see `overtone.assess.plan`.
        worst: the largest error of one trajectory.
        cost: of a rollout.
        tried: how many schedules were tried.
        options: those that were tried on all trajectories, the cheapest first.
        notes: what else there is to say about the choice.
    """

    format: Literal["overtone-plan-1"] = PLAN_FORMAT
    command: str
    seed: int
    machine: dict[str, str]
    model: PlannedModel
    data: Data
    starts: int
    steps: int
    limits: dict[Price, Number]
    target: Number | None
    price: Price
    fits: bool
    schedule: str
    error: Estimate
    worst: Number
    cost: Spent
    tried: int
    options: tuple[Option, ...]
    notes: tuple[str, ...] = ()

    @property
    def front(self) -> tuple[Option, ...]:
        """The options on the front, the cheapest first."""
        return tuple(option for option in self.options if option.on_front)

    def __str__(self) -> str:
        """The answer, in a sentence."""
        error = f"{self.error.value:.4f} [{self.error.low:.4f}, {self.error.high:.4f}]"
        cost = f"{self.cost.tokens:,} tokens, {self.cost.seconds:.3g} s"
        found = f"{self.schedule}: VRMSE {error} expected over {self.steps} steps, for {cost}"
        return found if self.fits else f"no schedule reaches {self.target:g}; the best is {found}"

    __repr__ = __str__

    def save(self, path: str | Path) -> None:
        """Write JSON; the file is complete or absent."""
        with replacing(path) as scratch:
            scratch.write_text(self.to_json(indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read what `save` wrote."""
        try:
            if Path(path).stat().st_size > MAX_PLAN_BYTES:
                raise DataError(f"it has more than {MAX_PLAN_BYTES} bytes")
            return cls.model_validate_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValidationError, UnicodeDecodeError, DataError) as error:
            raise DataError(
                f"'{shown(path)}' can't be read as a plan of `overtone plan`: {shown(error)[:300]}"
            ) from error


def spent(cost: Cost) -> Spent:
    """A cost as plain data."""
    return Spent(tokens=cost.tokens, flops=cost.flops, seconds=cost.seconds)
