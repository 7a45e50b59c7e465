"""A rollout beside the truth, from whatever holds a trajectory."""

import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import ArrayWindows, WellFolder
from overtone.errors import DataError, PatchError
from overtone.report.figures.rollout import plot_rollout
from overtone.solvers.datasets import build_system, generate


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = tmp_path_factory.mktemp("waves")
    return generate(system, folder, trajectories=3, steps=14, splits=(0.34, 0.33, 0.33))


@pytest.fixture
def model(waves):
    domain = WellFolder(waves, "test").domain
    small = {"width": 24, "heads": 2, "blocks": 2, "mlp_dim": 32}
    return ot.build("vit", domain=domain, patches=(4, 8), context=3, **small)


def lines(figure, axes):
    return [line.get_ydata() for line in figure.axes[axes].get_lines()]


def test_what_is_drawn_is_the_rollout_and_the_truth(waves, model):
    truth = WellFolder(waves, "test").frames(0, 0, 14)
    figure = plot_rollout(model, waves, steps=6, start=2, schedule="4-8")
    window = ot.Window(truth.fields[None, 2:5], truth.domain)
    frames = list(ot.rollout(model, window, steps=6, schedule="4-8"))
    (true, predicted), last = lines(figure, 2), 10
    np.testing.assert_array_equal(true, truth.fields[last, 0])
    np.testing.assert_allclose(predicted, frames[-1][0, 0], rtol=1e-6)  # pyright: ignore[reportCallIssue]
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert ot.plot_rollout is plot_rollout


def test_all_that_holds_a_trajectory_is_drawn_alike(waves, model):
    data = WellFolder(waves, "test")
    frames = data.frames(0, 0, 14).fields
    given = (waves, str(waves), data, frames, frames.numpy(),
             ArrayWindows([frames], data.domain))  # fmt: skip
    drawn = [lines(plot_rollout(model, one), 2) for one in given]
    for other in drawn[1:]:
        np.testing.assert_array_equal(other, drawn[0])


def test_several_schedules_are_drawn_together(waves, model):
    figure = plot_rollout(model, waves, schedule=[4, "4-8", ot.Constant(8)], steps=3)
    assert len(lines(figure, 0)) == 4
    usual = plot_rollout(model, waves, steps=3)
    np.testing.assert_array_equal(lines(usual, 2)[1], lines(figure, 2)[2])


def test_a_model_without_patches_is_drawn_too(waves, model):
    unet = ot.baseline("persistence", domain=model.domain, context=3)
    true, predicted = lines(plot_rollout(unet, waves, steps=3), 2)
    assert not np.array_equal(true, predicted)


def test_what_can_not_be_drawn_is_refused(waves, model):
    with pytest.raises(DataError, match="steps is 30 .* has 14 frames, of which 3 .* 1 to 11"):
        plot_rollout(model, waves, steps=30)
    with pytest.raises(DataError, match="data is a int; expected a Well folder"):
        plot_rollout(model, 3)
    with pytest.raises(DataError, match=r"shape \(3, 1, 2, 64\); expected"):
        plot_rollout(model, torch.zeros(3, 1, 2, 64))
    with pytest.raises(PatchError, match="patch 16 was not trained for"):
        plot_rollout(model, waves, schedule=16, steps=2)
