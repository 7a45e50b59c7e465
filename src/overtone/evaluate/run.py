"""The evaluation as a whole: models x data x schedules -> `Results` and `Samples`.

Small models keep one core busy and gain little from a second. So several workers
roll out side by side, with one thread of torch each, which is sooner done than one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar, Unpack, cast

import torch
from torch import Tensor

from overtone.baselines.untrained import yardsticks
from overtone.domain import Domain
from overtone.evaluate.candidates import (
    Candidate,
    Evaluable,
    Note,
    as_candidates,
    choose_schedules,
)
from overtone.evaluate.next_step import next_steps, num_batches
from overtone.evaluate.results import Data, ModelResult, NextStep, Results, Run
from overtone.evaluate.rollouts import roll_out, sample_steps
from overtone.evaluate.samples import Samples
from overtone.evaluate.trajectories import Reading, Trajectories
from overtone.files import fingerprint
from overtone.guard.names import shown_lines
from overtone.metrics.pointwise import epsilon_share
from overtone.progress import Tick
from overtone.rollout import Rule
from overtone.schedules import Constant, Patch
from overtone.version import machine


class Evaluation(NamedTuple):
    """What `evaluate` returns.

    Attributes:
        results: all numbers.
        samples: frames of the first trajectory.
    """

    results: Results
    samples: Samples

    def __repr__(self) -> str:
        """The errors of all rollouts, a line for each."""
        data = self.results.data
        lines = [f"VRMSE over 10 and over all {self.results.steps} steps, {data.name} {data.split}"]
        for model in self.results.models:
            for run in model.runs:
                errors = f"{run.vrmse_10.value:.4f}  {run.vrmse_all.value:.4f}"
                lines.append(f"{model.name}  {run.schedule}  {errors}")
        return shown_lines("\n".join(lines))


def evaluate(
    models: Evaluable | Mapping[str, Evaluable] | Sequence[Candidate],
    data: str | Path,
    *,
    schedules: Sequence[Rule | str] | None = None,
    steps: int = 40,
    batch: int = 4,
    windows: int = 64,
    seed: int = 0,
    device: str = "cpu",
    workers: int = 1,
    command: str = "",
    progress: Tick | None = None,
    note: Note | None = None,
    **reading: Unpack[Reading],
) -> Evaluation:
    """Evaluate models on a split of a dataset, and what needs no training beside them.

    Args:
        models: one, or several by name, or as candidates, which also tell about their training.
        data: as for `WellFolder`.
        schedules: of the rollouts, or controllers; for each model those that it can follow are
            taken. None for the usual ones: each of its patches, their cycle, and the cycle with
            shifts.
        steps: length of the rollouts.
        batch: trajectories that are predicted at once; the results do not depend on it.
        windows: next-step predictions for each patch, spread over all trajectories.
        seed: of the bootstrap.
        device: where to compute.
        workers: rollouts at once, one core of the CPU each; the results do not depend on it. With
            1, torch's own threads share every operation.
        command: what the results say how they were made.
        progress: called as the work goes on.
        note: told what is left out.
        reading: split, start, trajectories, stride, coarsen; see `Reading`.

    Returns:
        The numbers, and frames of the first trajectory.
    """
    candidates = as_candidates(models)
    context = max(candidate.model.context for candidate in candidates)
    truth = Trajectories(data, candidates[0].model.domain.fields, context, reading)
    try:
        truth.require_steps(steps)
        note = note or (lambda _: None)
        _compare_grids(candidates, truth, note)
        true_frames = _sample_frames(truth, steps)
        _compare_epsilon(true_frames, truth.domain, note)
        work = _Work(truth, steps, batch, windows, seed, device, progress)
        plans = [choose_schedules(c, schedules, truth.domain, steps, note) for c in candidates]
        work.expect(plans)
        data_part = _describe(truth, work)
        bare = work.measure_yardsticks(workers)
        results: list[ModelResult] = []
        predictions: dict[tuple[str, str], Tensor] = {}
        measured = work.measure(candidates, plans, workers)
        for candidate, (singles, *runs) in zip(candidates, measured, strict=True):
            results.append(_result(candidate, singles, [run for run, *_ in runs]))
            for run, frames, _ in runs:
                # Of models that differ in their seed alone the first is drawn.
                predictions.setdefault((candidate.name, run.schedule), frames)
        samples = Samples(truth.domain, sample_steps(steps), true_frames, predictions)
    finally:
        truth.close()
    content = Results(
        command=command,
        seed=seed,
        machine=machine(),
        data=data_part,
        steps=steps,
        models=tuple(results),
        yardsticks=tuple(bare),
    )
    return Evaluation(content, samples)


@dataclass
class _Work:
    """What all measurements share, and how far they are."""

    truth: Trajectories
    steps: int
    batch: int
    windows: int
    seed: int
    device: str
    progress: Tick | None
    done: int = 0
    total: int = 0
    to_beat: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    stopped: bool = False
    lock: Any = field(default_factory=Lock)

    def expect(self, plans: Sequence[tuple[Rule, ...]]) -> None:
        """Count the work of all plans; yardsticks have one each."""
        rollouts = sum(1 for _ in self.truth.batches(self.batch)) * self.steps
        singles = num_batches(self.truth, self.windows, self.batch)
        counts = [len(plan) for plan in plans] + [1] * len(self._bare)
        self.total = sum(singles + count * rollouts for count in counts)

    @property
    def _bare(self) -> list[Candidate]:
        """What needs no training, as far as there are frames before the first prediction."""
        found = yardsticks(self.truth.domain, self.truth.first)
        return [Candidate(model.name, model) for model in found]

    def tell(self, what: str, work: int = 0) -> None:
        """Report that some more is done."""
        if self.stopped:
            raise InterruptedError("another part of the evaluation failed")
        with self.lock:
            self.done += work
            if self.progress:
                self.progress(self.done, self.total, what)

    def stop(self) -> None:
        """Make all parts that are under way give up."""
        self.stopped = True

    def measure_yardsticks(self, workers: int) -> list[ModelResult]:
        """What needs no training; its errors are kept, and all that follows is compared with it."""
        candidates = self._bare
        results: list[ModelResult] = []
        plans: list[tuple[Rule, ...]] = [(Constant(1),)] * len(candidates)
        measured = self.measure(candidates, plans, workers)
        for candidate, (singles, (run, _, errors)) in zip(candidates, measured, strict=True):
            self.to_beat[candidate.name] = errors
            results.append(_result(candidate, singles, [run]))
        return results

    def measure(
        self, candidates: Sequence[Candidate], plans: Sequence[tuple[Rule, ...]], workers: int
    ) -> list[list[Any]]:
        """For each candidate its next steps, and then what `roll_out` gives for each schedule."""
        options: dict[str, Any] = {"batch": self.batch, "seed": self.seed, "device": self.device}
        used = [patch for candidate, plan in zip(candidates, plans, strict=True) for s in plan
                for patch in candidate.patches_of(s, self.steps)]  # fmt: skip
        of_all: dict[str, Any] = {
            "patches": tuple(dict.fromkeys(used)),
            "yardsticks": dict(self.to_beat),
        }

        def one(part: tuple[Candidate, Rule | tuple[Patch, ...]]) -> Any:
            candidate, task = part
            single = isinstance(task, tuple)
            what = f"{candidate.name}: {'next step' if single else task}"
            shared: dict[str, Any] = options | {"tick": lambda: self.tell(what, 1)}
            if single:
                shared |= {"patches": task, "windows": self.windows}
                return next_steps(candidate, self.truth, **shared)
            return roll_out(candidate, task, self.truth, steps=self.steps, **shared, **of_all)

        for candidate in candidates:
            candidate.prepare(self.device)
        parts = [
            [(candidate, task) for task in (self._single(candidate, plan), *plan)]
            for candidate, plan in zip(candidates, plans, strict=True)
        ]
        if workers == 1:
            return [[one(part) for part in row] for row in parts]
        for candidate, plan in zip(candidates, plans, strict=True):
            for patch in self._single(candidate, plan):
                candidate.flops(self.truth.domain, patch)  # counting hooks into all threads
        flat = [(candidate.twin(), task) for row in parts for candidate, task in row]
        found = iter(on_cores(one, flat, workers=workers, stop=self.stop))
        return [[next(found) for _ in row] for row in parts]

    def _single(self, candidate: Candidate, plan: Sequence[Rule]) -> tuple[Patch, ...]:
        """The patches of single steps: all that the model knows, and what it is asked for."""
        asked = [patch for rule in plan for patch in candidate.patches_of(rule, self.steps)]
        untrained = {candidate.sizes(p): p for p in asked if not candidate.knows(p)}
        return (*candidate.model.patches, *untrained.values())


def _result(
    candidate: Candidate, singles: tuple[NextStep, ...], runs: Sequence[Run]
) -> ModelResult:
    return ModelResult(
        name=candidate.name,
        seed=candidate.seed,
        num_parameters=candidate.model.num_parameters,
        config=candidate.config,
        training=dict(candidate.training),
        next_step=singles,
        runs=tuple(runs),
    )


def _compare_grids(candidates: Sequence[Candidate], truth: Trajectories, note: Note) -> None:
    """Models take other grids than their own, but whoever asks should know."""
    for candidate in candidates:
        own = candidate.model.domain.shape
        if own != truth.domain.shape:
            note(
                f"model '{candidate.name}' was trained on {own} cells, the data has "
                f"{truth.domain.shape}; --coarsen averages cells"
            )


def _describe(truth: Trajectories, work: _Work) -> Data:
    work.tell("fingerprint of the data")
    return Data(
        name=truth.name,
        split=truth.folder.split,
        fingerprint=fingerprint(truth.folder.files),
        trajectories=len(truth),
        start=truth.start,
        domain=truth.folder.domain.to_dict(),  # of all trajectories; they may differ in dt
    )


def _sample_frames(truth: Trajectories, steps: int) -> Tensor:
    """Frames of the first trajectory at `sample_steps`, `(S, C, *space)`."""
    return torch.cat([truth.frame([0], truth.first + step - 1) for step in sample_steps(steps)])


MOST_EPSILON = 0.01
"""Share of a field's variance from which on the eps in VRMSE is worth a word."""


def _compare_epsilon(frames: Tensor, domain: Domain, note: Note) -> None:
    """VRMSE divides by variance + eps; whoever reads it should know where eps counts.

    Args:
        frames: true ones `(S, C, *space)`.
        domain: what they lie on.
        note: told about each field of which eps is more than `MOST_EPSILON` in the median frame.
    """
    median: Tensor = epsilon_share(frames, ndim=domain.ndim).median(dim=0)[0]
    shares = cast("list[float]", median.tolist())  # pyright: ignore[reportUnknownMemberType]
    for name, share in zip(domain.fields, shares, strict=True):
        if share > MOST_EPSILON:
            size = "it is constant" if math.isinf(share) else f"eps is {share:.2g} of its variance"
            note(
                f"field '{name}' hardly varies ({size}): its VRMSE, sqrt(MSE / (variance + eps)), "
                "is smaller than without The Well's eps and says little; look at other fields"
            )


Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def one_core() -> Generator[None]:
    """Within it each thread of Python computes on one core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def on_cores(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int,
    stop: Callable[[], None],
) -> list[Result]:
    """`work` of every item, in their order.

    Args:
        work: called in threads, so it must not change what it shares with other items.
        items: taken in order.
        workers: items at once.
        stop: called when one failed or the user interrupts, so that the others give up.
    """
    with one_core(), ThreadPoolExecutor(workers) as pool:
        try:
            return list(pool.map(work, items))
        except BaseException:
            stop()
            pool.shutdown(cancel_futures=True)
            raise
