"""Numbers that a model has stored about its grid follow the patch."""

import pytest
import torch
from torch import nn

import overtone as ot
from overtone.flexify.sizes import StoredCount, StoredGrid, StoredPatch, find_sizes


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.resolution = [4, 6]
        self.window = (4, 6)
        self.num_heads = 8


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_size, self.grid_size, self.num_patches = 8, (4, 6), 24
        self.resolution = (32, 48)  # of the field, in cells: must not follow
        self.embed = nn.Conv2d(1, 8, 8, 8)
        self.blocks = nn.ModuleList([Inner(), Inner()])
        self.pos_embed = nn.Parameter(torch.randn(1, 24, 8))


def test_known_names_follow_where_the_value_fits():
    found = find_sizes(Sizes(), {}, base=(8, 8), grid=(4, 6))
    assert found == {
        "patch_size": StoredPatch(),
        "grid_size": StoredGrid(),
        "num_patches": StoredCount(),
        "blocks.0.resolution": StoredGrid(),
        "blocks.1.resolution": StoredGrid(),
    }
    assert find_sizes(Sizes(), {}, base=(8, 8), grid=None) == {"patch_size": StoredPatch()}
    assert find_sizes(Sizes(), {}, base=(8, 4), grid=None) == {}


def test_named_by_the_user():
    follow = {"blocks.*.window": "grid", "patch_size": "keep"}
    found = find_sizes(Sizes(), follow, base=(8, 8), grid=(4, 6))
    assert found["blocks.1.window"] == StoredGrid()
    assert "patch_size" not in found
    with pytest.raises(ot.PatchError, match="takes 'resolution' for the grid, but it is"):
        find_sizes(Sizes(), {"resolution": "grid"}, base=(8, 8), grid=(4, 6))
    with pytest.raises(ot.PatchError, match="expected one of"):
        find_sizes(Sizes(), {"resolution": "cells"}, base=(8, 8), grid=(4, 6))


def test_values_follow_in_their_own_form_and_come_back():
    model = ot.flexify(Sizes(), "embed", None, patches=(4, (4, 8)))
    inner = model.blocks[0]
    with ot.patch(model, 4):
        assert (model.patch_size, model.grid_size, model.num_patches) == (4, (8, 12), 96)
        assert inner.resolution == [8, 12]
        assert model.resolution == (32, 48)
        model.embed(torch.randn(1, 1, 64, 32))  # a field of another size
        assert (model.grid_size, model.num_patches) == ((16, 8), 128)
    assert (model.patch_size, model.grid_size, inner.resolution) == (8, (4, 6), [4, 6])
    with ot.patch(model, (4, 8)):
        assert model.grid_size == (8, 6)
        with pytest.raises(ot.PatchError, match="one int for all axes"):
            model.patch_size  # noqa: B018


def test_the_model_may_still_set_them():
    model = ot.flexify(Sizes(), "embed", None, patches=(4,))
    model.num_patches = 7
    assert model.num_patches == 7
    model.pos_embed = nn.Parameter(torch.zeros(1, 24, 8))
    assert not model.state_dict()["pos_embed"].any()
