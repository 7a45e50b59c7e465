"""Fields on other grids: exact for what both resolve."""

import math

import pytest
import torch

from overtone.ops.resample import resample


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
