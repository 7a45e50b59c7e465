"""Controllers beside schedules at equal tokens, and what a perfect choice would gain.

Rows of a comparison are rules: constants, the cycle, bursts, random patches and further schedules,
which decide beforehand, and controllers of several tolerances. A row that decides as it goes is set
against what the others reach with as many tokens on average (`open_loop`), and against the *perfect
choice* (`perfect`): the schedules of the table shared out among the trajectories by who knows all
their errors beforehand. No controller that chooses among them for each trajectory can be better.
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
from overtone.metrics import vrmse
from overtone.models.base import Model
from overtone.rollout import Rule, parse_rule, rollout
from overtone.rollout.estimates import LEVEL
from studies.instrument import front_error, perfect_error

EARLY = 10
"""Steps of the short average."""
SHARES = (0.2, 0.5, 0.8)
"""Where tolerances lie, in logarithms, from 0.7 times the usual error of the best patch to 1.6
times that of the worst."""
KINDS = ("adaptive", "sparing")
"""Controllers."""


@dataclass(frozen=True, eq=False)
class Set:
    """Rollouts to make: windows `(N, T, C, *space)`, and what follows, `(N, S, C, *space)`."""

    window: Window
    truth: Tensor

    def batches(self, size: int = 8) -> Iterator[tuple[Window, Tensor]]:
        """A few at a time."""
        for first in range(0, len(self.truth), size):
            part = slice(first, first + size)
            yield Window(self.window.fields[part], self.window.domain), self.truth[part]

    def only(self, rows: Sequence[int]) -> Set:
        """Some of them."""
        return Set(Window(self.window.fields[[*rows]], self.window.domain), self.truth[[*rows]])


def usual_rules(model: Model) -> dict[str, str]:
    """Name -> string form of the rules of every comparison.

    Controllers are named by the place of their tolerance, which differs from model to model.
    """
    fine, coarse = model.patches[0], model.patches[-1]
    listed = "-".join(map(str, model.patches))
    texts = [*(f"{patch}+shift" for patch in model.patches), f"{listed}+shift",
             f"bursts:{coarse}:{fine}:4+shift", f"random:{listed}:0+shift"]  # fmt: skip
    calibration = model.calibration
    assert calibration is not None
    errors = sorted(calibration.errors.values())
    least, most = 0.7 * errors[0], 1.6 * errors[-1]
    tolerances = [least * (most / least) ** share for share in SHARES]
    return {text: text for text in texts} | {
        f"{kind} {place}": f"{kind}:{tolerance:.3g}+shift"
        for kind in KINDS for place, tolerance in enumerate(tolerances, start=1)
    }  # fmt: skip


@dataclass
class Control:
    """A comparison of rules on a set of trajectories.

    Attributes:
        model: whose rollouts they are.
        own: the trajectories.
        tell: told which rule is next.
        rows: what was found, rule by rule.
        example: the rollout of a controller in which the patch changes most often.
    """

    model: Model
    own: Set
    tell: Callable[[str], None]
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)

    def run(self, rules: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Measure rules by name; controllers are set against the others.

        Every row has its `rule`, `error` over all steps and over the `early` ones, the `worst`
        trajectory, mean `tokens` of a trajectory and of its steps, and `errors` and tokens of each.
        """
        for name, text in rules.items():
            self.tell(f"  {text}")
            self.rows[name] = self._row(parse_rule(text))
        plain = [row for row in self.rows.values() if not _decides(row["rule"])]
        for row in self.rows.values():
            if _decides(row["rule"]):
                for what, name in (("error", "open_loop"), ("early", "open_loop_early"),
                                   ("worst", "open_loop_worst")):  # fmt: skip
                    points = [(own["tokens"], own[what]) for own in plain]
                    row[name] = front_error(points, row["tokens"])
                each = [(own["tokens"], own["errors"]) for own in plain]
                row["perfect"] = perfect_error(each, row["tokens"])
        return self.rows

    def _row(self, rule: Rule) -> dict[str, Any]:
        own, errors, tokens, each = self.own, [], 0.0, []
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
            if told[0] is not None:
                patches = [
                    [per_axis(made.choice.patch, window.domain.ndim, "patch")[0] for made in record]
                    for record in frames.records
                ]
                drawn = _example(str(rule), part, told, patches)
                if not self.example or drawn["changes"] > self.example["changes"]:
                    self.example = drawn
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


def _decides(rule: str) -> bool:
    """Whether it is a controller's string form."""
    return rule.startswith(KINDS)


def _example(
    rule: str, errors: Tensor, told: Sequence[Any], patches: Sequence[Sequence[int]]
) -> Mapping[str, Any]:
    """The rollout, of one batch, in which the patch changes most often: for a picture."""
    changes = [sum(a != b for a, b in pairwise(own)) for own in patches]
    row = changes.index(max(changes))
    bounds = told[0].bounds
    return {
        "rule": rule,
        "changes": changes[row],
        "error": errors[row].tolist(),
        "value": [float(e.value[row]) for e in told],
        "bounds": {
            str(level): [[float(e.bounds[level][side][row]) for e in told] for side in (0, 1)]
            for level in bounds
        },
        "patches": list(patches[row]),
        "level": LEVEL,
    }
