"""Attention between slices, against sums over cells, and the positions."""

import pytest
import torch

import overtone as ot
from overtone.baselines.transolver import SliceAttention, _distances


def test_slice_attention_is_a_direct_computation():
    layer = SliceAttention(4, 2, 3, (True,)).double()
    x = torch.randn(1, 5, 4, dtype=torch.float64)
    features = layer.features(x.mT)[0].mT  # (cells, dim)
    places = layer.places(x.mT)[0].mT
    heads = []
    for head in range(2):
        own = slice(2 * head, 2 * head + 2)
        weights = torch.softmax(layer.slice(places[:, own]) / 0.5, dim=-1)
        tokens = torch.stack(
            [
                sum(weights[i, g] * features[i, own] for i in range(5))
                / (weights[:, g].sum() + 1e-5)
                for g in range(3)
            ]
        )
        scores = layer.query(tokens) @ layer.key(tokens).T / 2**0.5
        tokens = torch.softmax(scores, dim=-1) @ layer.value(tokens)
        heads.append(weights @ tokens)
    expected = layer.out(torch.cat(heads, dim=-1))
    assert torch.allclose(layer(x)[0], expected, atol=1e-12)


def test_attention_itself_does_not_know_where_cells_are():
    layer = SliceAttention(4, 2, 3, (True, True)).double()
    x = torch.randn(1, 6, 5, 4, dtype=torch.float64)
    assert torch.allclose(layer(x.roll((1, 2), (1, 2))), layer(x).roll((1, 2), (1, 2)))


def test_distances_go_round_the_ring_on_periodic_axes():
    ring, line = _distances((8,), (True,), 2), _distances((8,), (False,), 2)
    assert ring.shape == (8, 2)
    assert line[0, 1] == pytest.approx(0.75 - 0.0625)
    assert ring[0, 1] == pytest.approx(0.25 + 0.0625)
    assert _distances((4, 6), (True, False), 3).shape == (4, 6, 9)
    corner = _distances((4, 4), (False, False), 2)[0, 0, 3]
    assert corner == pytest.approx(2**0.5 * (0.75 - 0.125))


def test_heads_must_divide_the_width(make_baseline):
    with pytest.raises(ot.OvertoneError, match="does not split into 5 heads"):
        make_baseline("transolver", heads=5)
