"""Fields on other grids: exact for what both resolve."""

import math

import pytest
import torch

from overtone.ops.spectral import dealias_mask, fourier_space, resample, wavenumbers


@pytest.mark.parametrize("shape", [(16,), (12, 15), (8, 6, 10)])
def test_derivative_of_a_single_mode_is_exact(shape):
    extent = [1.0 + axis for axis in range(len(shape))]
    axes = [torch.arange(n, dtype=torch.float64) * length / n
            for n, length in zip(shape, extent, strict=True)]  # fmt: skip
    mesh = torch.meshgrid(*axes, indexing="ij")
    phase = sum(2 * math.pi * 2 * x / length for x, length in zip(mesh, extent, strict=True))
    modes = torch.fft.rfftn(torch.sin(phase))
    for k, length in zip(wavenumbers(shape, extent), extent, strict=True):
        derivative = torch.fft.irfftn(1j * k * modes, s=shape)
        assert torch.allclose(derivative, 4 * math.pi / length * torch.cos(phase), atol=1e-10)


def test_products_of_masked_fields_do_not_alias():
    n = 24
    mask = dealias_mask((n,))
    kept = int(mask.sum()) - 1
    assert kept == 7  # the largest k below 24/3
    x = torch.arange(n, dtype=torch.float64) * 2 * math.pi / n
    product = torch.fft.rfft(torch.cos(kept * x) ** 2) * mask
    assert product[1:].abs().max() < 1e-10  # cos² = 1/2 + cos(14x)/2, whose alias is k = 10


def test_a_space_transforms_and_differentiates():
    space = fourier_space((12, 15), (1.0, 2.0), torch.device("cpu"))
    x = torch.arange(12, dtype=torch.float64)[:, None] / 12 * 2 * math.pi
    y = torch.arange(15, dtype=torch.float64)[None, :] / 15 * 2 * math.pi
    field = torch.sin(2 * x + 3 * y)
    modes = space.modes(field)
    assert torch.allclose(space.grid(modes), field, atol=1e-14)
    slopes = space.grid(space.gradient * modes)
    assert torch.allclose(slopes[0], 4 * math.pi * torch.cos(2 * x + 3 * y), atol=1e-12)
    assert torch.allclose(slopes[1], 3 * math.pi * torch.cos(2 * x + 3 * y), atol=1e-12)
    assert torch.allclose(space.grid(-space.k2 * space.inverse_laplacian * modes), field)


def test_a_space_is_made_once_for_each_grid_and_device():
    first = fourier_space((12, 15), (1.0, 2.0), torch.device("cpu"))
    assert fourier_space((12, 15), (1.0, 2.0), torch.device("cpu")) is first
    assert fourier_space((12, 15), (1.0, 2.0), torch.device("meta")).k2.is_meta


def waves(shape):
    x, y = ((torch.arange(n, dtype=torch.float64) + 0.5) / n * 2 * math.pi for n in shape)
    return 1 + torch.sin(2 * x[:, None] + y + 0.3) + torch.cos(3 * y - x[:, None])


@pytest.mark.parametrize("old", [(16, 16), (15, 24)])
@pytest.mark.parametrize("new", [(8, 9), (16, 11), (40, 37)])
def test_band_limited_fields_are_sampled_at_the_new_centres(old, new):
    fields = torch.stack([waves(old), 2 * waves(old)])
    expected = torch.stack([waves(new), 2 * waves(new)])
    assert torch.allclose(resample(fields, new), expected, atol=1e-12)


def test_up_and_down_again_is_the_identity_and_down_is_a_projection():
    fields = torch.randn(3, 9, 11, dtype=torch.float64)
    assert torch.allclose(resample(resample(fields, (20, 15)), (9, 11)), fields, atol=1e-12)
    coarse = resample(fields, (5, 7))
    assert torch.allclose(resample(resample(coarse, (9, 11)), (5, 7)), coarse, atol=1e-12)


def test_the_same_grid_is_left_alone_and_the_nyquist_mode_goes():
    fields = torch.randn(2, 8)
    assert resample(fields, (8,)) is fields
    nyquist = torch.tensor([1.0, -1.0] * 4)
    assert torch.allclose(resample(nyquist, (16,)), torch.zeros(16), atol=1e-6)


def test_fields_that_are_expanded_have_modes_like_any_other():
    space = fourier_space((16, 32), (1.0, 2.0), torch.device("cpu"))
    column = torch.randn(3, 1, 32, dtype=torch.float64)
    expanded = column.expand(3, 16, 32)
    assert torch.allclose(space.modes(expanded), space.modes(expanded.clone()), atol=1e-12)
