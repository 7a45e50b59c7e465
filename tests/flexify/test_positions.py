"""Position embeddings and bias tables keep what they say about places at every patch."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import overtone as ot
from overtone.flexify.patching import Patching
from overtone.flexify.positions import (
    GridPositions,
    TokenPositions,
    displacement_index,
    displacement_matrix,
    find_positions,
    find_tables,
)


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


def test_index_tells_pairs_apart_by_displacement_alone():
    window = (3, 4)
    index = displacement_index(window, class_token=False)
    places = list(itertools.product(range(3), range(4)))
    seen = {}
    for (i, a), (j, b) in itertools.product(enumerate(places), repeat=2):
        displacement = (a[0] - b[0], a[1] - b[1])
        assert seen.setdefault(displacement, index[i, j].item()) == index[i, j].item()
    assert sorted(seen.values()) == list(range(5 * 7))


def test_displacements_at_the_same_distance_have_the_same_bias():
    matrix = displacement_matrix(4, 8)  # twice as many tokens
    table = torch.randn(7, dtype=torch.float64)
    fine = matrix @ table
    assert torch.allclose(fine[1::2], table)  # displacements -6, -4, … 6 are -3, -2, … 3
    assert torch.allclose(fine[2:-1:2], (table[:-1] + table[1:]) / 2)
    assert torch.allclose(displacement_matrix(4, 4), torch.eye(7, dtype=torch.float64))
    coarse = displacement_matrix(8, 4) @ torch.arange(-7.0, 8.0, dtype=torch.float64)
    assert coarse.tolist() == [-6, -4, -2, 0, 2, 4, 6]


class Attention(nn.Module):
    """Attention over a whole grid with a bias of relative positions."""

    def __init__(self, window, width=8, heads=2, *, class_token=False):
        super().__init__()
        self.window_size = window
        self.window_area = window[0] * window[1]
        rows = (2 * window[0] - 1) * (2 * window[1] - 1) + 3 * class_token
        self.relative_position_bias_table = nn.Parameter(torch.randn(rows, heads))
        index = displacement_index(window, class_token).long()
        self.register_buffer("relative_position_index", index)

    def bias(self):
        table = self.relative_position_bias_table[self.relative_position_index.view(-1)]  # pyright: ignore[reportCallIssue]
        return table.view(*self.relative_position_index.shape, -1).movedim(-1, 0)


class Model(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.embed = nn.Conv2d(1, 8, 8, 8)
        self.attention = Attention((4, 6), **options)

    def forward(self, x):
        num_tokens = self.embed(x).flatten(2).shape[-1]
        assert self.attention.window_area == num_tokens
        return self.attention.bias()


@pytest.mark.parametrize("class_token", [False, True])
def test_table_of_the_whole_grid_follows(class_token):
    model = Model(class_token=class_token)
    x = torch.randn(1, 1, 32, 48)
    base = model(x)
    ot.flexify(model, "embed", None, patches=(4, 8, 16), grid=(4, 6))
    assert torch.equal(model(x), base)
    start = int(class_token)
    with ot.patch(model, 4):
        fine = model(x)
        assert model.attention.window_size == (8, 12)
    assert fine.shape == (2, start + 96, start + 96)
    tokens = fine[:, start:, start:].unflatten(2, (8, 12)).unflatten(1, (8, 12))
    # every second token along each axis: the same displacements in the domain
    kept = tokens[:, ::2, ::2, ::2, ::2].flatten(3).flatten(1, 2)
    assert torch.allclose(kept, base[:, start:, start:], atol=1e-5)
    if class_token:
        assert torch.equal(fine[:, 0, 0], base[:, 0, 0])
        assert torch.equal(fine[:, 0, 1], base[:, 0, 1])
        assert torch.equal(fine[:, 1, 0], base[:, 1, 0])
    with ot.patch(model, 4):
        model(x).sum().backward()
    gradient = model.attention.relative_position_bias_table.grad
    assert (gradient > 0).all()  # every row of the base table has a part in the finer one


def test_windows_smaller_than_the_grid_and_foreign_orders_stay():
    assert find_tables(Model(), (8, 12)) == {}
    assert find_tables(Model(), None) == {}
    model = Model()
    model.attention.relative_position_index.copy_(model.attention.relative_position_index.flip(0))  # pyright: ignore[reportCallIssue]
    assert find_tables(model, (4, 6)) == {}


@pytest.mark.parametrize(("old", "new"), [(4, 8), (4, 7), (6, 3), (1, 5), (5, 5), (3, 1)])
def test_displacements_beyond_the_window_are_those_at_its_end(old, new):
    """A bias that is the same everywhere stays so: each row is a mean of known ones."""
    matrix = displacement_matrix(old, new)
    assert matrix.shape == (2 * new - 1, 2 * old - 1)
    assert matrix.min() >= 0
    torch.testing.assert_close(matrix.sum(dim=1), torch.ones(2 * new - 1, dtype=torch.float64))
    if new > old:
        ends = [row.nonzero().flatten().tolist() for row in (matrix[0], matrix[-1])]
        assert ends == [[0], [2 * old - 2]]
