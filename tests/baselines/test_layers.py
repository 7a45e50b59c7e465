"""Layers: padding by boundary, interpolation, grids of multiples."""

import math

import pytest
import torch

from overtone.baselines.layers import (
    ChannelNorm,
    PaddedConv,
    coordinates,
    on_multiples,
    upsample,
)


def test_padded_convolution_wraps_on_periodic_axes_and_sees_zeros_elsewhere():
    conv = PaddedConv(2, 3, 3, (True, False)).double()
    x = torch.randn(1, 2, 6, 7, dtype=torch.float64)
    padded = torch.nn.functional.pad(x, (0, 0, 1, 1), mode="circular")
    padded = torch.nn.functional.pad(padded, (1, 1, 0, 0))
    expected = torch.nn.functional.conv2d(padded, conv.conv.weight, conv.conv.bias)  # pyright: ignore[reportCallIssue]
    assert torch.allclose(conv(x), expected)
    assert conv(x).shape == (1, 3, 6, 7)


def test_padded_convolution_larger_than_its_axis():
    conv = PaddedConv(1, 1, 7, (True,))
    x = torch.randn(1, 1, 2)
    assert torch.allclose(conv(x)[..., 0], conv(x.roll(1, -1))[..., 1], atol=1e-6)


def test_channel_norm_is_layer_norm_cell_by_cell():
    norm = ChannelNorm(5)
    x = torch.randn(2, 5, 3, 4)
    result = norm(x)
    assert torch.allclose(result[1, :, 2, 3], torch.nn.LayerNorm(5)(x[1, :, 2, 3]), atol=1e-6)
    assert result.mean(dim=1).abs().max() < 1e-6


def test_upsampling_is_exact_for_parabolas_and_of_third_order_for_waves():
    """Keys' cubic convolution reproduces polynomials of degree two, away from the ends."""
    coarse, fine = ((torch.arange(n, dtype=torch.float64) + 0.5) / n for n in (16, 32))
    result = upsample((3 * coarse**2 - coarse)[None, None], (False,))[0, 0]
    assert torch.allclose(result[4:-4], (3 * fine**2 - fine)[4:-4], atol=1e-12)

    def error(n):
        x, y = ((torch.arange(m, dtype=torch.float64) + 0.5) / m for m in (n, 2 * n))
        wave = torch.sin(2 * math.pi * x)[None, None]
        return (upsample(wave, (True,))[0, 0] - torch.sin(2 * math.pi * y)).abs().max().item()

    assert 2.7 < math.log2(error(32) / error(64)) < 4.3


def test_upsampling_commutes_with_shifts_on_periodic_axes():
    x = torch.randn(1, 2, 6, 5, dtype=torch.float64)
    shifted = upsample(x.roll((1, 2), (-2, -1)), (True, True))
    assert torch.allclose(shifted, upsample(x, (True, True)).roll((2, 4), (-2, -1)))
    assert torch.allclose(upsample(torch.ones(1, 1, 4, 4), (True, False)), torch.ones(1, 1, 8, 8))


@pytest.mark.parametrize("periodic", [True, False])
def test_grids_are_padded_up_to_multiples_and_cropped(periodic):
    seen = []

    def network(x):
        seen.append(x)
        return 2 * x

    x = torch.randn(1, 1, 10, 8)
    assert torch.equal(on_multiples(network, x, 8, (periodic, True)), 2 * x)
    assert seen[0].shape == (1, 1, 16, 8)
    beyond = x[:, :, :6] if periodic else x[:, :, -1:].expand(-1, -1, 6, -1)
    assert torch.equal(seen[0][:, :, 10:], beyond)


def test_coordinates_are_cell_centres_of_the_axes_asked_for():
    where = coordinates((4, 2), (1,), torch.zeros(3, 5, 4, 2))
    assert where.shape == (3, 1, 4, 2)
    assert torch.allclose(where[0, 0, 0], torch.tensor([0.25, 0.75]))
    assert coordinates((4, 2), (), torch.zeros(3, 5, 4, 2)).shape == (3, 0, 4, 2)
