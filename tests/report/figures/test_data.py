"""Frames of a dataset: which are drawn, where, on which scales."""

import h5py
import numpy as np
import pytest
import torch
from matplotlib import image
from matplotlib.colors import LogNorm

import overtone as ot
from overtone.data import FieldSpec, Header, from_arrays, write_well
from overtone.report.figures import data
from overtone.report.figures.data import MAX_CHANNELS, picture, trajectory_frames
from overtone.report.style import save_as

NAMES = ("a", "b", "c")


def make(shape, fields=("a", "b"), frames=9):
    domain = ot.Domain(shape, tuple(n / 4 for n in shape), "periodic", fields, 0.25)
    torch.manual_seed(0)
    return torch.randn(frames, len(fields), *shape, dtype=torch.float64), domain


def panels(figure):
    """The image and the axes of each panel, row by row, without colour bars."""
    return [(axes.images[0], axes) for axes in figure.axes if axes.get_subplotspec()]


def bars(figure):
    return [axes.get_ylabel() for axes in figure.axes if not axes.get_subplotspec()]


@pytest.mark.parametrize("shape", [(6, 8), (4, 5, 6)])
def test_channels_go_down_and_evenly_spread_times_across(shape):
    values, domain = make(shape)
    figure = trajectory_frames(values, domain, NAMES[: len(shape)], 3)
    planes = values if len(shape) == 2 else values[..., 3]
    shown = [planes[step, channel] for channel in (0, 1) for step in (0, 4, 8)]
    for (drawn, _), plane in zip(panels(figure), shown, strict=True):
        np.testing.assert_array_equal(drawn.get_array(), plane.T)
        assert drawn.origin == "lower"
        assert drawn.get_extent() == [0, domain.extent[0], 0, domain.extent[1]]
    titles = [axes.get_title() for _, axes in panels(figure)]
    assert titles == ["t = 0", "t = 1", "t = 2", "", "", ""]
    assert [axes.get_xlabel() for _, axes in panels(figure)] == ["", "", "", "a", "a", "a"]
    assert [axes.get_ylabel() for _, axes in panels(figure)] == ["b", "", "", "b", "", ""]
    assert bars(figure) == ["a", "b"]


def test_one_axis_is_drawn_over_space_and_time():
    values, domain = make((7,))
    figure = trajectory_frames(values, domain, ("x",), 3)
    for channel, (drawn, axes) in enumerate(panels(figure)):
        np.testing.assert_array_equal(drawn.get_array(), values[:, channel].T)
        assert drawn.get_extent() == [0, 9 * 0.25, 0, 7 / 4]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("t", "x")
    assert bars(figure) == ["a", "b"]


@pytest.mark.parametrize("shape", [(8,), (8, 8)])
def test_names_are_text(shape, tmp_path):
    hostile, said = "$\\oops$\x1b[2J模🙂", r"\$\oops\$\x1b[2J模🙂"
    values, domain = make(shape, fields=(hostile, "_b"))
    figure = trajectory_frames(values, domain, (hostile, "_y")[: len(shape)], 1)
    assert bars(figure) == [said, " _b"]
    save_as(figure, tmp_path / "x.svg")
    assert "\x1b" not in (tmp_path / "x.svg").read_text()
    header = Header("walk", shape, (1.0,) * len(shape), "periodic", 0.1)
    write_well(tmp_path / "a.hdf5", {"u": np.zeros((1, 2, *shape), np.float32)}, header)
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        file.attrs["dataset_name"] = hostile
    assert picture(tmp_path / "a.hdf5", tmp_path / "x.png").exists()


def test_a_channel_has_one_scale_for_all_times_that_fits_its_signs():
    values, domain = make((6, 8), fields=("signed", "positive", "steep"))
    values[:, 1] = values[:, 1].abs() + 0.1
    values[:, 2] = (6 * values[:, 2]).exp()
    drawn = [picture for picture, _ in panels(trajectory_frames(values, domain, NAMES, 2))]
    signed, positive, steep = drawn[0:2], drawn[2:4], drawn[4:6]
    bound = values[:, 0].abs().max().item()
    assert {(p.get_clim(), p.get_cmap().name) for p in signed} == {((-bound, bound), "RdBu_r")}
    limits = values[:, 1].min().item(), values[:, 1].max().item()
    assert {(p.get_clim(), p.get_cmap().name) for p in positive} == {(limits, "viridis")}
    assert all(isinstance(p.norm, LogNorm) for p in steep)
    assert not any(isinstance(p.norm, LogNorm) for p in signed + positive)


def test_the_first_of_many_channels_are_drawn():
    values, domain = make((4, 4), fields=tuple(f"f{i}" for i in range(MAX_CHANNELS + 2)))
    figure = trajectory_frames(values, domain, NAMES, 1)
    assert bars(figure) == list(domain.fields[:MAX_CHANNELS])
    with pytest.raises(ot.DataError, match="frames is 0"):
        trajectory_frames(values, domain, NAMES, 0)


@pytest.fixture
def folder(tmp_path):
    header = Header("toy", (6, 8), (1.5, 2.0), "periodic", 0.25)
    spec = FieldSpec("a")
    values = np.zeros(spec.stored_shape(2, 9, (6, 8)))
    values[1] = 1.0 + np.arange(8)  # one colour for each y, in the second trajectory alone
    write_well(tmp_path / "toy/data/valid/toy_0.hdf5", {spec: values}, header)
    return tmp_path / "toy"


def test_a_picture_of_the_trajectory_that_was_asked_for(folder, tmp_path):
    paths = [
        picture(folder, tmp_path / "deep" / f"{i}.png", split="valid", trajectory=i, frames=1)
        for i in (0, 1)
    ]
    still, striped = (image.imread(path) for path in paths)
    assert still.shape == striped.shape
    height, width = still.shape[:2]
    # Down a line through the middle of the panel: one colour, and one for each of eight cells.
    inside = slice(height // 4, 3 * height // 4), width // 2
    assert len(np.unique(still[inside], axis=0)) == 1
    assert 3 <= len(np.unique(striped[inside], axis=0)) <= 10


def test_no_such_trajectory(folder, tmp_path):
    with pytest.raises(ot.DataError, match="has 0 to 1 in split 'valid'"):
        picture(folder, tmp_path / "a.png", split="valid", trajectory=9)


def test_of_long_trajectories_some_frames_are_read(tmp_path, monkeypatch):
    """Times are those of the frames that are drawn, whatever is left out between them."""
    values = np.arange(9.0)[:, None, None] + np.zeros((9, 4, 5))
    found = from_arrays(values, layout="txy", dt=0.5)
    drawn = []

    def keep(frames, domain, axes, count):
        drawn.append((frames[:, 0, 0, 0].tolist(), domain.dt))
        return trajectory_frames(frames, domain, axes, count)

    monkeypatch.setattr(data, "trajectory_frames", keep)
    monkeypatch.setattr(data, "MAX_FRAMES", 5)
    data.draw(found, tmp_path / "a.png")
    monkeypatch.setattr(data, "MAX_FRAMES", 9)
    data.draw(found, tmp_path / "b.png")
    assert drawn == [([0, 2, 4, 6, 8], 1.0), (list(range(9)), 0.5)]
