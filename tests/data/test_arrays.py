"""Windows of arrays are those of the same data in files."""

import numpy as np
import pytest
import torch

from overtone.data import ArrayWindows, WellFolder
from overtone.domain import Domain
from overtone.errors import DataError, DomainError
from overtone.solvers.datasets import build_system, generate

DOMAIN = Domain((8, 6), (1.0, 1.0), "periodic", ("a", "b"), 0.1)


def arrays(num=4, frames=10):
    random = np.random.default_rng(0)
    return random.standard_normal((num, frames, 2, 8, 6)).astype("float32")


def test_items_are_those_of_a_folder(tmp_path):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = generate(system, tmp_path, trajectories=3, steps=9, splits=(1.0, 0.0, 0.0), per_file=2)
    files = WellFolder(folder, "train", 3, 2)
    whole = [files.frames(i, 0, 9).fields for i in range(3)]
    memory = ArrayWindows(whole, files.domain, 3, 2)
    assert len(memory) == len(files) == 15
    for (window, target), (expected, following) in zip(memory, files, strict=True):
        assert torch.equal(window.fields, expected.fields)
        assert torch.equal(target, following)
        assert window.domain == expected.domain


def test_items_are_copies():
    data = ArrayWindows(arrays(), DOMAIN, 2)
    data[0][0].fields.zero_()
    assert data[0][0].fields.abs().sum() > 0


def test_every_window_has_a_place():
    data = ArrayWindows([arrays()[0], arrays()[1, :5]], DOMAIN, 2, 2)
    assert [data.where(i) for i in (0, 6, 7, 8, -1)] == [(0, 0), (0, 6), (1, 0), (1, 1), (1, 1)]
    with pytest.raises(IndexError):
        data[9]
    assert "2 trajectories of 5 to 10 frames, 9 windows of 2 + 2 frames" in repr(data)


def test_a_tenth_of_the_trajectories_is_held_out():
    data = ArrayWindows(arrays(20, 6), DOMAIN, 2)
    train, valid = data.hold_out()
    assert (len(train.trajectories), len(valid.trajectories)) == (18, 2)
    held = {frames.data_ptr() for frames in valid.trajectories}
    assert held.isdisjoint(frames.data_ptr() for frames in train.trajectories)
    assert len(ArrayWindows(arrays(2), DOMAIN, 2).hold_out()[1].trajectories) == 1


def test_a_single_trajectory_is_divided_in_time():
    data = ArrayWindows(arrays(1, 20), DOMAIN, 2)
    train, valid = data.hold_out()
    assert (len(train.trajectories[0]), len(valid.trajectories[0])) == (16, 4)
    with pytest.raises(DataError, match="one trajectory of 5 frames, too few .*valid="):
        ArrayWindows(arrays(1, 5), DOMAIN, 2).hold_out()


def test_the_fingerprint_knows_values_shape_and_domain():
    other = arrays()
    other[3, 9, 1, 7, 5] += 1e-3
    slower = Domain((8, 6), (1.0, 1.0), "periodic", ("a", "b"), 0.2)
    made = [
        ArrayWindows(arrays(), DOMAIN, 2), ArrayWindows(other, DOMAIN, 2),
        ArrayWindows(arrays(), slower, 2), ArrayWindows(arrays(3), DOMAIN, 2),
    ]  # fmt: skip
    assert len({data.fingerprint() for data in made}) == 4
    assert made[0].fingerprint() == made[0].again(context=3, horizon=2).fingerprint()


def spoilt():
    bad = arrays()
    bad[2, 3, 1, 4, 5] = np.nan
    return bad


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (arrays()[0], DataError, r"shape \(2, 8, 6\); expected \(T, 2, 8, 6\)"),
        (arrays()[:, :, 0], DataError, r"A single field needs its axis, too: array\[:, :, None\]"),
        (spoilt(), DataError, r"trajectory 2 .*frame 3, field 'b', cell \(4, 5\)"),
        (arrays().astype(int), DomainError, "array of int64"),
        (arrays() * 1j, DomainError, "array of complex"),
        (arrays(4, 2), DataError, "trajectory 0 has 2 frames; context 2 and horizon 1 need 3"),
        (np.full((1, 4, 2, 8, 6), 1e300), DataError, "NaN or infinite, as float32"),
        ([], DataError, "arrays is empty"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_no_trajectory_is_refused(given, kind, message):
    with pytest.raises(kind, match=message):
        ArrayWindows(given, DOMAIN, 2)


@pytest.mark.parametrize("dtype", [">f4", "f8", "f2"])
def test_floats_of_all_kinds_become_float32(dtype):
    window, _ = ArrayWindows(arrays().astype(dtype), DOMAIN, 2)[0]
    assert window.fields.dtype == torch.float32
    torch.testing.assert_close(window.fields, torch.tensor(arrays()[0, :2]), rtol=2e-3, atol=1e-3)
