import pytest
import torch
import torch.nn.functional as F
from torch import nn

import overtone as ot
from overtone.flexify.patching import Patching
from overtone.flexify.positions import GridPositions, TokenPositions, find_positions


def patching(base=8, patch=4, grid=(4, 6), cells=None):
    ndim = len(grid or cells)
    periodic = (True,) * ndim
    base, patch = (base,) * ndim, (patch,) * ndim
    return Patching(base, (base, patch), "ckm", "keep", periodic, grid, patch, cells)


def torch_resize(grid_last, size):
    """torch's own bicubic interpolation of `(h, w, D)`."""
    x = grid_last.movedim(-1, 0)[None]
    resized = F.interpolate(x, size=size, mode="bicubic", antialias=True)
    return resized[0].movedim(0, -1)


@pytest.mark.parametrize(("patch", "size"), [(4, (8, 12)), (2, (16, 24)), (16, (2, 3))])
def test_all_layouts_are_interpolated_as_torch_does(patch, size):
    grid = torch.randn(4, 6, 5)
    expected = torch_resize(grid, size)
    at = patching(patch=patch)
    for lead in ((), (1,)):
        last = GridPositions(last=True)(grid.reshape(*lead, 4, 6, 5), at)
        assert last.shape == (*lead, *size, 5)
        assert torch.allclose(last.reshape(expected.shape), expected, atol=1e-5)
        first = GridPositions(last=False)(grid.movedim(-1, 0).reshape(*lead, 5, 4, 6), at)
        assert first.shape == (*lead, 5, *size)
        assert torch.allclose(first.reshape(5, *size).movedim(0, -1), expected, atol=1e-5)


def test_prefix_tokens_stay():
    value = torch.randn(1, 3 + 24, 5)
    view = TokenPositions("pos", (0, 1, 3))
    result = view(value, patching())
    assert torch.equal(result[:, :3], value[:, :3])
    expected = torch_resize(value[0, 3:].reshape(4, 6, 5), (8, 12))
    assert torch.allclose(result[0, 3:].reshape(8, 12, 5), expected, atol=1e-5)


def test_linear_functions_of_place_are_kept_inside():
    """The embedding is a field: the same place has the same vector at every patch."""
    at = patching(grid=(16, 16), patch=4)
    place = (torch.arange(16) + 0.5) / 16
    fine = (torch.arange(32) + 0.5) / 32
    value = torch.stack(torch.meshgrid(place, place, indexing="ij"), dim=-1)
    expected = torch.stack(torch.meshgrid(fine, fine, indexing="ij"), dim=-1)
    result = GridPositions(last=True)(value, at)
    assert torch.allclose(result[4:-4, 4:-4], expected[4:-4, 4:-4], atol=1e-5)


def test_grid_from_what_the_encoder_saw():
    value = torch.randn(1, 24, 5)
    seen = patching(grid=None, cells=(32, 48))
    told = patching()
    view = TokenPositions("pos", (0, 1))
    assert torch.equal(view(value, seen), view(value, told))
    # the same number of tokens in another shape is another grid
    other = patching(grid=None, cells=(16, 96))
    assert not torch.allclose(view(value, other), view(value, told))


def test_used_before_the_encoder_ran():
    unknown = patching(grid=None, cells=(32, 48))
    unknown.cells = None
    with pytest.raises(ot.PatchError, match="before the encoder ran"):
        TokenPositions("pos", (0,))(torch.randn(1, 24, 5), unknown)
    with pytest.raises(ot.PatchError, match="before its encoder ran"):
        unknown.tokens  # noqa: B018


class Embeddings(nn.Module):
    def __init__(self, **shapes):
        super().__init__()
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(shape)))
        self.register_buffer("position_encoding", torch.randn(1, 4, 6, 16))


SHAPES = {
    "pos_embed": (1, 25, 16),
    "decoder_pos_embed": (1, 25, 8),
    "absolute_pe": (4, 6, 16),
    "position_embeddings": (1, 16, 4, 6),
    "temporal_pos_embed": (1, 24, 16),
    "pos_emb_of_words": (1, 77, 16),
    "weight": (1, 24, 16),
}


def test_found_by_name_and_shape():
    model = Embeddings(**SHAPES)
    found = find_positions(model, None, ndim=2, grid=(4, 6), width=16)
    assert found == {
        "pos_embed": TokenPositions("pos_embed", (0, 1, 0)),
        "decoder_pos_embed": TokenPositions("decoder_pos_embed", (0, 1, 0)),
        "absolute_pe": GridPositions(last=True),
        "position_embeddings": GridPositions(last=False),
        "position_encoding": GridPositions(last=True),
    }


def test_named_by_the_user():
    model = Embeddings(**SHAPES)
    found = find_positions(model, {"w*": "tokens"}, ndim=2, grid=(4, 6), width=16)
    assert found == {"weight": TokenPositions("weight", None)}
    assert find_positions(model, {}, ndim=2, grid=(4, 6), width=16) == {}
    with pytest.raises(ot.PatchError, match=r"layout 'last', \(1, \*grid, D\); its shape is"):
        find_positions(model, {"weight": "last"}, ndim=3, grid=None, width=16)
    view = TokenPositions("weight", None)
    with pytest.raises(ot.PatchError, match="too few for the grid"):
        view(torch.randn(1, 20, 5), patching())


def test_an_ambiguous_shape_is_asked_about():
    model = Embeddings(pos_embed=(1, 4, 4, 4))
    with pytest.raises(ot.PatchError, match="channels first or last; say which"):
        find_positions(model, None, ndim=2, grid=None, width=4)


def test_one_axis():
    for name, shape in (("tokens", (1, 9, 5)), ("first", (1, 5, 8))):
        model = Embeddings(pos_embed=shape)
        found = find_positions(model, None, ndim=1, grid=None, width=5)["pos_embed"]
        assert isinstance(found, TokenPositions if name == "tokens" else GridPositions)
        result = found(model.pos_embed, patching(grid=(8,)))
        assert result.shape == ((1, 17, 5) if name == "tokens" else (1, 5, 16))
