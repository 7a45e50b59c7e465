"""Rollouts against plain loops, and against futures that are known."""

import math
from dataclasses import replace

import pytest
import torch

import overtone as ot
from overtone.errors import PatchError
from overtone.evaluate import Candidate, Trajectories
from overtone.evaluate.candidates import choose_schedules
from overtone.evaluate.rollouts import roll_out, sample_steps
from overtone.metrics import vrmse
from overtone.models.calibration import Band, Calibration


def measure(candidate, toy, schedule="4-8", steps=10, batch=3, context=None, **reading):
    truth = Trajectories(toy, ("a", "clock"), context or candidate.model.context, reading)
    ticks = []
    run, samples, _ = roll_out(
        candidate,
        ot.parse_rule(schedule),
        truth,
        steps=steps,
        yardsticks={},
        patches=(4, 8),
        batch=batch,
        seed=0,
        device="cpu",
        tick=lambda: ticks.append(1),
    )
    assert len(ticks) == steps * sum(1 for _ in truth.batches(batch))
    return run, samples


def test_sample_steps():
    assert sample_steps(1) == (1,)
    assert sample_steps(3) == (1, 2, 3)
    many = sample_steps(500)
    assert (len(many), many[0], many[-1]) == (40, 1, 500)
    assert len(set(many)) == 40
    assert len(set(sample_steps(41))) == 40


def test_the_truth_has_no_error(roller, toy):
    run, samples = measure(roller, toy)
    assert {e.high for e in run.vrmse} == {0.0}
    assert run.vrmse_all.high == run.bsnmse["high"].high == 0.0
    assert run.blow_up is None
    assert run.tokens == 5 * (32 + 8)
    assert run.flops == 0
    truth = Trajectories(toy, ("a", "clock"), 2, {})
    assert torch.equal(samples, torch.cat([truth.frame([0], 2 + n) for n in range(10)]))


def test_persistence_errs_as_far_as_the_pattern_moves(steppers, toy):
    run, _ = measure(Candidate("p", steppers["Persistent"]()), toy, steps=4, context=3)
    truth = Trajectories(toy, ("a", "clock"), 3, {})
    moved = [
        vrmse(f := truth.frame([row], 2), f.roll((4, 4), dims=(-2, -1)), ndim=2)[0, 0].item()
        for row in range(5)
    ]
    clock = 4 / math.sqrt(1e-7)  # a constant field has no variance but that of the epsilon
    assert run.vrmse[3].value == pytest.approx((sum(moved) / 5 + clock) / 2, rel=1e-4)


@pytest.mark.parametrize("schedule", ["4-8", "8+shift"])
def test_values_are_those_of_a_plain_loop(emulator, toy, schedule):
    run, samples = measure(Candidate("e", emulator), toy, schedule, steps=11, start=1)
    truth = Trajectories(toy, ("a", "clock"), 3, {})
    errors = torch.zeros(11, 5, 2, dtype=torch.float64)
    for row in range(5):
        window = truth.window([row], 3, 4)
        frames = ot.rollout(emulator, window, steps=11, schedule=ot.parse_schedule(schedule))
        for n, frame in enumerate(frames):
            errors[n, row] = vrmse(frame, truth.frame([row], 4 + n), ndim=2)[0]
            if row == 0:
                assert torch.allclose(samples[n], frame[0], rtol=1e-4, atol=1e-5)
    assert [e.value for e in run.vrmse] == pytest.approx(errors.mean((1, 2)).tolist(), rel=1e-3)
    assert run.vrmse_10.value == pytest.approx(errors[:10].mean().item(), rel=1e-3)
    assert run.vrmse_all.value == pytest.approx(errors.mean().item(), rel=1e-3)
    assert run.fields["a"].value == pytest.approx(errors[..., 0].mean().item(), rel=1e-3)
    assert run.vrmse_all.low < run.vrmse_all.value < run.vrmse_all.high
    assert run.tokens == ot.parse_schedule(schedule).tokens(truth.domain, 11)
    flops = [Candidate("e", emulator).flops(truth.domain, p) for p in (4, 8)]
    assert run.flops == (6 * flops[0] + 5 * flops[1] if schedule == "4-8" else 11 * flops[1])


def flat(record):
    """All numbers of a record but the time it took."""
    if isinstance(record, dict):
        return [x for key, value in record.items() if key != "seconds" for x in flat(value)]
    if isinstance(record, (list, tuple)):
        return [x for value in record for x in flat(value)]
    return [record] if isinstance(record, (int, float)) else []


def test_batches_do_not_matter(emulator, toy):
    one, three = (
        measure(Candidate("e", emulator), toy, steps=4, batch=size)[0].model_dump()
        for size in (1, 3)
    )
    assert flat(one) == pytest.approx(flat(three), rel=1e-3, abs=1e-6, nan_ok=True)
    assert len(flat(one)) > 100


@pytest.mark.parametrize(
    ("batch", "value"), [(1, math.nan), (2, math.nan), (5, math.inf), (2, 1e30)]
)
def test_one_lost_trajectory_does_not_end_the_others(steppers, toy, batch, value):
    model = steppers["Exploding"](amplitudes=(2.0,), moment=6.0, value=value)
    run, samples = measure(Candidate("x", model), toy, batch=batch)
    # The context ends at frame 1, so the clock says 6 at step 5.
    assert run.blow_up == 5
    assert len(run.vrmse) == 10
    assert {e.value for e in run.vrmse} == {0.0}
    assert run.vrmse_all.value == math.inf
    assert run.fields["a"].value == math.inf
    assert len(run.harmonics[0].excess) == 10
    assert [seen.step for seen in run.spectra] == [1, 5, 10]
    assert bool(samples.isfinite().all())


def test_samples_end_with_a_blow_up_and_so_does_everything(steppers, toy):
    model = steppers["Exploding"](amplitudes=(1.0, 2.0, 3.0, 4.0, 5.0), moment=6.0)
    run, samples = measure(Candidate("x", model), toy)
    assert (run.blow_up, len(run.vrmse)) == (5, 4)
    assert bool(samples[:4].isfinite().all())
    assert bool(samples[4:].isnan().all())
    assert run.vrmse_10.low == math.inf
    assert [seen.step for seen in run.spectra] == [1]
    assert run.seconds > 0


def test_lost_at_the_first_step(steppers, toy):
    model = steppers["Exploding"](amplitudes=(1.0, 2.0, 3.0, 4.0, 5.0), moment=0.0)
    run, _ = measure(Candidate("x", model), toy)
    assert (run.blow_up, run.vrmse, run.harmonics, run.spectra) == (1, (), (), ())


@pytest.fixture
def sloppy(roller, toy):
    """The truth but for an error that grows with the patch, calibrated for two steps."""

    class Sloppy(type(roller.model)):
        def __call__(self, window, patch, shift=0):
            frame = super().__call__(window, patch, shift)
            size = patch if isinstance(patch, int) else patch[0]
            frame[:, 0] += 0.001 * size * torch.linspace(-1, 1, frame.shape[-1])
            return frame

    domain = Trajectories(toy, ("a", "clock"), 2, {}).domain
    model = Sloppy(domain)
    band = Band((3.0, 2.0), ((3.0, 1.0), (2.0, 1.0)), {0.9: ((1.0, 1.0), (4.0, 5.0))}, 19)
    model.calibration = Calibration("", domain.shape, domain.fields, {}, {("*", "patch"): band})
    return Candidate("sloppy", model)


def test_a_calibrated_model_tells_its_error_beside_the_true_one(sloppy, toy):
    run, _ = measure(sloppy, toy, "4-8", steps=4, trajectories=1)
    told = run.told
    assert told.error == pytest.approx([step.value for step in run.vrmse])
    frames = ot.rollout(
        sloppy.model,
        Trajectories(toy, ("a", "clock"), 2, {}).window([0], 2, 2),
        steps=4, schedule="4-8", estimate=True,
    )  # fmt: skip
    estimates = [frames.estimate for _ in frames]
    assert told.value == pytest.approx([e.value.item() for e in estimates])
    assert told.low == pytest.approx([e.bounds[0.9][0].item() for e in estimates])
    assert told.high == pytest.approx([e.bounds[0.9][1].item() for e in estimates])
    assert told.low[0] < told.value[0] < told.high[0]
    assert (told.against, told.horizon, told.patches) == ("patch", 2, (4, 8, 4, 8))
    assert run.tokens == 2 * (32 + 8)  # comparisons are nobody's cost here


def test_without_a_calibration_for_the_grid_nothing_is_told(sloppy, roller, toy):
    run, _ = measure(roller, toy, steps=2)
    assert run.told is None
    assert "told" not in run.model_dump()
    known = sloppy.model.calibration
    sloppy.model.calibration = replace(known, shape=(8, 8))
    assert measure(sloppy, toy, steps=2)[0].told is None


def test_controllers_tell_it_of_the_steps_that_they_chose(sloppy, toy):
    truth = Trajectories(toy, ("a", "clock"), 2, {})
    told = roll_out(
        sloppy, ot.Adaptive(tolerance=1e9), truth, steps=3, yardsticks={}, patches=(4, 8), batch=3,
        seed=0, device="cpu", tick=lambda: None,
    )[0].told  # fmt: skip
    assert told.patches == (8, 8, 8)


def test_a_controller_that_lives_by_the_calibration_can_steer_a_calibrated_model(sloppy, toy):
    """`sparing` without a tolerance takes it from the usual errors of single steps."""
    domain, notes = sloppy.model.domain, []
    with pytest.raises(PatchError, match="can follow none"):  # this calibration has none
        choose_schedules(sloppy, ["sparing+shift"], domain, 4, notes.append)
    assert "is not calibrated on this grid" in notes[0]
    usual = {"4": 0.01, "8": 0.02}
    sloppy.model.calibration = replace(sloppy.model.calibration, errors=usual)
    (rule,) = choose_schedules(sloppy, ["sparing:8-4+shift"], domain, 4, notes.append)
    assert sloppy.patches_of(rule, 4) == (8, 4)
    run, _ = measure(sloppy, toy, rule, steps=4, trajectories=1)
    frames = ot.rollout(sloppy.model, Trajectories(toy, ("a", "clock"), 2, {}).window([0], 2, 2),
                        steps=4, schedule=rule)  # fmt: skip
    assert [*frames][-1].isfinite().all()
    assert run.tokens == frames.tokens
