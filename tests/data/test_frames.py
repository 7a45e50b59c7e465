"""Arrays of any layout and Well files give the same frames, one at a time."""

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec
from overtone.data.frames import choose_split, open_frames

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
