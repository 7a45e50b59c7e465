"""The patch in use: chosen for a `with` block, checked, restored."""

import pytest
import torch
from torch import nn

import overtone as ot
from overtone.flexify.patching import find_patchings


@pytest.fixture
def model():
    parts = nn.Conv2d(1, 6, 8, 8), nn.ConvTranspose2d(6, 1, 8, 8)
    return ot.flexify(nn.Sequential(*parts), "0", "1", patches=(2, 4, (4, 8)))


def current(model):
    (patching,) = find_patchings(model)
    return patching.patch


def test_contexts_nest_and_restore(model):
    assert current(model) == (8, 8)
    with ot.patch(model, 4) as same:
        assert same is model
        assert current(model) == (4, 4)
        with ot.patch(model, (4, 8)):
            assert current(model) == (4, 8)
        assert current(model) == (4, 4)
    assert current(model) == (8, 8)


def test_restored_after_an_exception(model):
    with pytest.raises(RuntimeError), ot.patch(model, 4):
        raise RuntimeError
    assert current(model) == (8, 8)
    with ot.patch(model, 4), pytest.raises(ot.PatchError, match="does not divide the grid"):
        model(torch.randn(1, 1, 18, 16))
    assert current(model) == (8, 8)


def test_a_patch_for_each_axis(model):
    with ot.patch(model, (4, 8)):
        assert model[0](torch.randn(1, 1, 16, 16)).shape == (1, 6, 4, 2)


def test_unknown_patches_are_refused_unless_asked_for(model):
    known = r"not flexified for patch 5; it knows 2, 4, \(4, 8\), 8"
    with pytest.raises(ot.PatchError, match=known), ot.patch(model, 5):
        pass
    with ot.patch(model, 5, allow_untrained=True):
        assert model(torch.randn(1, 1, 15, 20)).shape == (1, 1, 15, 20)
    with pytest.raises(ot.PatchError, match="positive"), ot.patch(model, 0, allow_untrained=True):
        pass


def test_a_model_that_is_not_flexible():
    message = "Linear has no flexible layers"
    with pytest.raises(ot.PatchError, match=message), ot.patch(nn.Linear(1, 1), 4):
        pass


def test_two_flexible_models_in_one_module(model):
    other = ot.flexify(nn.Sequential(nn.Conv2d(1, 6, 4, 4)), "0", None, patches=(2,))
    both = nn.ModuleList([model, other])
    with ot.patch(both, 2):
        assert current(model) == current(other) == (2, 2)
    assert (current(model), current(other)) == ((8, 8), (4, 4))
    with pytest.raises(ot.PatchError), ot.patch(both, 8):  # the other does not know it
        pass
    assert current(model) == (8, 8)
