"""The training loop: draw, predict, compare, update; validate, save, log; stop and go on.

All that an update does is a function of its number and the state before it, so a run that was
interrupted and resumed ends with the same weights as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from overtone.data import Items, WellFolder, collate_mixed
from overtone.errors import DataError, TrainingDiverged
from overtone.models.base import Model
from overtone.models.flops import call_flops
from overtone.schedules import Patch
from overtone.train.budget import Budget
from overtone.train.card import run_card
from overtone.train.checkpoint import Checkpoint, Checkpoints
from overtone.train.config import RunConfig
from overtone.train.console import Display
from overtone.train.draws import Share, Windows, seed_torch
from overtone.train.follow import Follower
from overtone.train.interrupt import Interrupt, ignore_interrupts
from overtone.train.journal import Log, Record, plain, to_beat
from overtone.train.objective import choices, losses
from overtone.train.parallel import DistributedModel, Ranks, whole
from overtone.train.recent import Recent
from overtone.train.state import (
    Average,
    RunProgress,
    learning_rate,
    make_optimizer,
    optimizer_steps,
    restore_progress,
    set_optimizer_steps,
    state_tensors,
)
from overtone.train.validate import Validation, Validator, place_name


@dataclass(frozen=True)
class Parts:
    """What a trainer works with.

    Attributes:
        model: on the device.
        data: windows of the training split, with `train.unroll` frames as target.
        validator: measures the model.
        flops: patch -> FLOPs of an update at it.
        folder: of the run; None if nothing is to be written.
        ranks: this process among all.
        source: split -> what is kept of it, to know it again at a resume.
    """

    model: Model
    data: Items
    validator: Validator
    flops: dict[Patch, int]
    folder: Path | None
    ranks: Ranks
    source: Mapping[str, Any] = field(default_factory=dict)


Callback = Callable[[Record], Any]
"""Told of each validation, as plain data; what is true of its answer stops the run."""


class Trainer:
    """A run in progress.

    Args:
        config: all of the run's settings.
        parts: what it works with.
        resume: where to go on; the model has its weights already.
        callbacks: called on the first rank after each validation.
        follower: has the run drawn, on the first rank.

    Attributes:
        progress: how far it is.
        best: the best weights so far, where there is no folder to keep them in.
    """

    def __init__(
        self,
        config: RunConfig,
        parts: Parts,
        resume: Checkpoint | None = None,
        callbacks: Sequence[Callback] = (),
        follower: Follower | None = None,
    ):
        self.config, self.parts, self.callbacks = config, parts, tuple(callbacks)
        self.follower = follower or Follower(None, None)
        self.budget = Budget(config)
        self.best: dict[str, Tensor] | None = None
        train, ranks = config.train, parts.ranks
        self.model = parts.model.train()
        self.distributed = DistributedModel(
            self.model, config.parallel, ranks, compile=train.compile
        )
        self.optimizer = make_optimizer(self.model, config.optimizer)
        decay = config.optimizer.ema
        self.average = None if decay is None else Average(self.model, decay)
        self.scaler = torch.amp.GradScaler(ranks.device.type, enabled=train.precision == "fp16")
        self.progress = RunProgress(patches={str(patch): 0 for patch in self.model.patches})
        self.checkpoints: Checkpoints | None = None
        if parts.folder is not None:
            self.checkpoints = Checkpoints(parts.folder, ranks, keep=config.save.keep)
        if resume is not None:
            self._restore(resume)
        self._began = replace(self.progress, patches=dict(self.progress.patches))
        self._validating = 0.0
        self._stopped = False
        # The optimizer's step comes after all ranks have agreed on the time: it is booked later.
        self._unbooked = np.zeros(2)
        share = Share(train.batch, train.accumulate, ranks.rank, ranks.world)
        self.windows = Windows(
            len(parts.data),
            share,
            seed=train.seed,
            start=self.progress.update,
            stop=config.num_updates,
        )

    @property
    def done(self) -> float:
        """Share of the budget that is used, 0 to 1."""
        return self.budget.done(self.progress)

    def run(self, log: Log, display: Display) -> str:
        """Train until the budget is used, patience ends or somebody stops or interrupts it.

        Args:
            log: takes the run's numbers, on the first rank.
            display: shows them.

        Returns:
            `"finished"`, `"stopped early"` or `"interrupted"`.
        """
        config, progress = self.config, self.progress
        batches = iter(self._loader())
        recent = Recent([str(patch) for patch in self.model.patches])
        with Interrupt() as interrupt:
            while self.done < 1:
                before = self.done
                self._update(batches, recent, interrupt)
                if progress.update % config.log.every == 0 or self.done >= 1:
                    self._log(log, display, recent)
                validated = self.budget.validates(before, progress)
                if validated:
                    self._validate(log, display)
                patience = config.valid.patience
                stale = self._stopped or (patience is not None and progress.stale >= patience)
                at_point = validated and config.valid.points is not None
                due = progress.update % config.save.every == 0 or at_point
                if due or interrupt.agreed or stale:
                    self.save()
                if interrupt.agreed and self.done < 1:
                    return "interrupted"
                if stale:
                    return "stopped early"
        self.save()
        return "finished"

    def _loader(self) -> DataLoader[Any]:
        data: Any = self.parts.data
        return DataLoader(
            data,
            batch_sampler=self.windows,
            num_workers=self.config.data.workers,
            collate_fn=collate_mixed,
            pin_memory=self.parts.ranks.device.type == "cuda",
            worker_init_fn=ignore_interrupts,
        )

    def _update(self, batches: Iterator[Any], recent: Recent, interrupt: Interrupt) -> None:
        began = _clocks() - self._unbooked
        progress, train = self.progress, self.config.train
        done, ndim = self.done, self.model.domain.ndim
        rate = learning_rate(self.config.optimizer, done)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        chosen = choices(train, self.model.patches, ndim, progress.update, done)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._backward(batches, chosen, recent)
        norm = self._gradient_norm()
        failed = not (math.isfinite(loss) and (math.isfinite(norm) or self._may_skip()))
        agreed = _clocks()
        spent = np.array([progress.seconds, progress.cpu_seconds]) + agreed - began
        flags = [float(failed), float(interrupt.requested), *spent]
        failed_anywhere, stop, *spent = self.parts.ranks.largest(flags)
        progress.seconds, progress.cpu_seconds = map(float, spent)
        interrupt.agreed = bool(stop)
        if failed_anywhere:
            self._refuse(loss, norm, failed)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        progress.update += 1
        if self.average is not None:
            self.average.follow(progress.update)
        for patch, _ in chosen:
            progress.flops += self.parts.flops[patch]
            progress.patches[str(patch)] += 1
        recent.add(loss, norm, rate, str(chosen[-1][0]))
        self._unbooked = _clocks() - agreed

    def _backward(
        self, batches: Iterator[Any], chosen: list[tuple[Patch, tuple[int, ...]]], recent: Recent
    ) -> float:
        """Gradients of all parts of this rank's share; returns its mean loss."""
        train, device = self.config.train, self.parts.ranks.device
        total = torch.zeros((), device=device)
        for turn in range(train.accumulate):
            began = time.monotonic()
            window, target = next(batches)
            recent.waited += time.monotonic() - began
            window = window.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            seed_torch(train.seed, self.progress.update, self.windows.share.part(turn))
            predict, causal = self.distributed.predict, self.model.causal
            steps = losses(predict, window, target, chosen, train, causal=causal)
            for step in range(len(chosen)):
                last = (turn, step) == (train.accumulate - 1, len(chosen) - 1)
                with self.distributed.gradients(last=last):
                    loss = next(steps) / (train.accumulate * len(chosen))
                    self.scaler.scale(loss).backward()
                total += loss.detach()
        return total.item()

    def _gradient_norm(self) -> float:
        """Norm of the gradient over all ranks, before it is clipped."""
        self.scaler.unscale_(self.optimizer)
        parameters = list(self.model.parameters())
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        if self.config.optimizer.clip is not None:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.config.optimizer.clip, norm)
        return whole(norm).item()

    def _may_skip(self) -> bool:
        """Whether a non-finite gradient is fp16's overflow, which the scaler deals with."""
        return self.scaler.is_enabled() and self.scaler.get_scale() > 1.0

    def _refuse(self, loss: float, norm: float, failed: bool) -> None:
        """Stop on all ranks; name the batches of those that failed.

        Gradients are averaged over the ranks, so one that is not finite is so everywhere: where
        there are losses that are not finite, theirs are the batches to name.
        """
        update, data = self.progress.update, self.parts.data
        text, lost = "", not math.isfinite(loss)
        if self.parts.ranks.largest([float(lost)])[0]:
            failed = lost
        if failed:
            turns = range(self.config.train.accumulate)
            indices = [i for turn in turns for i in self.windows.indices(update, turn)]
            names = ", ".join(place_name(data, index) for index in indices)
            text = f"loss {loss:g}, gradient norm {norm:g} with {names}"
        reports = [report for report in self.parts.ranks.gather(text) if report]
        found = self.checkpoints.newest()[0] if self.checkpoints else None
        kept = f"'{found.path.name}' is kept" if found else "none was written yet"
        raise TrainingDiverged(
            f"update {update + 1} is not finite: {'; '.join(reports)}. Nothing was changed by it; "
            f"of the checkpoints {kept}. Look at that data with `overtone data check`, or use a "
            "lower optimizer.lr or a smaller optimizer.clip and --resume"
        )

    def _log(self, log: Log, display: Display, recent: Recent) -> None:
        values = recent.values(self.progress, self.parts.ranks)
        log("train", self.progress.update, values)
        text = (
            f"loss {values['loss']:.4g}  lr {values['lr']:.2g}  patch {values['patch']}  "
            f"{values['updates_per_second']:.3g} updates/s"
        )
        left = self.budget.seconds_left(self.progress, self._began, self._validating)
        display.show(self.done, self.budget.used(self.progress), text, left=left)
        recent.reset()

    def _validate(self, log: Log, display: Display) -> None:
        try:
            with nullcontext() if self.average is None else self.average.in_place():
                self._judge(log, display)
        except DataError:  # on all ranks; the training up to here was none the worse for it
            self.save()
            raise

    def _judge(self, log: Log, display: Display) -> None:
        """Measure the weights in place, and keep them if they are the best so far.

        Weights that blow up are never the best, but are kept as long as there are no others.
        """
        began = time.monotonic()
        found = self.parts.validator(self.model)
        progress = self.progress
        best = math.inf if progress.best is None else progress.best
        better = found.score < best
        if better:
            progress.best, progress.best_update, progress.stale = found.score, progress.update, 0
        else:
            progress.stale += 1
        if better or progress.best is None:
            self._keep("best", found)
        if self.done >= 1:
            self._keep("last", found)
        self._validating = time.monotonic() - began
        values = {
            "vrmse": found.vrmse,
            "rollout": found.rollout,
            "rollout_steps": self.config.valid.rollout_steps,
            "yardsticks": found.yardsticks,
            "patches": progress.patches,
            "validation_seconds": self._validating,
        }
        log("valid", progress.update, values)
        errors = "  ".join(f"{patch}: {error:.4f}" for patch, error in found.vrmse.items())
        cycle = "" if found.rollout is None else f"  cycle: {found.rollout:.4f}"
        mark = "  best" if better else ""  # three patches fit into 80 columns
        display.say(f"update {progress.update}  valid VRMSE  {errors}{cycle}{mark}")
        if math.isinf(best) and found.yardsticks:  # they stay as they are from now on
            display.say(f"to beat  {to_beat(found.yardsticks)}")
        if said := self.follower.validated(found.glimpse):
            display.say(said)
        self._tell(values | {"score": found.score, "better": better})

    def _tell(self, values: Record) -> None:
        """Let the callbacks of the first rank know, and all ranks whether they want to go on."""
        progress = self.progress
        record = {
            "update": progress.update,
            "minutes": progress.seconds / 60,
            "done": self.done,
            "best": progress.best,
            **values,
        }
        own = self.callbacks if self.parts.ranks.first else ()
        wishes = [bool(callback(plain(record))) for callback in own]
        self._stopped = bool(self.parts.ranks.largest([float(any(wishes))])[0])

    def _keep(self, name: str, found: Validation) -> None:
        """Keep the weights in place, as a model folder if the run has one. All ranks must call."""
        weights = self.distributed.full_weights()
        if self.parts.folder is None:
            if name == "best":
                self.best = {key: tensor.clone() for key, tensor in weights.items()}
        elif self.parts.ranks.first:
            valid = {"vrmse": found.vrmse, "rollout": found.rollout}
            valid |= {"intervals": {key: list(spread) for key, spread in found.spreads.items()}}
            # Whatever the user put beside the best weights stays with the next best.
            path, about = self.parts.folder / name, self._about(valid)
            card = run_card(
                self.parts.folder.name, self.config, self.model, about, found, **self._origin()
            )
            self.model.save(path, weights=weights, training=about, card=card, carry=True)

    def _origin(self) -> dict[str, Any]:
        """What a card says of the data and the machine; no folder of this one."""
        data, ranks = self.parts.data, self.parts.ranks
        return {
            "dataset": data.layouts[0].dataset_name if isinstance(data, WellFolder) else "",
            "source": self.parts.source,
            "where": f"{ranks.world} x {ranks.device.type}",
        }

    def _about(self, valid: dict[str, Any]) -> dict[str, Any]:
        """How the weights came to be, for the model's folder."""
        progress = self.progress
        about = {
            "recipe": self.config.recipe,
            "seed": self.config.train.seed,
            "lr": self.config.optimizer.lr,
            "data": {"stride": self.config.data.stride, "coarsen": self.config.data.coarsen},
            "updates": progress.update,
            "minutes": round(progress.seconds / 60, 3),
            "cpu_minutes": round(progress.cpu_seconds / 60, 3),
            "flops": progress.flops,
            "patches": dict(progress.patches),
            "validation": valid,
        }
        return plain(about)

    def save(self) -> None:
        """Write a checkpoint, if the run has a folder. All ranks must call it."""
        if self.checkpoints is None:
            return
        weights = self.distributed.full_weights()
        state = plain(
            {
                **self.progress.to_dict(),
                "optimizer_steps": optimizer_steps(self.optimizer),
                "scaler": self.scaler.state_dict(),
                "ranks": self.parts.ranks.world,
                "data": dict(self.parts.source),
            }
        )

        def save_model(path: Path) -> None:
            self.model.save(path, weights=weights, training=self._about({}))

        self.checkpoints.save(
            self.progress.update,
            save_model,
            self._tensors(),
            state,
            sharded=self.distributed.sharded,
        )

    def _tensors(self) -> dict[str, Tensor]:
        return state_tensors(self.model, self.optimizer, self.average, self.config.optimizer)

    def _restore(self, checkpoint: Checkpoint) -> None:
        checkpoint.load_tensors(self._tensors(), sharded=self.distributed.sharded)
        set_optimizer_steps(self.optimizer, checkpoint.state["optimizer_steps"])
        if self.scaler.is_enabled() and checkpoint.state["scaler"]:
            self.scaler.load_state_dict(dict(checkpoint.state["scaler"]))
        self.progress = restore_progress(checkpoint.state)


def _clocks() -> np.ndarray:
    """Seconds on the wall's clock and on this process's, each from some beginning."""
    return np.array([time.monotonic(), time.process_time()])


def update_flops(model: Model, config: RunConfig) -> dict[Patch, int]:
    """FLOPs of an update of the whole batch, for each patch."""
    options = {"frames": model.context, "batch": config.train.batch, "training": True}
    return {patch: call_flops(model, model.domain, patch, **options) for patch in model.patches}
