"""Validation against a direct computation."""

import math
from dataclasses import replace

import pytest
import torch

from overtone.data import WellFolder
from overtone.errors import DataError
from overtone.train.config import ValidConfig
from overtone.train.parallel import Ranks
from overtone.train.validate import Validation, Validator, evenly_spaced

ALONE = Ranks(0, 1, torch.device("cpu"))


class Persistence(torch.nn.Module):
    """Predicts that nothing changes, or blows up."""

    patches, context = (4, 8), 3

    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, window, patch, shift=0):
        return window.fields[:, -1] * self.factor


def validator(waves, batch, **options):
    config = ValidConfig(windows=5, rollouts=3, batch=batch, **options)
    steps = config.rollout_steps
    rollouts = WellFolder(waves, "valid", 3, steps) if steps else None
    return Validator(WellFolder(waves, "valid", 3, 1), rollouts, config, ALONE)


def test_errors_equal_a_plain_computation(waves):
    measure = validator(waves, batch=2, rollout_steps=4)
    found = measure(Persistence())
    data, expected = measure.windows, []
    for index in evenly_spaced(len(data), 5):
        window, target = data[index]
        last, true = window.fields[-1, 0], target[0, 0]
        expected.append(((last - true).square().mean() / (true.var() + 1e-7)).sqrt().item())
    assert found.vrmse["4"] == pytest.approx(sum(expected) / 5, rel=1e-5)
    assert found.vrmse["4"] == found.vrmse["8"]
    assert found.score == found.rollout
    assert found.rollout > found.vrmse["4"]


def test_intervals_are_over_trajectories(waves):
    """Windows of one trajectory count as one: they are averaged, and trajectories are drawn."""
    measure = validator(waves, batch=2, rollout_steps=4)
    found, data = measure(Persistence()), measure.windows
    rows = {}
    for index in evenly_spaced(len(data), 5):
        window, target = data[index]
        last, true = window.fields[-1, 0], target[0, 0]
        error = ((last - true).square().mean() / (true.var() + 1e-7)).sqrt().item()
        place = data.where(index)
        rows.setdefault((place.file, place.trajectory), []).append(error)
    means = [sum(row) / len(row) for row in rows.values()]
    assert found.spreads.keys() == {"4", "8", "rollout"}
    spread = found.spreads["4"]
    assert spread.trajectories == len(means) < 5
    assert spread.value == pytest.approx(sum(means) / len(means), rel=1e-5)
    assert min(means) * 0.999 <= spread.low <= spread.value <= spread.high <= max(means) * 1.001
    assert spread.low < spread.high
    assert "rollout" not in validator(waves, batch=2, rollout_steps=0)(Persistence()).spreads


def test_the_size_of_the_batches_does_not_matter(waves):
    one, many = (validator(waves, batch=b, rollout_steps=2)(Persistence()) for b in (1, 4))
    assert one.vrmse == pytest.approx(many.vrmse, rel=1e-6)
    assert one.rollout == pytest.approx(many.rollout, rel=1e-6)


def test_a_blow_up_is_an_infinite_error_and_no_crash(waves):
    found = validator(waves, batch=2, rollout_steps=3)(Persistence(math.inf))
    assert found.rollout == math.inf
    assert found.vrmse["4"] == math.inf


def test_without_rollouts_the_score_is_the_mean_over_patches():
    assert Validation({"4": 0.1, "8": 0.3}, None).score == pytest.approx(0.2)


def test_the_model_stays_in_its_mode(waves):
    model = Persistence().train()
    validator(waves, batch=2, rollout_steps=0)(model)
    assert model.training


@pytest.mark.parametrize(("num", "wanted"), [(10, 4), (3, 8), (1, 1), (100, 100)])
def test_indices_are_spread_evenly(num, wanted):
    found = evenly_spaced(num, wanted)
    assert len(set(found)) == min(num, wanted)
    assert (found[0], found[-1]) == (0, num - 1) if len(found) > 1 else found == [0]


class Noted(Ranks):
    """The first of two ranks; the other one has found something."""

    def total(self, values):
        return [value + other for value, other in zip(values, [1.0, 1.0, 1.0], strict=True)]

    def gather(self, text):
        return [text, "other.hdf5 trajectory 1 step 2"]


@pytest.mark.parametrize("frame", [2, 4])
def test_data_that_is_not_finite_is_not_a_blow_up(waves, monkeypatch, frame):
    """It is named, whether it is in the window or in the target."""
    read = WellFolder._read

    def spoilt(self, file, trajectory, steps):
        frames = read(self, file, trajectory, steps)
        if steps.start <= frame < steps.stop:
            frames[frame - steps.start] = math.nan
        return frames

    monkeypatch.setattr(WellFolder, "_read", spoilt)
    named = r"split 'valid': .*\.hdf5 trajectory 0 step 0.* `overtone data check`"
    with pytest.raises(DataError, match=named):
        validator(waves, batch=2, rollout_steps=4)(Persistence())


def test_all_ranks_stop_where_one_has_found_such_data(waves):
    measure = replace(validator(waves, batch=2, rollout_steps=0), ranks=Noted(0, 2, ALONE.device))
    with pytest.raises(DataError, match="split 'valid': other.hdf5 trajectory 1 step 2. No model"):
        measure(Persistence())


def test_yardsticks_are_measured_once_by_the_same_windows(waves, monkeypatch):
    measure = validator(waves, batch=2, rollout_steps=4)
    model = Persistence()
    found = measure(model)
    errors = found.yardsticks["persistence"]
    assert errors == {"vrmse": found.vrmse["4"], "rollout": found.rollout}
    data, expected = measure.windows, []
    for index in evenly_spaced(len(data), 5):
        window, target = data[index]
        frame, true = 2 * window.fields[-1, 0] - window.fields[-2, 0], target[0, 0]
        expected.append(((frame - true).square().mean() / (true.var() + 1e-7)).sqrt().item())
    assert found.yardsticks["extrapolation"]["vrmse"] == pytest.approx(sum(expected) / 5, rel=1e-4)
    monkeypatch.setattr("overtone.train.validate.yardsticks", None)
    assert measure(model).yardsticks is found.yardsticks


def test_without_rollouts_yardsticks_have_none_and_one_frame_is_enough_for_one(waves):
    found = validator(waves, batch=2, rollout_steps=0)(Persistence()).yardsticks
    assert {name: errors["rollout"] for name, errors in found.items()} == {
        "persistence": None,
        "extrapolation": None,
    }
    config = ValidConfig(windows=5, batch=2)
    short = Validator(WellFolder(waves, "valid", 1, 1), None, config, ALONE)
    model = Persistence()
    model.context = 1
    assert [*short(model).yardsticks] == ["persistence"]


def test_frames_of_the_first_rollout_are_kept(waves):
    measure = validator(waves, batch=2, rollout_steps=5)
    seen = measure(Persistence(0.9)).glimpse
    assert (seen.steps, seen.schedule) == ((1, 3, 5), "4-8")
    window, target = measure.trajectories[0]
    for i, step in enumerate(seen.steps):
        assert torch.equal(seen.truth[i], target[step - 1])
        torch.testing.assert_close(seen.prediction[i], window.fields[-1] * 0.9**step)
    assert seen.domain.shape == window.domain.shape


def test_without_rollouts_or_on_other_ranks_no_frames_are_kept(waves):
    assert validator(waves, batch=2, rollout_steps=0)(Persistence()).glimpse is None
    measure = validator(waves, batch=2, rollout_steps=2)
    second = replace(measure, ranks=replace(ALONE, rank=1))
    seen: list = []
    second._rollout(Persistence(), seen)
    assert not seen
