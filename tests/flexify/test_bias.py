import itertools

import pytest
import torch
from torch import nn

import overtone as ot
from overtone.flexify.bias import displacement_index, displacement_matrix, find_tables


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
        table = self.relative_position_bias_table[self.relative_position_index.view(-1)]
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
    model.attention.relative_position_index.copy_(model.attention.relative_position_index.flip(0))
    assert find_tables(model, (4, 6)) == {}
