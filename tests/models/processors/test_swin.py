"""Windows against full attention under a mask that is made by their definition."""

import math
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.grid import PatchGrid
from overtone.models.processors import Transformer
from overtone.models.processors.attention import FullAttention
from overtone.models.processors.rope import space_rotation
from overtone.models.processors.swin import Cut, WindowAttention

DIM, HEADS = 12, 2


def grid(shape, boundaries="periodic"):
    domain = ot.Domain(tuple(2 * n for n in shape), (1.0,) * len(shape), boundaries, ("u",))
    return PatchGrid.lay(domain, 2)


def make(window, *, shifted):
    layer = WindowAttention(DIM, HEADS, scale=1.0, window=window, shifted=shifted)
    return layer.double()


def mix(layer, tokens, there):
    rotation = space_rotation(there, DIM // HEADS, 4, tokens)
    return layer(tokens, rotation, there)


def window_of(place, length, window, *, periodic, shifted):
    """Number of the window that a place of an axis belongs to."""
    count = math.ceil(length / window)
    size = math.ceil(length / count)
    moved = size // 2 if shifted and count > 1 else 0
    return (place - moved) % length // size if periodic else (place - moved) // size


def brute_force(layer, tokens, there):
    """Full attention with the mask "same window along every axis"."""
    places = list(product(*map(range, there.shape)))
    windows = [
        tuple(
            window_of(i, n, layer.window, periodic=wraps, shifted=layer.shifted)
            for i, n, wraps in zip(place, there.shape, there.domain.periodic, strict=True)
        )
        for place in places
    ]
    same = torch.tensor([[a == b for b in windows] for a in windows])
    rotation = space_rotation(there, DIM // HEADS, 4, tokens)
    q, (k, v) = layer.queries(tokens, rotation), layer.keys_values(tokens, rotation)
    q, k, v = (x.flatten(2, -3).transpose(2, 3) for x in (q, k, v))
    scores = (q @ k.transpose(-1, -2) / (DIM // HEADS) ** 0.5).masked_fill(~same, -math.inf)
    return layer.out((scores.softmax(-1) @ v).transpose(2, 3).reshape(tokens.shape))


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("boundaries", ["periodic", "wall", "mixed"])
@pytest.mark.parametrize(
    ("shape", "window"),
    [((7,), 3), ((12,), 4), ((5, 7), 3), ((6, 4), 4), ((1, 9), 4), ((3, 5, 4), 2), ((9, 2), 8)],
)
def test_equals_full_attention_under_a_mask(shape, window, boundaries, shifted):
    if boundaries == "mixed":
        boundaries = [("periodic", ("wall", "open"))[i % 2] for i in range(len(shape))]
    there, layer = grid(shape, boundaries), make(window, shifted=shifted)
    tokens = torch.randn(2, 3, *shape, DIM, dtype=torch.float64)
    assert torch.allclose(mix(layer, tokens, there), brute_force(layer, tokens, there), atol=1e-12)


@given(length=st.integers(1, 70), window=st.integers(1, 12), periodic=st.booleans(),
       shifted=st.booleans())  # fmt: skip
def test_cutting_an_axis_and_closing_it_again_is_the_identity(length, window, periodic, shifted):
    cut = Cut.of(length, window, periodic=periodic, shifted=shifted)
    x = torch.arange(1, length + 1)
    places = cut.open(x, 0)
    assert torch.equal(cut.close(places, 0), x)
    assert torch.equal(places != 0, torch.tensor(cut.real) != 0)
    assert len(places) == cut.count * cut.size
    assert cut.size <= window
    # No window is all ghosts, which would have nothing to attend to.
    assert (places.reshape(cut.count, cut.size) != 0).any(dim=1).all()
    # Little is padded: less than one token for each window, and no more than one window at ends.
    assert len(places) - length < cut.count + (cut.size if cut.start < 0 else 0)


@pytest.mark.parametrize(("boundary", "wraps"), [("periodic", True), ("wall", False)])
def test_the_shift_wraps_on_periodic_axes_only(boundary, wraps):
    """In a shifted block the last token sees the first exactly where the axis is a circle."""
    there, layer = grid((16,), boundary), make(8, shifted=True)
    tokens = torch.randn(1, 1, 16, DIM, dtype=torch.float64)
    changed = tokens.clone()
    changed[:, :, 0] += 1
    moved = (mix(layer, tokens, there) - mix(layer, changed, there)).abs().amax((0, 1, 3)) > 1e-12
    seen = {0, 1, 2, 3} | ({12, 13, 14, 15} if wraps else set())
    assert set(moved.nonzero().flatten().tolist()) == seen


def test_blocks_alternate():
    model = Transformer(
        "swin", dim=DIM, num_heads=HEADS, num_blocks=4, mlp_dim=8, context=2, window=5
    )
    assert [block.space.shifted for block in model.blocks] == [False, True, False, True]
    assert {block.space.window for block in model.blocks} == {5}


def test_shifts_by_whole_windows_commute_on_periodic_grids():
    there = grid((16, 12))
    model = Transformer(
        "swin", dim=DIM, num_heads=HEADS, num_blocks=2, mlp_dim=8, context=1, window=4,
        layer_scale=1.0,
    ).double()  # fmt: skip
    tokens = torch.randn(1, 1, 16, 12, DIM, dtype=torch.float64)

    def moves_along(shift):
        rolled = model(torch.roll(tokens, shift, (2, 3)), there)
        return torch.allclose(rolled, torch.roll(model(tokens, there), shift, (2, 3)), atol=1e-10)

    assert moves_along((4, 8))
    assert not moves_along((1, 0))


@pytest.mark.parametrize("shifted", [False, True])
def test_one_window_is_full_attention(shifted):
    there, layer = grid((5, 7), "open"), make(8, shifted=shifted)
    full = FullAttention(DIM, HEADS, scale=1.0).double()
    full.load_state_dict(layer.state_dict())
    tokens = torch.randn(1, 2, 5, 7, DIM, dtype=torch.float64)
    assert torch.allclose(mix(layer, tokens, there), mix(full, tokens, there), atol=1e-12)
