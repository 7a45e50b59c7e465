"""One step of a rollout: ask who decides, make the frame, compare, and redo it if need be.

Samples that are to be made with the same choice go through the model together, whoever chose it.
Within a step nothing is computed twice: where a refused attempt is what the next one is compared
with, it is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.domain import Domain, Window
from overtone.errors import OvertoneError, PatchError
from overtone.grid import PatchGrid
from overtone.models.calibration import Calibration
from overtone.rollout.controllers import Controller, Made, Record, Rule, worst
from overtone.rollout.estimates import disagreement, half_moved, next_coarser
from overtone.schedules import Choice, Patch, Schedule

MAX_TRIES = 16
"""Attempts at one step; no controller needs more than it has patches."""

Call = Callable[..., Tensor]
"""Makes a frame `(B, C, *space)` of a window, a patch and a shift."""


@dataclass(frozen=True, eq=False)
class Step:
    """What a step came to, n samples.

    Attributes:
        frame: `(n, C, *space)`.
        made: of each sample.
        difference: `(n, C, *space)` from what it was compared with.
        tokens: what the comparisons and redone attempts cost, mean over samples.
    """

    frame: Tensor
    made: list[Made]
    difference: Tensor
    tokens: float


class Steering:
    """Who decides on the steps of a batch, and the record of what was decided.

    Args:
        rule: a schedule, or a controller that is ready for the rollout.
        kind: what a schedule's steps are compared with, `"patch"` or `"shift"`; None for nothing. A
            controller has a comparison of its own.
        patches: those that a comparison may use, the finest first.
        calibration: of the model, for this grid.
        records: of each sample, the steps that were made before.
    """

    def __init__(
        self,
        rule: Rule,
        kind: str | None,
        patches: Sequence[Patch],
        calibration: Calibration | None,
        records: Sequence[Record],
    ):
        self.rule, self.kind, self.patches = rule, kind, patches
        self.calibration = calibration
        self.records: list[list[Made]] = [[*record] for record in records]
        self._together = isinstance(rule, Controller) and not rule.per_sample
        self._shared: list[Made] = []
        self.differences: dict[int, Tensor] = {}
        if self._together and records:
            self._shared = [worst(steps) for steps in zip(*records, strict=True)]

    def step(self, call: Call, window: Window, left: Sequence[int]) -> Step:
        """Make the next step.

        Args:
            call: makes frames.
            window: of the samples that are left, `(n, T, C, *space)`.
            left: which of all samples these are.
        """
        step = _Attempts(self, call, window, left).run()
        self._note(left, step.made)
        return step

    def plain(self, domain: Domain, left: Sequence[int]) -> Choice | None:
        """The choice of a step that is not compared with anything.

        None where there is more to be done than to make a frame.
        """
        if isinstance(self.rule, Controller) or self.kind is not None:
            return None
        return self.rule(len(self.records[left[0]])).on(domain)

    def note(self, domain: Domain, left: Sequence[int], choice: Choice) -> None:
        """Keep that a plain step was made."""
        tokens = 0
        with suppress(PatchError):  # who has no patches takes any, also what no grid can hold
            tokens = num_tokens(domain, choice)
        self._note(left, [Made(choice, tokens=tokens)] * len(left))

    def _note(self, left: Sequence[int], made: Sequence[Made]) -> None:
        for sample, own in zip(left, made, strict=True):
            self.records[sample].append(own)
        if self._together:
            self._shared.append(worst(made))

    def parties(self, left: Sequence[int]) -> list[tuple[Record, list[int]]]:
        """Records that are decided by, and the rows of the window that each decides for."""
        if self._together:
            return [(self._shared, [*range(len(left))])]
        return [(self.records[sample], [row]) for row, sample in enumerate(left)]

    def choose(self, record: Record, domain: Domain) -> Choice:
        """What the next step is to be made with."""
        if isinstance(self.rule, Schedule):
            return self.rule(len(record)).on(domain)
        return self.rule(record).on(domain)

    def probe(self, choice: Choice, domain: Domain) -> Choice:
        """What a choice is compared with."""
        if isinstance(self.rule, Controller):
            return self.rule.probe(choice).on(domain)
        if self.kind == "shift":
            return half_moved(choice, domain.ndim).on(domain)
        return next_coarser(choice, self.patches, domain.ndim).on(domain)

    def looks(self, record: Record) -> bool:
        """Whether the next step is compared with anything."""
        return not isinstance(self.rule, Controller) or not record or self.rule.looks(record)

    def held(self, made: Made, choice: Choice) -> float:
        """By what the error of an earlier step is to be multiplied for one of another patch."""
        known = self.calibration
        errors = known and [known.error_of(c.patch) for c in (choice, made.choice)]
        return errors[0] / errors[1] if errors and errors[0] and errors[1] else 1.0

    def redo(self, record: Record, attempt: Made, domain: Domain) -> Choice | None:
        """What the step is to be made with instead."""
        if isinstance(self.rule, Schedule):
            return None
        again = self.rule.redo(record, attempt)
        return None if again is None else again.on(domain)


class _Attempts:
    """The attempts at one step."""

    def __init__(self, steering: Steering, call: Call, window: Window, left: Sequence[int]):
        self.steering, self.call, self.window, self.left = steering, call, window, left
        self.known: list[dict[Choice, Tensor]] = [{} for _ in left]
        self.made: dict[int, Made] = {}
        self.parties = steering.parties(left)

    def run(self) -> Step:
        domain = self.window.domain
        choices = [self.steering.choose(record, domain) for record, _ in self.parties]
        self._solve({number: [choice] for number, choice in enumerate(choices)})
        pending = {}
        for number, (record, rows) in enumerate(self.parties):
            if self.steering.looks(record):
                pending[number] = choices[number]
            else:
                self._hold(rows, choices[number])
        for _ in range(MAX_TRIES):
            self._solve({number: [choice] for number, choice in pending.items()})
            probes = {n: self.steering.probe(choice, domain) for n, choice in pending.items()}
            self._solve({number: [probe] for number, probe in probes.items()})
            again = {}
            for number, choice in pending.items():
                redone = self._judge(number, choice, probes[number])
                if redone is not None:
                    again[number] = redone
            pending = again
            if not pending:
                break
        made = [self.made[row] for row in range(len(self.known))]
        frames = torch.stack([k[m.choice] for k, m in zip(self.known, made, strict=True)])
        differences = [self._difference(row, frame) for row, frame in enumerate(frames)]
        extra = [own.tokens - num_tokens(domain, own.choice) for own in made]
        return Step(frames, made, torch.stack(differences), sum(extra) / len(extra))

    def _hold(self, rows: Sequence[int], choice: Choice) -> None:
        """Note a step that is not compared, with the error of the one before it."""
        tokens = num_tokens(self.window.domain, choice)
        for row in rows:
            before = self.steering.records[self.left[row]][-1]
            ratio = self.steering.held(before, choice)
            fields = tuple(ratio * error for error in before.fields)
            self.made[row] = Made(choice, ratio * before.error, tokens, fields=fields)

    def _difference(self, row: int, frame: Tensor) -> Tensor:
        """From what a frame was compared with; that of the last comparison if it was not.

        Args:
            row: of the window.
            frame: `(C, *space)`.
        """
        sample, made = self.left[row], self.made[row]
        steering, probe = self.steering, self.steering.probe(made.choice, self.window.domain)
        if probe in self.known[row]:
            found = self.known[row][probe] - frame
        else:
            before = steering.records[sample][-1]
            earlier = steering.differences.get(sample, torch.zeros_like(frame))
            found = steering.held(before, made.choice) * earlier
        if isinstance(steering.rule, Controller):
            steering.differences[sample] = found
        return found

    def _judge(self, number: int, choice: Choice, probe: Choice) -> Choice | None:
        """Note an attempt of a party; what it is to be redone with, if at all."""
        record, rows = self.parties[number]
        domain, steering = self.window.domain, self.steering
        frame, other = (torch.stack([self.known[row][c] for row in rows]) for c in (choice, probe))
        kind = steering.kind or "patch"
        errors = disagreement(frame, other, choice, kind, domain, steering.calibration)
        tokens = sum(num_tokens(domain, known) for known in self.known[rows[0]])
        for row, fields in zip(rows, errors.tolist(), strict=True):
            before = self.made.get(row)
            refused = () if before is None else (
                *before.refused, (before.choice, before.error))  # fmt: skip
            mean = sum(fields) / len(fields)
            self.made[row] = Made(choice, mean, tokens, refused, tuple(fields))
        attempt = worst([self.made[row] for row in rows])
        again = steering.redo(record, attempt, domain)
        tried = {choice, *(refused for refused, _ in attempt.refused)}
        return None if again in tried else again

    def _solve(self, wanted: dict[int, list[Choice]]) -> None:
        """Make the frames of some parties that are not known yet, a call for each choice."""
        by_choice: dict[Choice, list[int]] = {}
        for number, choices in wanted.items():
            for choice in choices:
                rows = [row for row in self.parties[number][1] if choice not in self.known[row]]
                by_choice.setdefault(choice, []).extend(rows)
        for choice, rows in by_choice.items():
            if not rows:
                continue
            part = self.window
            if len(rows) < len(self.known):
                part = Window(self.window.fields[rows], self.window.domain)
            with memory(part, choice):
                frames = self.call(part, choice.patch, choice.shift)
            for row, frame in zip(rows, frames, strict=True):
                self.known[row][choice] = frame


def num_tokens(domain: Domain, choice: Choice) -> int:
    """Tokens of one frame of one sample."""
    return PatchGrid.lay(domain, choice.patch, choice.shift).num_tokens


@contextmanager
def memory(window: Window, choice: Choice) -> Iterator[None]:
    """Within it, too little memory is an error that says what it was for."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), "")
        if not isinstance(error, (MemoryError, torch.OutOfMemoryError)) and (
            "DefaultCPUAllocator" not in reason
        ):
            raise
        raise OvertoneError(
            f"a step at patch {choice.patch} of {len(window.fields)} samples on a grid of "
            f"{window.domain.shape} cells does not fit into memory; predict fewer samples at once, "
            f"or at a coarser patch ({reason})"
        ) from error
