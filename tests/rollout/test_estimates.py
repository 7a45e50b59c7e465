"""Estimates without truth: what is compared with what, what it comes to, and what it costs."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import vrmse
from overtone.models.calibration import Band, Calibration
from overtone.rollout.estimates import half_moved, next_coarser, ordered, parse_against
from overtone.schedules import Choice


def run(model, window, steps=4, schedule="4", estimate=True, **options):
    """The estimates of all steps, the frames and the rollout."""
    frames = ot.rollout(model, window, steps=steps, schedule=schedule, estimate=estimate, **options)
    found = [(frame, frames.estimate) for frame in frames]
    return [e for _, e in found], [f for f, _ in found], frames


def test_frames_are_the_same_with_and_without(make_model, make_window):
    model = make_model().eval()
    window = make_window(model.domain)
    plain = list(ot.rollout(model, window, steps=3, schedule="4-8-16+shift"))
    for estimate in (True, "shift", "16"):
        _, frames, _ = run(model, window, 3, "4-8-16+shift", estimate)
        assert all(torch.equal(a, b) for a, b in zip(plain, frames, strict=True))


def test_a_step_is_compared_with_the_next_coarser_patch(make_model, make_window):
    model = make_model().eval()
    window = make_window(model.domain)
    (estimate,), (frame,), frames = run(model, window, 1, "4")
    other = model(window, 8)
    expected = vrmse(other, frame, ndim=2).double()
    assert torch.allclose(estimate.fields, expected)
    assert torch.allclose(estimate.value, expected.mean(dim=1))
    assert torch.allclose(estimate.local, expected.mean(dim=1))
    assert torch.allclose(estimate.map, (other - frame).abs())
    assert not estimate.calibrated
    assert estimate.tokens == 4 * 6  # of patch 8 on 32 x 48 cells
    assert frames.tokens == 8 * 12 + 4 * 6
    with pytest.raises(ot.OvertoneError, match="not calibrated, so it has no interval"):
        estimate.interval()
    assert "uncalibrated disagreement" in repr(estimate)


def test_the_coarsest_patch_is_compared_with_its_own_grid_moved(make_model, make_window):
    model = make_model().eval()
    window = make_window(model.domain)
    (estimate,), (frame,), _ = run(model, window, 1, "16")
    expected = vrmse(model(window, 16, 8), frame, ndim=2).double()
    assert torch.allclose(estimate.fields, expected)
    (moved,), _, _ = run(model, window, 1, "16", "shift")
    assert torch.allclose(moved.fields, expected)


def test_what_steps_add_is_summed_as_squares(make_model, make_window):
    model = make_model().eval()
    window = make_window(model.domain)
    estimates, frames, _ = run(model, window, 3, "8+shift")
    schedule, total, cells = ot.parse_schedule("8+shift"), 0.0, 0.0
    for step, (estimate, frame) in enumerate(zip(estimates, frames, strict=True)):
        other = model(window, 16, schedule(step).shift[:2])
        total = total + vrmse(other, frame, ndim=2).double().square()
        cells = cells + (other - frame).square()
        assert torch.allclose(estimate.fields, total.sqrt())
        assert torch.allclose(estimate.map, cells.sqrt())
        window = window.slide(frame)
    assert estimates[-1].step == 3


def test_a_second_rollout_is_one_of_its_own(make_model, make_window):
    model = make_model().eval()
    window = make_window(model.domain)
    estimates, frames, whole = run(model, window, 3, "4", "16+shift")
    second = list(ot.rollout(model, window, steps=3, schedule="16+shift"))
    for estimate, frame, other in zip(estimates, frames, second, strict=True):
        assert torch.allclose(estimate.fields, vrmse(other, frame, ndim=2).double())
        assert bool(estimate.local.isnan().all())
        assert estimate.against == "16+shift"
    assert whole.tokens == 3 * (8 * 12 + 2 * 3)
    assert estimates[0].tokens == 2 * 3


def band(factor, fields, low, high):
    return Band(factor, fields, {0.9: (low, high)}, 30)


@pytest.fixture
def calibrated(make_model):
    model = make_model().eval()
    model.calibration = Calibration(
        weights="",
        shape=model.domain.shape,
        fields=model.domain.fields,
        errors={"4": 1.0, "8": 2.0, "16": 4.0},
        bands={
            ("step 4", "patch"): band((2.0,), ((2.0, 3.0),), (1.0,), (4.0,)),
            ("4", "patch"): band((5.0, 7.0), ((5.0, 5.0), (7.0, 9.0)), (1.0, 2.0), (10.0, 20.0)),
            ("*", "patch"): band((11.0,), ((11.0, 11.0),), (1.0,), (20.0,)),
        },
    )
    return model


def test_a_calibration_turns_disagreements_into_errors(calibrated, make_window):
    window = make_window(calibrated.domain)
    estimates, frames, _ = run(calibrated, window, 3, "4")
    total = 0.0
    for step, (estimate, frame) in enumerate(zip(estimates, frames, strict=True)):
        other = calibrated(window, 8)
        local = vrmse(other, frame, ndim=2).double() * torch.tensor([2.0, 3.0])
        total = total + local.square()
        factor, fields, low, high = ((5.0, [5.0, 5.0], 1.0, 10.0), (7.0, [7.0, 9.0], 2.0, 20.0),
                                     (7.0, [7.0, 9.0], 2.0, 20.0))[step]  # fmt: skip
        mean = total.sqrt().mean(dim=1)
        assert torch.allclose(estimate.value, factor * mean)
        assert torch.allclose(estimate.fields, total.sqrt() * torch.tensor(fields).double())
        assert torch.allclose(torch.stack(estimate.interval()),
                              torch.stack([low * mean, high * mean]))  # fmt: skip
        assert torch.allclose(estimate.local, local.mean(dim=1))
        assert (estimate.calibrated, estimate.beyond) == (True, step == 2)
        window = window.slide(frame)
    assert "beyond the calibrated steps" in repr(estimates[-1])
    with pytest.raises(ot.OvertoneError, match=r"level is 0.8; this calibration has 0.9"):
        estimates[0].interval(0.8)


def test_other_schedules_are_calibrated_by_all_together(calibrated, make_window):
    (estimate,), _, _ = run(calibrated, make_window(calibrated.domain), 1, "adaptive:9")
    assert estimate.calibrated
    (estimate,), _, _ = run(calibrated, make_window(calibrated.domain), 1, "8", "16")
    assert not estimate.calibrated


def test_on_another_grid_a_calibration_says_nothing(calibrated, make_window, make_domain):
    (estimate,), _, _ = run(calibrated, make_window(make_domain((64, 64))), 1, "4")
    assert not estimate.calibrated


def test_controllers_choose_by_usual_errors(calibrated, make_window):
    """Errors that double from patch to patch, from its calibration."""
    seen = []

    class Watching(ot.Adaptive):
        def on(self, task):
            seen.append(task)
            return super().on(task)

    ot.rollout(calibrated, make_window(calibrated.domain), steps=7, schedule=Watching())
    (task,) = seen
    assert (task.errors, task.steps, task.patches) == ({4: 1.0, 8: 2.0, 16: 4.0}, 7, (4, 8, 16))


def test_patches_are_ordered_by_their_cells():
    assert ordered((16, (4, 8), 4, (8, 4), (16, 16)), 2) == (4, (4, 8), (8, 4), (16, 16))
    assert next_coarser(Choice((4, 8), (1, 2)), (4, (4, 8), 8), 2) == Choice(8, (1, 2))
    assert next_coarser(Choice(8, (5, 2)), (4, 8), 2) == Choice(8, (1, 6))
    assert half_moved(Choice((4, 9)), 2) == Choice((4, 9), (2, 4, 0))
    with pytest.raises(ot.PatchError, match="has no half to move its grid by"):
        half_moved(Choice(1), 2)


@pytest.mark.parametrize("value", ["patches", "adaptive:0.1", 3.5, "4--8"])
def test_what_a_rollout_can_not_be_compared_with(value, make_model, make_window):
    model = make_model()
    with pytest.raises(ot.PatchError, match="expected 'patch', 'shift' or the schedule"):
        ot.rollout(model, make_window(model.domain), steps=1, schedule="4", estimate=value)
    assert parse_against(False) is parse_against(None) is None
    assert parse_against(True) == "patch"


def test_values_that_are_not_finite_disagree_with_everything(known):
    class Losing(type(known)):
        def __call__(self, window, patch, shift=0):
            frame = super().__call__(window, patch, shift)
            return frame * math.nan if patch[0] > 4 else frame

    model = Losing()
    frames = ot.rollout(model, model.window(), steps=2, schedule="adaptive:0.1")
    list(frames)
    assert [made.choice.patch for made in frames.records[0]] == [(2,), (2,)]
    assert math.isinf(frames.records[0][0].refused[0][1])
