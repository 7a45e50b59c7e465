"""Arrays of any layout and Well files give the same frames, one at a time.

Predictions and truths are then lined up, or the reason why not is given.
"""

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec
from overtone.data.frames import Frames, choose_split, match, open_frames

ARRAY = np.random.default_rng(0).standard_normal((2, 5, 3, 4, 6))


def save(path, array):
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, anything=array)
    else:
        pytest.importorskip("zarr").save(str(path), array)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".zarr"])
@pytest.mark.parametrize("layout", [None, "btcxy", "bctyx", "xybtc", "tybxc"])
@pytest.mark.filterwarnings("ignore::UserWarning:zarr", "ignore::FutureWarning:zarr")
def test_any_order_of_axes(tmp_path, suffix, layout):
    order = ["btcxy".index(letter) for letter in layout or "btcxy"]
    path = save(tmp_path / f"a{suffix}", ARRAY.transpose(order))
    with open_frames(path, layout=layout) as frames:
        assert (frames.name, frames.shape, frames.lengths) == (path.name, (4, 6), (5, 5))
        assert (frames.num_channels, frames.channels, frames.domain) == (3, (), None)
        assert np.array_equal(frames.read(1, 3).numpy(), ARRAY[1, 3])


@pytest.mark.parametrize(
    ("index", "layout"),
    [
        (np.s_[0], "tcxy"),
        (np.s_[0, :, 0], "txy"),
        (np.s_[0, 0, 0], "xy"),
        (np.s_[:, 0, :, 0], "bcx"),
    ],
)
def test_axes_that_are_missing_have_length_one(tmp_path, index, layout):
    path = save(tmp_path / "a.npy", ARRAY[index])
    with open_frames(path, layout=layout) as frames:
        shape = (frames.num_channels, *frames.shape)
        assert frames.read(0, 0).shape == shape
        assert len(frames.lengths) * frames.lengths[0] * np.prod(shape) == ARRAY[index].size


def test_one_array_for_each_field(tmp_path):
    fields = {"rho": ARRAY[:, :, 0], "u": np.moveaxis(ARRAY[:, :, 1:], 2, -1), "time": np.arange(5)}
    np.savez(tmp_path / "a.npz", **fields)
    with open_frames(tmp_path / "a.npz") as frames:
        assert frames.channels == ("rho", "u_x", "u_y")
        assert np.array_equal(frames.read(0, 2).numpy(), ARRAY[0, 2])


def test_a_well_folder(make_folder, stack):
    specs = (FieldSpec("a"), FieldSpec("u", 1))
    folder, values = make_folder(files=(0, 0, 2), num=2, steps=4, specs=specs)
    expected = [stack(v, 2, 4, (6, 8)) for v in values["test"]]
    with open_frames(folder) as frames:
        assert frames.channels == ("a", "u_x", "u_y")
        assert frames.lengths == (4,) * 4
        assert frames.domain.periodic == (True, True)
        for sample in range(4):
            for step in range(4):
                frame = expected[sample // 2][sample % 2, step]
                assert np.array_equal(frames.read(sample, step).numpy(), frame)


def test_the_split_that_is_read_if_none_is_asked_for(make_folder):
    folder, _ = make_folder(files=(1, 1, 1))
    assert choose_split(folder) == "test"
    for split in ("train", "test"):
        for file in (folder / "data" / split).iterdir():
            file.unlink()
        (folder / "data" / split).rmdir()
    assert choose_split(folder) == "valid"


def test_arrays_are_read_frame_by_frame(tmp_path):
    """The file is mapped, and a frame is a copy of its own."""
    path = save(tmp_path / "a.npy", ARRAY)
    with open_frames(path) as frames:
        frame = frames.read(0, 0)
    assert frame.untyped_storage().nbytes() == 8 * 3 * 4 * 6
    assert torch.equal(frame, torch.from_numpy(ARRAY[0, 0]))


def test_mistakes_are_explained(tmp_path):
    path = save(tmp_path / "a.npy", ARRAY)
    flat = save(tmp_path / "flat.npy", ARRAY[0, :, 0])
    words = save(tmp_path / "words.npy", np.full((1, 2, 3, 4), "x"))
    mixed = tmp_path / "mixed.npz"
    np.savez(mixed, a=np.zeros((1, 2, 4)), b=np.zeros((1, 2, 5)))
    (tmp_path / "a.csv").write_text("1,2")
    cases = [
        (tmp_path / "no.npy", None, "does not exist"),
        (tmp_path / "nowhere", None, "does not exist"),
        (tmp_path / "a.csv", None, "of no known kind"),
        (path, "btxy", "5 axes|4 axes for the layout 'btxy'"),
        (path, "btcxx", "layout is 'btcxx'"),
        (path, "btcxz", "layout is 'btcxz'"),
        (path, "btcqx", "layout is 'btcqx'"),
        (flat, None, r"an array \(5, 4, 6\); expected \(n, T, C, \*S\).*--layout txy"),
        (words, None, "expected numbers"),
        (mixed, None, "the same samples, frames and cells"),
    ]
    for source, layout, message in cases:
        with pytest.raises(ot.DataError, match=message), open_frames(source, layout=layout):
            pass


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
