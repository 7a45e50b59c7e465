"""Controllers beside schedules at equal tokens, and what a perfect choice would gain.

Rows of a comparison are rules: constants, the cycle, bursts, random patches, a plan and further
schedules, which decide beforehand, and controllers of several tolerances. A row that decides as it
goes is set against what the others reach with as many tokens on average (`open_loop`), what
constants alone do (`constant`), and against the *perfect choice* (`perfect`): the schedules of the
table shared out among the trajectories by who knows all their errors beforehand. No controller that
chooses among them for each trajectory can be better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from overtone.domain import Window, per_axis
from overtone.errors import PatchError
from overtone.metrics import vrmse
from overtone.models.base import Model
from overtone.rollout import (
    Controller,
    ErrorEstimate,
    Rule,
    parse_rule,
    plan_objection,
    rollout,
)
from overtone.rollout.estimates import LEVEL
from overtone.schedules import Constant, Planned, Shifted
from studies.instrument import front_error, perfect_error

EARLY = 10
"""Steps of the short average."""
SHARES = (0.2, 0.5, 0.8)
"""Where tolerances lie, in logarithms, from 0.7 times the usual error of the best patch to 1.6
times that of the worst."""
KINDS = ("adaptive", "sparing")
"""Controllers."""
GIVEN = "given plan"
"""What rows of plans that were given are called, with a number."""
RANDOM = 3
"""Seeds of random patches: one alone may be lucky."""
BATCH = 32
"""Trajectories at once: small models are faster with many."""


@dataclass(frozen=True, eq=False)
class Set:
    """Rollouts to make: windows `(N, T, C, *space)`, and what follows, `(N, S, C, *space)`."""

    window: Window
    truth: Tensor

    def batches(self, size: int = BATCH) -> Iterator[tuple[Window, Tensor]]:
        """A few at a time."""
        for first in range(0, len(self.truth), size):
            part = slice(first, first + size)
            yield Window(self.window.fields[part], self.window.domain), self.truth[part]

    def only(self, rows: Sequence[int]) -> Set:
        """Some of them."""
        return Set(Window(self.window.fields[[*rows]], self.window.domain), self.truth[[*rows]])

    def until(self, steps: int) -> Set:
        """The first steps of all."""
        return Set(self.window, self.truth[:, :steps])


def usual_rules(model: Model) -> dict[str, str]:
    """Name -> string form of the rules of every comparison.

    Controllers are named by the place of their tolerance, which differs from model to model;
    `sparing auto` has the one that it takes from the calibration.
    """
    fine, coarse = model.patches[0], model.patches[-1]
    listed = "-".join(map(str, model.patches))
    texts = [*(f"{patch}+shift" for patch in model.patches), f"{listed}+shift",
             f"bursts:{coarse}:{fine}:4+shift",
             *(f"random:{listed}:{seed}+shift" for seed in range(RANDOM))]  # fmt: skip
    calibration = model.calibration
    assert calibration is not None
    errors = sorted(calibration.errors.values())
    least, most = 0.7 * errors[0], 1.6 * errors[-1]
    tolerances = [least * (most / least) ** share for share in SHARES]
    rules = {text: text for text in texts} | {
        f"{kind} {place}": f"{kind}:{tolerance:.3g}+shift"
        for kind in KINDS for place, tolerance in enumerate(tolerances, start=1)
    }  # fmt: skip
    return rules | {"sparing auto": "sparing+shift"}


def further_rules(
    schedules: Sequence[str], models: Mapping[str, Model]
) -> dict[str, dict[str, str]]:
    """For each model, rules beside the usual by name; a plan goes to the models it was made for.

    Args:
        schedules: string forms, `plan:FILE` among them.
        models: by their paths.

    Raises:
        PatchError: a form can't be read, or a plan was made for none of the models.
    """
    found: dict[str, dict[str, str]] = {path: {} for path in models}
    for text in schedules:
        rule = parse_rule(text)
        able = [path for path, model in models.items()
                if plan_objection(rule, model, model.domain) is None]  # fmt: skip
        if not able:
            *_, last = models.values()
            raise PatchError(f"{plan_objection(rule, last, last.domain)}")
        for path in able:
            own = found[path]
            # Seeds that follow plans of their own share a row.
            given = sum(name.startswith(GIVEN) for name in own)
            name = f"{GIVEN} {given + 1}" if isinstance(rule, Planned) else text
            own[name] = text
    return found


@dataclass
class Control:
    """A comparison of rules on a set of trajectories.

    Attributes:
        model: whose rollouts they are.
        own: the trajectories.
        tell: told which rule is next.
        rows: what was found, rule by rule.
        example: a rollout of `adaptive`, for a picture, see `_example`.
    """

    model: Model
    own: Set
    tell: Callable[[str], None]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)

    def run(self, rules: Mapping[str, Rule | str]) -> dict[str, dict[str, Any]]:
        """Measure rules by name; controllers are set against the others.

        Every row has its `rule`, `error` over all steps and over the `early` ones, the `worst`
        trajectory, mean `tokens` of a trajectory and of its steps, and `errors` and tokens of each.
        """
        parsed = {name: parse_rule(rule) for name, rule in rules.items()}
        for name, rule in parsed.items():
            self.tell(f"  {rule}")
            self.rows[name] = self._row(rule)
        plain = [self.rows[n] for n, rule in parsed.items() if not isinstance(rule, Controller)]
        alone = [self.rows[n] for n, rule in parsed.items() if _is_constant(rule)]
        for name, rule in parsed.items():
            if isinstance(rule, Controller):
                row = self.rows[name]
                for what, own in (("error", "open_loop"), ("early", "open_loop_early"),
                                  ("worst", "open_loop_worst")):  # fmt: skip
                    row[own] = _front(plain, what, row["tokens"])
                row["constant"] = _front(alone, "error", row["tokens"])
                each = [(other["tokens"], other["errors"]) for other in plain]
                row["perfect"] = perfect_error(each, row["tokens"])
        return self.rows

    def _row(self, rule: Rule) -> dict[str, Any]:
        own, errors, tokens, each = self.own, [], 0.0, []
        drawn: list[dict[str, Any]] = []
        by_step = torch.zeros(own.truth.shape[1], dtype=torch.float64)
        for window, truth in own.batches():
            frames = rollout(self.model, window, steps=truth.shape[1], schedule=rule,
                             on_blow_up="hold")  # fmt: skip
            error, told = [], []
            for frame, true in zip(frames, truth.unbind(dim=1), strict=True):
                error.append(vrmse(frame, true, ndim=window.domain.ndim).mean(dim=1).double())
                told.append(frames.estimate)
            part = torch.stack(error, dim=1)
            part[~frames.alive] = math.inf
            errors.append(part)
            share = len(truth) / len(own.truth)
            tokens += frames.tokens * share
            spent = torch.tensor([[made.tokens for made in record] for record in frames.records])
            by_step += spent.double().mean(dim=0) * share
            each += [sum(made.tokens for made in record) for record in frames.records]
            if str(rule).startswith(KINDS[0]):
                patches = [
                    [per_axis(made.choice.patch, window.domain.ndim, "patch")[0] for made in record]
                    for record in frames.records
                ]
                drawn.append(_example(str(rule), part, told, patches))
        if drawn:
            self._show(drawn)
        every = torch.cat(errors)
        return {
            "rule": str(rule),
            "error": float(every.mean()),
            "early": float(every[:, :EARLY].mean()),
            "worst": float(every.mean(dim=1).max()),
            "tokens": tokens,
            "tokens_by_step": by_step.tolist(),
            "tokens_of_each": each,
            "errors": every.mean(dim=1).tolist(),
        }

    def _show(self, drawn: Sequence[dict[str, Any]]) -> None:
        """Keep the rollout of a rule that tells most, if it tells more than those before.

        Args:
            drawn: that of each batch.
        """
        best = max(drawn, key=_telling)
        for count in ("held", "rollouts"):
            best[count] = sum(own[count] for own in drawn)
        if not self.example or _telling(best) > _telling(self.example):
            self.example = best


def _front(rows: Sequence[Mapping[str, Any]], what: str, tokens: float) -> float:
    """What schedules reach with so many tokens: the lowest of a number, between them."""
    return front_error([(row["tokens"], row[what]) for row in rows], tokens)


def _is_constant(rule: Rule) -> bool:
    return isinstance(rule, Shifted) and isinstance(rule.schedule, Constant)


def _telling(drawn: Mapping[str, Any]) -> tuple[bool, int]:
    """How much a rollout shows: a band that holds, then many changes of the patch."""
    return drawn["inside"], drawn["changes"]


def _example(
    rule: str,
    errors: Tensor,
    told: Sequence[ErrorEstimate | None],
    patches: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """The rollout of a batch that tells most: of those whose band holds the one that changes most.

    `held` says how many of the `rollouts` have a band that holds at all steps: of 90 %, not all.
    """
    known = [estimate for estimate in told if estimate is not None]
    changes = [sum(a != b for a, b in pairwise(own)) for own in patches]
    inside = [False] * len(patches)
    if LEVEL in known[0].bounds:
        low, high = (torch.stack([e.bounds[LEVEL][side] for e in known], dim=1) for side in (0, 1))
        inside = ((low <= errors) & (errors <= high)).all(dim=1).tolist()
    row = max(range(len(patches)), key=lambda i: (inside[i], changes[i]))
    bounds = known[0].bounds
    return {
        "rule": rule,
        "changes": changes[row],
        "inside": inside[row],
        "held": sum(inside),
        "rollouts": len(inside),
        "error": errors[row].tolist(),
        "value": [float(e.value[row]) for e in known],
        "bounds": {
            str(level): [[float(e.bounds[level][side][row]) for e in known] for side in (0, 1)]
            for level in bounds
        },
        "patches": list(patches[row]),
        "level": LEVEL,
    }
