"""Mixing along an axis, weight normalisation, boundaries."""

import math

import pytest
import torch

from overtone.baselines.ffno import WeightNormLinear, mix_axis


@pytest.mark.parametrize("n", [7, 8])
def test_mixing_along_an_axis_is_a_direct_sum_over_modes(n):
    x = torch.randn(2, 3, n, 4, dtype=torch.float64)
    weight = torch.randn(4, 5, 3, 2, dtype=torch.float64)
    matrices = torch.view_as_complex(weight)
    expected = torch.zeros(2, 3, n, 5, dtype=torch.float64)
    j = torch.arange(n, dtype=torch.float64)
    for k in range(3):
        wave = torch.polar(torch.ones(n, dtype=torch.float64), 2 * math.pi * k * j / n)
        amplitude = torch.einsum("byni,n->byi", x.to(wave.dtype), wave.conj()) / n
        mixed = torch.einsum("byi,io->byo", amplitude, matrices[:, :, k])
        # A real field has the conjugate mode as well; the mean has none.
        part = torch.einsum("byo,n->byno", mixed, wave).real
        expected += part if k == 0 else 2 * part
    assert torch.allclose(mix_axis(x, 2, weight), expected, atol=1e-12)


def test_more_modes_than_the_grid_has_are_left_out():
    x = torch.randn(1, 6, 2)
    weight = torch.randn(2, 2, 9, 2)
    assert torch.allclose(mix_axis(x, 1, weight), mix_axis(x, 1, weight[:, :, :4]))


def test_weight_norm_keeps_length_and_direction_apart():
    layer = WeightNormLinear(4, 3)
    x = torch.randn(5, 4)
    before = layer(x)
    assert torch.allclose(before, torch.nn.functional.linear(x, layer.weight, layer.bias))
    with torch.no_grad():
        layer.weight.mul_(7)
        assert torch.allclose(layer(x), before, atol=1e-5)
        layer.length.mul_(2)
        assert torch.allclose(layer(x) - layer.bias, 2 * (before - layer.bias), atol=1e-5)


def test_coordinates_are_given_on_bounded_axes_only(make_baseline, make_domain):
    periodic, walls = (
        make_baseline("ffno", make_domain((16, 16), boundaries))
        for boundaries in ("periodic", ("periodic", "wall"))
    )
    assert periodic.lift.in_features == 6
    assert walls.lift.in_features == 7
    x = torch.randn(1, 6, 16, 16)
    moved = {"along": walls.network(x.roll(3, -2)), "across": walls.network(x.roll(3, -1))}
    assert torch.allclose(moved["along"], walls.network(x).roll(3, -2), atol=1e-5)
    assert not torch.allclose(moved["across"], walls.network(x).roll(3, -1), atol=1e-2)
