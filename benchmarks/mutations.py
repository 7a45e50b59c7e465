"""Which planted bugs the tests notice.

Each mutation below changes one line of the project, in a scratch copy of it, into a bug that
somebody might write. The tests that should notice run there, until one of them fails; if none does,
a bug of this kind could live in the project. Before that the tests must pass without any bug. Run
it with

    python benchmarks/mutations.py [NAME ...] [--list] [--out results/mutations.json]

Names, or beginnings of names such as `train`, choose some; those are not written unless `--out` is
given.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from overtone.version import machine

ROOT = Path(__file__).parents[1]
COPIED = ("src", "studies", "tests", "docs", "examples")
"""What a scratch copy has of its own; all else is a link."""
LIMIT = 600
"""Seconds that the tests of one mutation may take: a bug that makes them hang is noticed."""


@dataclass(frozen=True)
class Mutation:
    """One line, and what is wrong with it.

    Attributes:
        name: room and bug.
        file: which is changed.
        old: a text that the file has exactly once.
        new: what stands there instead.
        tests: files below `tests`, or single tests of slow ones, that should notice.
    """

    name: str
    file: Path
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation.

    Attributes:
        noticed: whether a test failed.
        by: the first that did, or what else happened.
        seconds: that it took.
    """

    noticed: bool
    by: str
    seconds: float


PACKAGE, STUDIES = Path("src/overtone"), Path("studies")
ROLLOUT, VIEWER = PACKAGE / "rollout", PACKAGE / "viewer"
MODELS, TRAIN, ARTIFACTS = PACKAGE / "models", PACKAGE / "train", PACKAGE / "metrics/artifacts"
EXPORT, DOCS = PACKAGE / "export", Path("docs/builder")
ARCHITECTURE = ("models/test_architecture.py",)
BY_LOOPS = ("models/test_emulator.py::test_a_folded_model_by_loops",)
NEAR_PERSISTENCE = ("models/test_emulator.py::test_an_untrained_model_is_near_persistence",)
TRANSFORMER = ("models/processors/test_transformer.py",)
TOKENIZERS = ("models/tokenizers/test_modulation.py",)
UNROLLED = ("train/test_loop.py::test_every_unrolled_step_is_counted",)
BUDGETS = ("train/test_loop.py::test_the_first_budget_that_is_used_up_ends_a_run",)

# fmt: off
MUTATIONS = (
    # Errors without truth, controllers and plans.
    Mutation(
        "controllers: a step beyond the tolerance is kept", ROLLOUT / "adaptive.py",
        "attempt.error <= self.tolerance or level == 0",
        "attempt.error <= 2 * self.tolerance or level == 0", ("rollout/test_adaptive.py",)),
    Mutation(
        "controllers: a budget without what was refused", ROLLOUT / "adaptive.py",
        "before = sum(made.tokens for made in record) + spent",
        "before = sum(made.tokens for made in record)", ("rollout/test_adaptive.py",)),
    Mutation(
        "controllers: coarser after one good step", ROLLOUT / "adaptive.py",
        "steady = len(recent) == self.patience and", "steady = len(recent) > 0 and",
        ("rollout/test_adaptive.py",)),
    Mutation(
        "controllers: coarser without room to spare", ROLLOUT / "sparing.py",
        "(self.coarsen if level > before else 1.0)", "1.0", ("rollout/test_sparing.py",)),
    Mutation(
        "controllers: a level from before the last look", ROLLOUT / "sparing.py",
        "look + 1 - self.every, 0) : look + 1]", "look - self.every, 0) : look]",
        ("rollout/test_sparing.py",)),
    Mutation(
        "controllers: a held error scaled the wrong way", ROLLOUT / "steering.py",
        "return errors[0] / errors[1]", "return errors[1] / errors[0]",
        ("rollout/test_sparing.py",)),
    Mutation(
        "estimates: steps are summed, not their squares", ROLLOUT / "estimates.py",
        "self._sum = self._sum + whole.square()", "self._sum = self._sum + whole",
        ("rollout/test_estimates.py",)),
    Mutation(
        "estimates: a grid moved by a quarter", ROLLOUT / "estimates.py",
        "(s + p // 2) % p", "(s + p // 4) % p", ("rollout/test_estimates.py",)),
    Mutation(
        "estimates: the other answer is the reference", ROLLOUT / "estimates.py",
        "found = distance(other, frame, domain.ndim)",
        "found = distance(frame, other, domain.ndim)", ("rollout/test_estimates.py",)),
    Mutation(
        "calibration: an interval as if n were n + 1", MODELS / "calibration.py",
        "(count + 1) * (1 - level) / 2", "count * (1 - level) / 2",
        ("models/test_calibration.py",)),
    Mutation(
        "calibration: the upper bound one rank too low", MODELS / "calibration.py",
        "ranked[count - place]", "ranked[count - place - 1]", ("models/test_calibration.py",)),
    Mutation(
        "calibration: any fields on the same grid", MODELS / "calibration.py",
        "(self.shape, self.fields) == (domain.shape, domain.fields)",
        "self.shape == domain.shape", ("models/test_calibration.py",)),
    Mutation(
        "plan: chosen with the trajectory that is left out", PACKAGE / "assess/search.py",
        "others = [i for i in range(num) if i != out]", "others = [*range(num)]",
        ("assess/test_search.py",)),
    Mutation(
        "plan: an error that is reached by half of all draws", PACKAGE / "assess/plan.py",
        "errors.mean(dim=1) + spread <= self.target", "errors.mean(dim=1) <= self.target",
        ("assess/test_plan.py",)),
    Mutation(
        "plan: beginnings are judged by their first step", PACKAGE / "assess/search_beam.py",
        "left * self.errors[:, -1]", "left * self.errors[:, 0]", ("assess/test_search_beam.py",)),
    Mutation(
        "evaluate: the error that is told against an earlier truth",
        PACKAGE / "evaluate/rollouts.py", "truth.first + step)", "truth.first + step - 1)",
        ("evaluate/test_rollouts.py",)),
    Mutation(
        "studies: the least gain per token first", STUDIES / "instrument.py",
        "sorted(gains, reverse=True)", "sorted(gains)", ("studies/test_instrument.py",)),
    # What nobody noticed once.
    Mutation(
        "models: an untrained model far from persistence", MODELS / "tokenizers/convolution.py",
        "OUTPUT_GAIN = 0.1", "OUTPUT_GAIN = 1.0", NEAR_PERSISTENCE),
    Mutation(
        "models: frequencies in time inverted", MODELS / "processors/rope.py",
        "SLOWEST_FRAME**-exponents", "SLOWEST_FRAME**exponents",
        ("models/processors/test_rope.py",)),
    Mutation(
        "models: axial attention summed over axes", MODELS / "processors/attention.py",
        "torch.stack(parts).mean(dim=0)", "torch.stack(parts).sum(dim=0)", TRANSFORMER),
    Mutation(
        "models: drop path the same at every depth", MODELS / "processors/transformer.py",
        "drop_path=drop_path * i / max(num_blocks - 1, 1)", "drop_path=drop_path", TRANSFORMER),
    Mutation(
        "models: drop path on time attention alone", MODELS / "processors/transformer.py",
        "self.drop_path(mixed + self.mlp(y))", "mixed + self.mlp(y)", TRANSFORMER),
    Mutation(
        "models: CKM's encoder interpolates", MODELS / "tokenizers/modulation.py",
        'PI-resized to the stride."""\n        return pi_resize(',
        'PI-resized to the stride."""\n        return interpolate(', TOKENIZERS),
    Mutation(
        "ops: PI-resize is bilinear", PACKAGE / "ops/resize.py",
        'def pi_resize(\n    weight: Tensor, size: int | Sequence[int], *, mode: str = "bicubic"',
        'def pi_resize(\n    weight: Tensor, size: int | Sequence[int], *, mode: str = "bilinear"',
        ("ops/test_resize.py",)),
    Mutation(
        "schedules: stratified shifts alike on all axes", PACKAGE / "schedules" / "kinds.py",
        "_permutation(size, self.seed, axis, use // size)",
        "_permutation(size, self.seed, 0, use // size)", ("schedules/test_kinds.py",)),
    Mutation(
        "schedules: random shifts alike on all axes", PACKAGE / "schedules" / "kinds.py",
        '"shift", self.seed, step, axis)', '"shift", self.seed, step)',
        ("schedules/test_kinds.py",)),
    Mutation(
        "rollout: a bound without the absolute value", PACKAGE / "rollout" / "loop.py",
        "good = (frame.abs().flatten(2)", "good = (frame.flatten(2)", ("rollout/test_loop.py",)),
    Mutation(
        "rollout: limits without the absolute value", PACKAGE / "rollout" / "loop.py",
        "own = fields.abs().amax(", "own = fields.amax(", ("rollout/test_loop.py",)),
    Mutation(
        "metrics: no correction for several looks", ARTIFACTS / "harmonics.py",
        "(max(len(lattice.looks), 1) * upper_tail(z))", "(upper_tail(z))",
        ("metrics/artifacts/test_harmonics.py",)),
    Mutation(
        "solvers: the Prandtl number on the wrong side", PACKAGE / "solvers/rayleigh_benard.py",
        "(self.rayleigh / self.prandtl) ** -0.5", "(self.rayleigh * self.prandtl) ** -0.5",
        ("solvers/test_rayleigh_benard.py",)),
    Mutation(
        "data: changes between blocks from their first frame", PACKAGE / "data/stats.py",
        "block.values[:, -1:], block.trajectory", "block.values[:, :1], block.trajectory",
        ("data/test_stats.py",)),
    Mutation(
        "data: the extent of an axis from 0", PACKAGE / "data/layout.py",
        "abs(x[-1] - x[0] + (steps[0] + steps[-1]) / 2)", "abs(x[-1] + steps[-1] / 2)",
        ("data/test_layout.py",)),
    Mutation(
        "data: a file may unpack to anything", PACKAGE / "data/safety.py",
        "allowed = stored * MAX_RATIO if compressed", "allowed = declared if compressed",
        ("data/test_safety.py",)),
    Mutation(
        "data: honest compression refused", PACKAGE / "data/safety.py",
        "MAX_RATIO = 2_000", "MAX_RATIO = 200", ("data/test_safety.py",)),
    Mutation(
        "data: the writer keeps the caller's frame", PACKAGE / "data/writer.py",
        "self._waiting.append(np.array(values,", "self._waiting.append(np.asarray(values,",
        ("data/test_writer.py",)),
    Mutation(
        "train: unrolled steps share a shift", TRAIN / "objective.py",
        "draw_shift(config.seed, update, step, sizes,", "draw_shift(config.seed, update, 0, sizes,",
        ("train/test_objective.py",)),
    Mutation(
        "train: a half-removed checkpoint looks complete", TRAIN / "checkpoint.py",
        "(path / MARKER).unlink()", "(path / MARKER)", ("train/test_checkpoint.py",)),
    Mutation(
        "flexify: a bias table runs out at the window's end", PACKAGE / "flexify/positions.py",
        "wanted = wanted.clamp(1 - old, old - 1)", "wanted = wanted.clamp(-old, old)",
        ("flexify/test_positions.py",)),
    Mutation(
        "evaluate: parameters of others after a blow-up", PACKAGE / "evaluate/predictions.py",
        "rows = [self.rows[place] for place in places]", "rows = self.rows[: len(places)]",
        ("evaluate/test_predictions.py",)),

    # Time that is folded, and details that pass tokens by.
    Mutation(
        "models: folded channels field by field", MODELS / "emulator.py",
        "normalised.flatten(1, 2).unsqueeze(1), True",
        "normalised.transpose(1, 2).flatten(1, 2).unsqueeze(1), True", BY_LOOPS),
    Mutation(
        "models: folded frames normalised by their own past", MODELS / "emulator.py",
        "self.measure(window.fields, causal=self.causal)",
        "self.measure(window.fields, causal=True)",
        BY_LOOPS),
    Mutation(
        "models: folded models with time attention", MODELS / "emulator.py",
        "context=a.attended,", "context=a.context,", BY_LOOPS),
    Mutation(
        "models: narrow stages for folded frames", MODELS / "architecture.py",
        '(8 if time == "fold" else 3)', '(3 if time == "fold" else 8)',
        ARCHITECTURE),
    Mutation(
        "models: the weights of folded frames not counted", MODELS / "architecture.py",
        "for frames in (self.folded, 1)", "for frames in (1, 1)", ARCHITECTURE),
    Mutation(
        "models: folders of older versions are folded", MODELS / "compat.py",
        '"time": "attend",', '"time": "fold",', ("models/test_compat.py",)),
    Mutation(
        "models: a training step's FLOPs are a forecast's", MODELS / "flops.py",
        "last_only=not training,", "last_only=True,", ("models/test_flops.py",)),
    Mutation(
        "models: details join the wrong stage", MODELS / "tokenizers/convolution.py",
        "self._detail(details[-1 - i],", "self._detail(details[i],", TOKENIZERS),
    Mutation(
        "models: details of the first frame", MODELS / "emulator.py",
        "detail[:, -tokens.shape[1] :]", "detail[:, : tokens.shape[1]]",
        ("models/test_emulator.py"
         "::test_the_last_prediction_is_the_same_with_and_without_the_others",)),
    Mutation(
        "models: details end at the seam", MODELS / "tokenizers/convolution.py",
        "wanted[axis], periodic=wraps,", "wanted[axis], periodic=False,", TOKENIZERS),
    Mutation(
        "models: attention in half precision on a CPU", MODELS / "processors/attention.py",
        'wide = torch.float32 if v.device.type == "cpu" and dtype.itemsize < 4 else dtype',
        "wide = dtype", TRANSFORMER),
    Mutation(
        "models: autocast makes attention half again", MODELS / "processors/attention.py",
        "with nullcontext() if wide == dtype else full_precision(v):", "with nullcontext():",
        TRANSFORMER),

    # Budgets, unrolled steps, and data in memory.
    Mutation(
        "train: unrolled one update late", TRAIN / "objective.py",
        "done >= config.unroll_from", "done > config.unroll_from", ("train/test_objective.py",)),
    Mutation(
        "train: unrolled from the start", TRAIN / "loop.py",
        "ndim, progress.update, done)", "ndim, progress.update, 1.0)", UNROLLED),
    Mutation(
        "train: unrolled steps weigh more than others", TRAIN / "loop.py",
        "next(steps) / (train.accumulate * len(chosen))", "next(steps) / train.accumulate",
        ("train/test_loop.py::test_the_loss_of_an_update_is_the_mean_of_its_steps_and_parts",)),
    Mutation(
        "train: gradients through the steps before", TRAIN / "objective.py",
        "change = changes[:, -1:].detach()", "change = changes[:, -1:]",
        ("train/test_objective.py",)),
    Mutation(
        "train: a CPU budget on the wall's clock", TRAIN / "budget.py",
        "shares.append(progress.cpu_seconds / 60", "shares.append(progress.seconds / 60", BUDGETS),
    Mutation(
        "train: the process's clock is the wall's", TRAIN / "loop.py",
        "time.process_time()])", "time.monotonic()])",
        ("train/test_loop.py::test_the_two_clocks_are_the_walls_and_the_processes_own",)),
    Mutation(
        "train: the optimizer's time not booked", TRAIN / "loop.py",
        "self._unbooked = _clocks() - agreed", "self._unbooked = np.zeros(2)",
        ("train/test_loop.py::test_the_optimizers_step_is_part_of_the_time_spent",)),
    Mutation(
        "train: the last budget counts", TRAIN / "budget.py",
        "return min(max(shares), 1.0)", "return min(min(shares), 1.0)", BUDGETS),
    Mutation(
        "train: FLOPs of the first step alone", TRAIN / "loop.py",
        "for patch, _ in chosen:", "for patch, _ in chosen[:1]:", UNROLLED),
    Mutation(
        "train: data.memory in megabytes", TRAIN / "run.py",
        "keep=int(config.data.memory * 1e9)", "keep=int(config.data.memory * 1e6)",
        ("train/test_run.py::test_data_memory_is_how_many_gigabytes_of_frames_are_kept",)),
    Mutation(
        "data: callers change what is kept in memory", PACKAGE / "data/well.py",
        "self._kept[file, trajectory][steps].clone()", "self._kept[file, trajectory][steps]",
        ("data/test_well.py",)),
    Mutation(
        "data: more is kept in memory than allowed", PACKAGE / "data/well.py",
        "{} if self._bytes() <= keep else None", "{} if keep else None", ("data/test_well.py",)),
    Mutation(
        "data: kept frames are sent to other processes", PACKAGE / "data/well.py",
        '{"_kept": None if self._kept is None else {}}', '{"_kept": self._kept}',
        ("data/test_well.py",)),

    # Statistics and measures.
    Mutation(
        "normalize: frames whose mean drifts", PACKAGE / "normalize.py",
        "mean[:, :1] + drift, var + between,", "mean[:, :1] + drift, var,", ("test_normalize.py",)),
    Mutation(
        "normalize: mean squares over one cell less", PACKAGE / "normalize.py",
        ".square() / cells.shape[-1]", ".square() / (cells.shape[-1] - 1)", ("test_normalize.py",)),
    Mutation(
        "normalize: the spread of paces, not of their logarithm", PACKAGE / "normalize.py",
        "own).log().std(dim=0", "own).std(dim=0", ("test_normalize.py",)),
    Mutation(
        "normalize: the data's scale alone", PACKAGE / "normalize.py",
        "(awake * scale).sqrt()", "scale", ("test_normalize.py",)),
    Mutation(
        "normalize: what rests has no scale to start by", PACKAGE / "normalize.py",
        "torch.hypot(std, REST * scale)", "std", ("test_normalize.py",)),
    Mutation(
        "normalize: a scale in units of the window", PACKAGE / "normalize.py",
        "scale.to(std.dtype) / size.flatten(2)", "scale.to(std.dtype)", ("test_normalize.py",)),
    Mutation(
        "metrics: the biased variance", PACKAGE / "metrics/pointwise.py",
        "field.var(dim=space),", "field.var(dim=space, correction=0),",
        ("metrics/test_pointwise.py",)),
    Mutation(
        "metrics: decorrelated one frame late", PACKAGE / "metrics/pointwise.py",
        "dt * (first.squeeze(-1) + (start", "dt * (1 + first.squeeze(-1) + (start",
        ("metrics/test_pointwise.py",)),
    Mutation(
        "metrics: growth from a step 0 that nobody made", ARTIFACTS / "growth.py",
        "enumerate(power, start=1) if p > 0", "enumerate(power, start=2) if p > 0",
        ("metrics/artifacts/test_growth.py",)),
    Mutation(
        "metrics: rollouts that ended early weigh more", ARTIFACTS / "growth.py",
        "share = len(self._steps) / sum(count for *_, count in self._steps)",
        "share = 1 / self._steps[0][-1]", ("metrics/artifacts/test_growth.py",)),
    Mutation(
        "metrics: seams of a grid moved the other way", ARTIFACTS / "seams.py",
        "beyond = torch.arange(n) - torch.tensor(", "beyond = torch.arange(n) + torch.tensor(",
        ("metrics/artifacts/test_seams.py",)),
    Mutation(
        "metrics: a jump between the ends of a bounded axis", ARTIFACTS / "seams.py",
        "first = 0 if wraps else 1\n    border", "first = 0\n    border",
        ("metrics/artifacts/test_seams.py",)),

    # Studies and their page.
    Mutation(
        "studies: rivals without shifts", STUDIES / "rivals.py",
        '"train.shift": 0.5,', '"train.shift": 0.0,', ("studies/test_rivals.py",)),
    Mutation(
        "studies: fine patches more often", STUDIES / "rivals.py",
        '{"train.patch_weights": [1, 1, 2]}', '{"train.patch_weights": [2, 1, 1]}',
        ("studies/test_rivals.py",)),
    Mutation(
        "studies: forms chosen by the longest trials", STUDIES / "rivals.py",
        'form_of = f"{start}-{BUDGETS[0]}"', 'form_of = f"{start}-{BUDGETS[-1]}"',
        ("studies/test_rivals.py",)),
    Mutation(
        "studies: a run that blew up has a perfect score", STUDIES / "tune.py",
        'float("inf") if best is None', "0.0 if best is None", ("studies/test_tune.py",)),
    Mutation(
        "studies: unrolled from the start", STUDIES / "tune.py",
        '"train.unroll_from": 0.6}', '"train.unroll_from": 0.0}', ("studies/test_tune.py",)),
    Mutation(
        "studies: what was tried is judged on the test split", STUDIES / "tried.py",
        'split="valid")', 'split="test")', ("studies/test_tried.py",)),
    Mutation(
        "studies: a step's number is that of the next", STUDIES / "page/values.py",
        "curve[int(step) - 1]", "curve[int(step) % len(curve)]", ("studies/page/test_values.py",)),
    Mutation(
        "studies: seeds compared with the mean of the others", STUDIES / "page/values.py",
        "a[seed].value / b[seed].value for", "a[seed].value / _mean(b) for",
        ("studies/page/test_values.py",)),
    Mutation(
        "studies: a rollout that blew up is the best", STUDIES / "page/rollout_tables.py",
        "errors.append(math.inf if s.blow_up is not None else", "errors.append(0.0 if False else",
        ("studies/page/test_rollout_tables.py",)),
    Mutation(
        "studies: tables without their last step", STUDIES / "page/rollout_tables.py",
        "for step in numbers if step <= last)", "for step in numbers if step < last)",
        ("studies/page/test_rollout_tables.py",)),
    Mutation(
        "studies: models sorted by all steps", STUDIES / "page/rollout_tables.py",
        "_sortable(row.error(over_10))", "_sortable(row.error(over_all))",
        ("studies/page/test_rollout_tables.py",)),

    # Chosen before anybody knew what would notice them.
    Mutation(
        "models: a window of one frame is enough", MODELS / "base.py",
        "needed = min(2, context)", "needed = min(1, context)", ("models/test_base.py",)),
    Mutation(
        "rollout: what was held comes back", PACKAGE / "rollout" / "loop.py",
        "self.alive = good = good & self.alive", "self.alive = good", ("rollout/test_loop.py",)),
    Mutation(
        "train: an average that remembers the start", TRAIN / "state.py",
        "decay = min(self.decay, (1 + update) / (10 + update))", "decay = self.decay",
        ("train/test_state.py",)),
    Mutation(
        "train: validation without the last window", TRAIN / "validate.py",
        "round(i * (num - 1) / max(count - 1, 1))", "round(i * (num - 1) / count)",
        ("train/test_validate.py",)),
    Mutation(
        "train: norms and biases decay", TRAIN / "state.py",
        "if p.dim() > 1]", "if p.dim() > 0]", ("train/test_state.py",)),
    Mutation(
        "metrics: the mean of all grids for the worst", ARTIFACTS / "seams.py",
        "height.amax(dim=-1)", "height.mean(dim=-1)", ("metrics/artifacts/test_seams.py",)),
    Mutation(
        "metrics: large batches fold louder", ARTIFACTS / "growth.py",
        "self._cells += self._step_cells / self._rows", "self._cells += self._step_cells",
        ("metrics/artifacts/test_growth.py",)),
    Mutation(
        "metrics: intervals of another level", PACKAGE / "metrics/confidence.py",
        "LEVEL = 0.95", "LEVEL = 0.8", ("metrics/test_confidence.py",)),
    Mutation(
        "metrics: a one-sided time difference's unit", PACKAGE / "metrics/physics.py",
        "/ (2 * domain.dt)", "/ domain.dt", ("metrics/test_physics.py",)),
    Mutation(
        "metrics: gravity pulls up", PACKAGE / "metrics/physics.py",
        "push = push - force", "push = push + force", ("metrics/test_physics.py",)),
    Mutation(
        "metrics: energy of a gas without gamma", PACKAGE / "metrics/physics.py",
        "total(pressure, domain) / (gamma - 1)", "total(pressure, domain) / gamma",
        ("metrics/test_physics.py",)),
    Mutation(
        "metrics: a cropped axis still wraps", ARTIFACTS / "lattice.py",
        "tuple(w and m == n for w, m, n", "tuple(w for w, m, n",
        ("metrics/artifacts/test_lattice.py", "metrics/artifacts/test_harmonics.py")),
    Mutation(
        "data: time begins one step late", PACKAGE / "data/writer.py",
        "times = np.arange(self.num_frames) * self.header.dt",
        "times = (1 + np.arange(self.num_frames)) * self.header.dt",
        ("data/test_writer.py",)),
    Mutation(
        "data: uneven steps go unsaid", PACKAGE / "data/layout.py",
        "<= 0.01 * mean", "<= 0.9 * mean", ("data/test_layout.py",)),
    Mutation(
        "data: one mask cell makes a wall", PACKAGE / "data/layout.py",
        "edge.all() if kind is Boundary.WALL else edge.any()", "edge.any()",
        ("data/test_layout.py",)),
    Mutation(
        "models: windows shifted by a quarter", MODELS / "processors/swin.py",
        "start = size // 2 if", "start = size // 4 if", ("models/processors/test_swin.py",)),
    Mutation(
        "models: no block shifts its windows", MODELS / "processors/transformer.py",
        "shifted = block % 2 == 1", "shifted = False", ("models/processors/test_swin.py",)),
    Mutation(
        "models: strong shrinkage of modes", MODELS / "processors/afno.py",
        "SHRINKAGE = 1e-3", "SHRINKAGE = 1e-1", ("models/processors/test_afno.py",)),
    Mutation(
        "models: decoders that start too quiet", MODELS / "tokenizers/convolution.py",
        "shape, fan_in = (in_dim, out_dim), in_dim",
        "shape, fan_in = (in_dim, out_dim), in_dim * math.prod(taps)",
        NEAR_PERSISTENCE),
    Mutation(
        "models: half turns on a periodic axis", MODELS / "processors/rope.py",
        "per_domain if wraps else per_domain / 2", "per_domain / 2",
        ("models/processors/test_rope.py",)),
    Mutation(
        "schedules: bursts begin fine", PACKAGE / "schedules" / "kinds.py",
        "(step + 1) % self.every == 0", "step % self.every == 0", ("schedules/test_kinds.py",)),
    Mutation(
        "studies: a share upside down", STUDIES / "page/values.py",
        "percent(100 * _mean(a) / _mean(b))", "percent(100 * _mean(b) / _mean(a))",
        ("studies/page/test_values.py",)),
    Mutation(
        "studies: quick runs of the whole length", STUDIES / "study.py",
        'if "train.updates" in self.changes:', 'if "train.update" in self.changes:',
        ("studies/test_study.py",)),
    Mutation(
        "studies: items split at every comma", STUDIES / "page/blocks.py",
        're.split(r",(?! )", items)', 're.split(r",", items)', ("studies/page/test_blocks.py",)),
    Mutation(
        "studies: proof data of the training seed", STUDIES / "package.py",
        '"seed": 1000}', '"seed": 0}',
        ("studies/test_package.py::test_a_proof_can_be_repeated_and_is_on_other_data",)),
    Mutation(
        "normalize: changes of the last step alone", PACKAGE / "normalize.py",
        "change = change.mean(dim=1, keepdim=True) if", "change = change[:, -1:] if",
        ("test_normalize.py",)),
    Mutation(
        "train: noise on the truth", TRAIN / "objective.py",
        "window = _with_noise(window, config.noise)",
        "truth = _with_noise(Window(truth, window.domain), config.noise).fields",
        ("train/test_objective.py",)),
    Mutation(
        "train: a new best is any that is not worse", TRAIN / "loop.py",
        "better = found.score < best", "better = found.score <= best",
        ("train/test_loop.py::test_what_blew_up_is_kept_only_while_there_is_nothing_else",)),
    # The viewer, and what reports have since they begin with pictures.
    Mutation(
        "viewer: residuals in the fields' own units", VIEWER / "measures.py",
        "return (frame.double() - truth) / scale.reshape(-1, *(1,) * domain.ndim)",
        "return frame.double() - truth", ("viewer/test_measures.py",)),
    Mutation(
        "viewer: seams where the grid would be at rest", VIEWER / "measures.py",
        "periodic=domain.periodic, shift=grid.start", "periodic=domain.periodic",
        ("viewer/test_measures.py", "viewer/test_session.py")),
    Mutation(
        "viewer: the brush changes the last frame alone", VIEWER / "lane.py",
        "        for frame in frames:\n", "        for frame in frames[-1:]:\n",
        ("viewer/test_lane.py",)),
    Mutation(
        "viewer: the brush stops at a periodic border", VIEWER / "lane.py",
        "away = torch.minimum(away, n - away) if wraps else away", "away = away * 1",
        ("viewer/test_lane.py",)),
    Mutation(
        "viewer: one step too many is remembered after going back", VIEWER / "lane.py",
        "del self._made[step:]", "del self._made[step + 1 :]", ("viewer/test_lane.py",)),
    Mutation(
        "viewer: states are kept beyond their room", VIEWER / "lane.py",
        "while len(self._states) > 1 and self._cost > self._most:",
        "while len(self._states) > 1 and self._cost > 4 * self._most:",
        ("viewer/test_lane.py",)),
    Mutation(
        "viewer: lanes of unequal contexts start apart", VIEWER / "stage.py",
        "target = start + self.context", "target = start + candidate.model.context",
        ("viewer/test_stage.py", "viewer/test_session.py")),
    Mutation(
        "viewer: persistence from the frame before", VIEWER / "session.py",
        "truth, first = self.truth(step), self.truth(0)",
        "truth, first = self.truth(step), self.truth(max(0, step - 1))",
        ("viewer/test_session.py",)),
    Mutation(
        "viewer: pages from elsewhere are let in", VIEWER / "server.py",
        "if origin is not None and origin.partition", "if origin is None and origin.partition",
        ("viewer/test_server.py",)),
    Mutation(
        "viewer: any token will do", VIEWER / "server.py",
        "if self.token and not hmac.compare_digest",
        "if self.token and not given and not hmac.compare_digest",
        ("viewer/test_server.py",)),
    Mutation(
        "viewer: a plan behind a space is read from a page", VIEWER / "messages.py",
        'if text.strip().startswith("plan"):', 'if text.startswith("plan"):',
        ("viewer/test_messages.py",)),
    Mutation(
        "viewer: values are rounded down", VIEWER / "messages.py",
        "np.round(scaled)", "np.floor(scaled)", ("viewer/test_messages.py",)),
    Mutation(
        "viewer: recorded residuals with the wrong sign", VIEWER / "record.py",
        "_seen(f, view, field, domain) - _seen(t, view, field, domain)",
        "_seen(t, view, field, domain) - _seen(f, view, field, domain)",
        ("viewer/test_record.py",)),
    Mutation(
        "viewer: a recording of the first flow alone", VIEWER / "record.py",
        "window = stage.window(candidate, trajectory, start)",
        "window = stage.window(candidate, 0, start)", ("viewer/test_record.py",)),
    Mutation(
        "evaluate: bands over the prediction's energy", PACKAGE / "evaluate/next_step.py",
        "bsnmse(predicted.double(), frame.double(), ndim=ndim)",
        "bsnmse(frame.double(), predicted.double(), ndim=ndim)",
        ("evaluate/test_next_step.py",)),
    Mutation(
        "report: bands of the first seed alone", PACKAGE / "report/series.py",
        "step.bsnmse.get(band, UNKNOWN) for step in self.steps]",
        "step.bsnmse.get(band, UNKNOWN) for step in self.steps[:1]]",
        ("report/figures/test_steps.py",)),
    Mutation(
        "report: what ran off stretches the heat map", PACKAGE / "report/figures/heat.py",
        "sound = values[[not runs_off(s) for s in found]]", "sound = values",
        ("report/figures/test_heat.py",)),
    Mutation(
        "report: spectra along an axis from wavenumber 0",
        PACKAGE / "report/figures/axis_spectra.py",
        "np.array(values)[1:] for values in", "np.array(values)[:] for values in",
        ("report/figures/test_axis_spectra.py",)),
    Mutation(
        "report: a finished run's page is read again", PACKAGE / "report/run.py",
        "refresh=REFRESH if running else 0", "refresh=REFRESH", ("report/test_run.py",)),
    Mutation(
        "report: pictures without a limit", PACKAGE / "report/page.py",
        "left -= size if fits else 0", "left -= 0", ("report/test_page.py", "report/test_html.py")),
    Mutation(
        "export: rolled back twice as far", PACKAGE / "ops/padding.py",
        "cells = -grid.moved[axis] if back", "cells = -2 * grid.moved[axis] if back",
        ("export/test_program.py::test_rolling_is_shifting",)),
    Mutation(
        "export: a flexified model's grid does not move", PACKAGE / "flexify/stepper.py",
        "fields = follow(_roll(fields, grid.start), grid)", "fields = _roll(fields, grid.start)",
        ("export/test_program.py::test_rolling_is_shifting_for_flexified_models",)),
    Mutation(
        "rope: positions round a circle move with the grid", PACKAGE / "models/processors/rope.py",
        "still = grid.at_rest()", "still = grid",
        ("export/test_program.py::test_rolling_is_shifting",)),
    Mutation(
        "export: walls move, too", EXPORT / "program.py",
        "return tuple(wraps and model.patched", "return tuple(model.patched",
        ("export/test_program.py",)),
    Mutation(
        "export: what differs least", EXPORT / "verify.py",
        "largest = max(largest,", "largest = min(largest,", ("export/test_verify.py",)),
    Mutation(
        "export: tried at rest alone", EXPORT / "verify.py",
        "offsets=_offsets(program.moved, steps)", "offsets=_offsets([False], steps)",
        ("export/test_verify.py",)),
    Mutation(
        "export: complex numbers lost", EXPORT / "program.py",
        "with_complex() if exact else", "with_complex() if not exact else",
        ("export/test_program.py",)),
    Mutation(
        "export: any difference passes", EXPORT / "run.py",
        "if not largest <= how.tolerance:", "if not largest <= 1e6 * how.tolerance:",
        ("export/test_run.py",)),
    Mutation(
        "export: the oldest frames", EXPORT / "player.py",
        "window[:, -self.context :]", "window[:, : self.context]",
        ("export/test_player.py::test_ten_steps_are_those_of_the_model",)),
    Mutation(
        "export: a new frame takes the place of the newest", EXPORT / "player.py",
        "[window[:, 1:], frame[:, None]]", "[window[:, :-1], frame[:, None]]",
        ("export/test_player.py::test_ten_steps_are_those_of_the_model",)),
    Mutation(
        "export: sums over long axes", EXPORT / "rewriting.py",
        "return [*split(length // factor), factor] if factor > 1", "return [length] if factor > 1",
        ("export/test_rewriting.py",)),
    Mutation(
        "hub: files are not compared", PACKAGE / "hub.py",
        "    if listed.fits(path):", "    if path.is_file():", ("test_hub.py",)),
    Mutation(
        "hub: all that is there is fetched", PACKAGE / "hub.py",
        "revision=repository.revision, allow_patterns=list(FILES)",
        "revision=repository.revision", ("test_hub.py",)),
    Mutation(
        "hub: a tag taken for a commit", PACKAGE / "hub.py",
        "COMMIT.fullmatch(self.revision) is not None", "self.revision is not None",
        ("test_hub.py",)),
    Mutation(
        "hub: nothing that an older model left is removed", PACKAGE / "hub.py",
        "if name in held and name not in names]", "if name not in held and name not in names]",
        ("test_hub.py",)),
    Mutation(
        "hub: to be private, and public", PACKAGE / "hub.py",
        "if private and api.model_info(", "if not private and api.model_info(", ("test_hub.py",)),
    Mutation(
        "models: a card of other weights is sent", MODELS / "sharing.py",
        "return model.source if same else None", "return model.source",
        ("models/test_sharing.py",)),
    Mutation(
        "models: folders named in a log are sent", MODELS / "sharing.py",
        'content.get("kind") in TOLD', 'content.get("kind")', ("models/test_sharing.py",)),
    Mutation(
        "models: markup in a card", MODELS / "card.py",
        'return re.sub(r"[`|<>\\[\\]\\"*]", "_", shown(value))', "return shown(value)",
        ("models/test_card.py",)),
    Mutation(
        "models: a card keeps its old name where it loads", MODELS / "card.py",
        """lambda found: f'{found[1]}"{name}"'""", "lambda found: found[0]",
        ("models/test_card.py",)),
    Mutation(
        "docs: comments left in code and out of it", DOCS / "pages.py",
        'lambda part: _COMMENT.sub("", part)', "lambda part: part", ("docs/test_pages.py",)),
    Mutation(
        "docs: links from the page instead of the file", DOCS / "pages.py",
        "path = (origin.parent / target).resolve()", "path = (page.parent / target).resolve()",
        ("docs/test_pages.py",)),
    Mutation(
        "docs: anchors lost", DOCS / "pages.py",
        "{'#' + anchor if anchor else ''}", "{'' if anchor else ''}", ("docs/test_pages.py",)),
    Mutation(
        "docs: a cell's last line is not shown", DOCS / "notebooks.py",
        "elif shown is not None:", "elif shown is None:", ("docs/test_notebooks.py",)),
    Mutation(
        "docs: methods that only refer are shown", DOCS / "api.py",
        'return skipped or (inspect.getdoc(thing)', 'return skipped and (inspect.getdoc(thing)',
        ("docs/test_api.py",)),
)
# fmt: on


def plant(text: str, mutation: Mutation) -> str:
    """The text of a file with the bug in it."""
    found = text.count(mutation.old)
    if found != 1:
        raise ValueError(
            f"mutation '{mutation.name}': {mutation.file} has its old text {found} times, expected "
            "once; the code has changed, so change the mutation, too"
        )
    return text.replace(mutation.old, mutation.new)


@contextmanager
def scratch_copy() -> Iterator[Path]:
    """A copy of the project whose sources can be changed."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name)
        for entry in ROOT.iterdir():
            if entry.name in COPIED:
                ignored = shutil.ignore_patterns("__pycache__", "_build")
                shutil.copytree(entry, folder / entry.name, ignore=ignored)
            elif entry.suffix == ".md":  # what the site links to is found by its resolved path
                shutil.copy(entry, folder)
            elif not entry.name.startswith(".") or entry.name == ".ci":
                (folder / entry.name).symlink_to(entry)
        yield folder


def run_tests(
    folder: Path, tests: Sequence[str], limit: float | None = LIMIT
) -> tuple[int | None, str]:
    """Exit code of pytest, None if it took too long, and what it printed."""
    # No bytecode: it is told apart by seconds and sizes, which a bug may share with what was right.
    environment = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    options = "-x", "-q", "-n0", "-p", "no:cacheprovider", "--tb=no"
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, env=os.environ | environment, timeout=limit, text=True,
            capture_output=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    if done.returncode not in (0, 1, 2):  # wrong arguments, or no tests
        raise RuntimeError(f"pytest {' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return done.returncode, done.stdout


def judge(folder: Path, mutation: Mutation) -> Verdict:
    """Plant a mutation in a scratch copy, see who notices, and take it back."""
    path, began = folder / mutation.file, time.monotonic()
    right = path.read_text()
    path.write_text(plant(right, mutation))
    try:
        code, output = run_tests(folder, mutation.tests)
    finally:
        path.write_text(right)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.M)
    by = "no end within the limit" if code is None else found[1] if found else ""
    return Verdict(code != 0, by, time.monotonic() - began)


def chosen(names: Sequence[str]) -> list[Mutation]:
    """Mutations whose names begin with one of these; all if there are none."""
    found = [m for m in MUTATIONS if m.name.startswith(tuple(names) or "")]
    if not found:
        raise SystemExit(f"no mutation is called {', '.join(names)}; --list shows all")
    return found


def require_healthy(folder: Path, mutations: Sequence[Mutation]) -> None:
    """Stop if the tests fail without any bug: what fails anyway notices nothing."""
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    code, output = run_tests(folder, tests, limit=None)
    if code != 0:
        raise SystemExit(f"the tests fail without any bug:\n{output}")


def show(verdicts: dict[Mutation, Verdict]) -> None:
    table = Table("bug", "noticed", "by")
    for mutation, verdict in verdicts.items():
        table.add_row(mutation.name, "yes" if verdict.noticed else "NO", verdict.by)
    console = Console()
    console.print(table)
    noticed = sum(verdict.noticed for verdict in verdicts.values())
    share = 100 * noticed / len(verdicts)
    console.print(f"{noticed} of {len(verdicts)} noticed, {share:.0f} %")


def planted(mutation: Mutation) -> dict[str, Any]:
    """A mutation as results name it."""
    return {
        "name": mutation.name,
        "file": mutation.file.as_posix(),
        "old": mutation.old,
        "new": mutation.new,
    }


def content(verdicts: dict[Mutation, Verdict], before: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is kept: verdicts of this run, and of an earlier one on what was not run now.

    Args:
        verdicts: of this run.
        before: rows of the earlier one. They hold as long as the same bug is planted.
    """
    found = {
        m: {**planted(m), "noticed": v.noticed, "by": v.by, "seconds": round(v.seconds, 1)}
        for m, v in verdicts.items()
    }
    known = {row["name"]: row for row in before}
    kept = {m: known[m.name] for m in MUTATIONS if m.name in known and m not in found}
    kept = {m: row for m, row in kept.items() if planted(m).items() <= row.items()}
    rows = [row for m in MUTATIONS if (row := found.get(m) or kept.get(m)) is not None]
    return {
        "command": "python benchmarks/mutations.py",
        "machine": machine(),
        "planted": len(rows),
        "noticed": sum(row["noticed"] for row in rows),
        "mutations": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="which; all if none is given")
    parser.add_argument("--list", action="store_true", help="show the names and end")
    parser.add_argument("--out", type=Path, default=Path("results/mutations.json"))
    options = parser.parse_args()
    mutations = chosen(options.names)
    if options.list:
        print(*(mutation.name for mutation in mutations), sep="\n")
        return
    out: Path = options.out
    before = json.loads(out.read_text())["mutations"] if options.names and out.exists() else []
    verdicts: dict[Mutation, Verdict] = {}
    with scratch_copy() as folder:
        require_healthy(folder, mutations)
        for number, mutation in enumerate(mutations, start=1):
            verdict = verdicts[mutation] = judge(folder, mutation)
            said = verdict.by if verdict.noticed else "NOT NOTICED"
            print(f"{number}/{len(mutations)} {mutation.name}: {said}", flush=True)
    show(verdicts)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content(verdicts, before), indent=1, allow_nan=False) + "\n")
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
