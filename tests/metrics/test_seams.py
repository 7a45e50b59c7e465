import math

import pytest
import torch

from overtone.errors import PatchError
from overtone.metrics import harmonic_excess, seams
from overtone.metrics.seams import LARGEST


def blocks(patch, cells=64, seed=0):
    """A different constant in every patch, `(cells, cells)`."""
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(cells // patch, cells // patch, generator=random)
    return values.repeat_interleave(patch, 0).repeat_interleave(patch, 1)


def noise(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_white_noise_has_no_seams():
    found = seams(noise(40, 64, 64), 16, ndim=2)
    assert found.mean().abs() < 0.1
    assert found.abs().max() < 1.0


def test_steep_smooth_residuals_have_none():
    x = torch.arange(64) / 64 * 2 * math.pi
    wave = torch.sin(x)[:, None] + torch.cos(3 * x + 0.3)[None]
    assert seams(wave, 8, ndim=2).abs() < 0.5


def test_what_is_constant_within_patches_is_cut():
    assert seams(blocks(16), 16, ndim=2) == LARGEST
    assert seams(torch.zeros(64, 64), 16, ndim=2) == 0


def test_the_ratio_is_that_of_the_variances():
    # Blocks of variance 1 have jumps of mean square 2 across borders; noise of variance s² adds
    # 2 s² everywhere.
    sizes = 0.1
    residual = torch.stack([blocks(16, 256, seed) for seed in range(20)])
    residual = residual + sizes * noise(20, 256, 256)
    expected = 10 * math.log10((2 + 2 * sizes**2) / (2 * sizes**2))
    assert seams(residual, 16, ndim=2).mean().item() == pytest.approx(expected, abs=0.3)


def test_steps_of_any_sign_are_seen_where_the_spectrum_has_no_lines():
    residual = torch.stack([blocks(16, 128, seed) for seed in range(8)]) + 0.05 * noise(8, 128, 128)
    assert harmonic_excess(residual, 16, ndim=2).excess.mean() < 3
    assert seams(residual, 16, ndim=2).min() > 15


def test_a_moved_grid_has_no_seams_of_the_grid_at_rest():
    moved = blocks(16).roll((5, 7), dims=(0, 1)) + 0.1 * noise(64, 64)
    assert seams(moved, 16, ndim=2) < 0


@pytest.mark.parametrize("axis", [0, 1])
def test_axes_that_do_not_wrap_have_no_border_at_their_ends(axis):
    ramp = torch.arange(32.0).expand(32, 32)
    ramp = ramp.T if axis == 0 else ramp
    periodic = (axis != 0, axis != 1)
    assert seams(ramp, 8, ndim=2, periodic=periodic) == pytest.approx(0.0, abs=1e-9)
    assert seams(ramp, 8, ndim=2) > 5  # wrapping, its ends are a border with a large jump


def test_any_scale_gives_the_same():
    residual = blocks(8) + 0.2 * noise(64, 64)
    assert seams(1e-6 * residual, 8, ndim=2).item() == pytest.approx(
        seams(residual, 8, ndim=2).item(), abs=1e-3
    )


@pytest.mark.parametrize("ndim", [1, 3])
def test_other_dimensions(ndim):
    flat = noise(6, *(16,) * ndim)
    steps = flat.clone()
    for start in range(0, 16, 4):
        steps[..., start : start + 4] += 5 * (-1) ** (start // 4)
    assert (seams(steps, 4, ndim=ndim) > seams(flat, 4, ndim=ndim) + 2).all()


def test_a_patch_without_borders_is_refused():
    with pytest.raises(PatchError):
        seams(noise(16, 16), 1, ndim=2)
