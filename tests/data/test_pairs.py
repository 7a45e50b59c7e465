"""Predictions and truths are lined up, or the reason why not is given."""

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data.frames import Frames
from overtone.data.pairs import match


def frames(values, channels=(), name="a"):
    """Frames from an array `(n, T, C, *S)`."""
    return Frames(
        name,
        tuple(values.shape[3:]),
        (values.shape[1],) * len(values),
        values.shape[2],
        channels,
        None,
        lambda sample, step: torch.from_numpy(values[sample, step]),
    )


@pytest.fixture
def values():
    return np.random.default_rng(0).standard_normal((2, 6, 3, 4, 4))


def test_fields_are_matched_by_name(values):
    prediction = frames(values[:, :, [2, 0]], ("c", "a"), "pred")
    pair = match(prediction, frames(values + 1, ("a", "b", "c"), "true"))
    assert pair.fields == ("a", "c")
    assert pair.notes == ("Only 'true' has b: left out.",)
    predicted, true = pair.read(1, 4)
    assert torch.allclose(predicted + 1, true)


def test_one_field_or_its_components(values):
    names = ("rho", "u_x", "u_y")
    both = frames(values, names), frames(values + 1, names)
    assert match(*both, field="u").fields == ("u_x", "u_y")
    assert match(*both, field="u_y").fields == ("u_y",)
    with pytest.raises(ot.DataError, match="no field 'rhu'.*did you mean 'rho'"):
        match(*both, field="rhu")


def test_channels_without_names_are_matched_by_position(values):
    assert match(frames(values), frames(values + 1, ("a", "b", "c"))).fields == ("a", "b", "c")
    assert match(frames(values), frames(values + 1)).fields[2] == "channel_2"


def test_context_frames_are_left_out(values):
    predicted = values + 1
    predicted[:, :2] = values[:, :2]
    pair = match(frames(predicted), frames(values))
    assert (pair.start, pair.lengths, pair.steps) == (2, (4, 4), 4)
    assert "first 2 frames equal the truth" in pair.notes[0]
    assert torch.equal(pair.read(0, 1)[1], torch.from_numpy(values[0, 2]))


@pytest.mark.parametrize("shorter", ["prediction", "truth"])
def test_the_shorter_one_counts(values, shorter):
    long, short = frames(values), frames(values[:, :4] + 1)
    pair = match(short, long) if shorter == "prediction" else match(long, short)
    assert pair.lengths == (4, 4)
    assert pair.notes == (f"The {shorter} is the shorter one: 4 frames of 6 are compared.",)


def test_a_truth_that_is_not_finite(values):
    bad = values.copy()
    bad[1, 3, 0, 0, 0] = np.nan
    pair = match(frames(values + 1), frames(bad, name="t"))
    pair.read(1, 3)
    with pytest.raises(ot.DataError, match="truth 't' holds values.*sample 1, frame 3"):
        pair.read(1, 4)


def test_what_can_not_be_compared(values):
    cases = [
        (values[..., :2], r"grid of \(4, 2\) cells.*on \(4, 4\)"),
        (values[:1], "has 1 samples.*has 2"),
        (values[:, :, :2], "has 2 channels.*has 3"),
        (values, "equals 'true' in all 6 frames"),
    ]
    for prediction, message in cases:
        with pytest.raises(ot.DataError, match=message):
            match(frames(prediction), frames(values, name="true"))
    with pytest.raises(ot.DataError, match="none in common"):
        match(frames(values, ("a", "b", "c")), frames(values, ("x", "y", "z")))
