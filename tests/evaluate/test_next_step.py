import math

import pytest
import torch

import overtone as ot
from overtone.evaluate import Candidate, Trajectories
from overtone.evaluate.next_step import next_steps, num_batches, pairs_of
from overtone.metrics import bsnmse, vrmse


def measure(candidate, toy, windows=20, batch=3, **reading):
    truth = Trajectories(toy, ("a", "clock"), candidate.model.context, reading)
    ticks = []
    found = next_steps(
        candidate,
        truth,
        patches=candidate.model.patches,
        windows=windows,
        batch=batch,
        seed=0,
        device="cpu",
        tick=lambda: ticks.append(1),
    )
    assert len(ticks) == num_batches(truth, windows, batch)
    return found


def test_windows_are_spread_over_trajectories_and_frames(toy):
    truth = Trajectories(toy, ("a", "clock"), 3, {})
    assert pairs_of(truth, 15)[:4] == [(0, 3), (0, 9), (0, 15), (1, 3)]
    assert pairs_of(truth, 1) == [(row, 3) for row in range(5)]
    assert len(pairs_of(truth, 10_000)) == 5 * 13


def test_the_truth_has_no_error(roller, toy):
    for step in measure(roller, toy):
        assert step.vrmse.value == step.vrmse.high == 0.0
        assert all(band.value == 0.0 for band in step.bsnmse.values())
        assert (step.tokens, step.flops) == ({4: 32, 8: 8}[step.patch], 0)
        assert step.seconds > 0


def test_values_are_those_of_a_plain_loop(emulator, toy):
    candidate = Candidate("e", emulator)
    truth = Trajectories(toy, ("a", "clock"), 3, {"start": 2})
    found = measure(candidate, toy, windows=20, start=2)
    errors, bands = torch.zeros(2, 5, 4, 2), torch.zeros(2, 5, 4, 3)
    for row in range(5):
        for place, target in enumerate((5, 8, 12, 15)):
            window = ot.Window(truth.folder.frames(row, target - 3, 3).fields[None], truth.domain)
            frame = truth.folder.frames(row, target, 1).fields
            for i, patch in enumerate((4, 8)):
                with torch.no_grad():
                    predicted = emulator(window, patch)
                errors[i, row, place] = vrmse(predicted, frame, ndim=2)[0]
                bands[i, row, place] = bsnmse(predicted, frame, ndim=2)[0].mean(dim=0)
    for i, step in enumerate(found):
        assert step.vrmse.value == pytest.approx(errors[i].mean().item(), rel=1e-4)
        assert step.fields["a"].value == pytest.approx(errors[i, ..., 0].mean().item(), rel=1e-4)
        for n, band in enumerate(("low", "mid", "high")):
            assert step.bsnmse[band].value == pytest.approx(
                bands[i, ..., n].mean().item(), rel=1e-4
            )
        assert step.vrmse.low < step.vrmse.value < step.vrmse.high
        assert step.flops == candidate.flops(truth.domain, step.patch)


def test_batches_do_not_matter(emulator, toy):
    one, five = (measure(Candidate("e", emulator), toy, batch=size) for size in (1, 5))
    for a, b in zip(one, five, strict=True):
        assert a.vrmse.value == pytest.approx(b.vrmse.value, rel=1e-4)
        assert a.vrmse.high == pytest.approx(b.vrmse.high, rel=1e-4)


def test_what_is_not_finite_is_infinitely_wrong(steppers, toy):
    found = measure(Candidate("x", steppers["Exploding"](moment=0.0)), toy)
    assert all(step.vrmse.value == math.inf for step in found)
    assert all(step.fields["clock"].value == 0 for step in found)
