"""Spectral mixing against explicit DFT matrices and complex arithmetic."""

import math
from functools import reduce

import pytest
import torch

import overtone as ot
from overtone.grid import PatchGrid
from overtone.models.processors.afno import SHRINKAGE, SpectralMixing

DIM = 8


def grid(shape, boundaries="periodic"):
    domain = ot.Domain(tuple(2 * n for n in shape), (1.0,) * len(shape), boundaries, ("u",))
    return PatchGrid.lay(domain, 2)


def make(mode_blocks=2):
    return SpectralMixing(DIM, mode_blocks=mode_blocks, scale=1.0).double()


def mix(layer, tokens, there):
    return layer(tokens, torch.empty(0), there)


def dft(n):
    """Fourier coefficients of n values, by the formula."""
    places = torch.arange(n, dtype=torch.float64)
    return torch.exp(-2j * math.pi * places[:, None] * places / n) / n


def shrink(x):
    return x.sign() * (x.abs() - SHRINKAGE).clamp(min=0)


def by_parts(f, z):
    return torch.complex(f(z.real), f(z.imag))


def direct(layer, tokens, mirrored):
    """One frame, one channel vector for each token, all modes, no symmetry used."""
    for axis, mirror in enumerate(mirrored):
        tokens = torch.cat([tokens, tokens.flip(axis)], dim=axis) if mirror else tokens
    shape = tokens.shape[:-1]
    forward = reduce(torch.kron, [dft(n) for n in shape])
    modes = forward @ tokens.reshape(-1, DIM).to(forward.dtype)
    inward, outward = (
        torch.block_diag(*torch.complex(*weight)) for weight in (layer.inward, layer.outward)
    )
    modes = by_parts(shrink, by_parts(torch.relu, modes @ inward) @ outward)
    # The half spectrum that a real transform keeps: the other half is its mirror, conjugate.
    last = shape[-1]
    modes = modes.reshape(*shape, DIM)
    for k in range(last // 2 + 1, last):
        twin = modes[..., last - k, :].conj()
        for axis in range(len(shape) - 1):
            twin = twin.roll(-1, axis).flip(axis)
        modes[..., k, :] = twin
    back = torch.linalg.inv(forward) @ modes.reshape(-1, DIM)
    y = back.real.reshape(*shape, DIM)
    for axis, mirror in enumerate(mirrored):
        y = y.narrow(axis, 0, shape[axis] // 2) if mirror else y
    return layer.out(y)


@pytest.mark.parametrize("shape", [(5,), (6,), (3, 4), (4, 5), (2, 3, 4), (1, 1), (1, 6)])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
def test_equals_explicit_dft_matrices(shape, boundary):
    there, layer = grid(shape, boundary), make()
    tokens = torch.randn(2, 3, *shape, DIM, dtype=torch.float64)
    result = mix(layer, tokens, there)
    mirrored = [boundary == "wall"] * len(shape)
    for b, t in ((0, 0), (1, 2)):
        assert torch.allclose(result[b, t], direct(layer, tokens[b, t], mirrored), atol=1e-12)


def test_mixed_boundaries_mirror_only_the_axes_that_do_not_wrap():
    there, layer = grid((3, 4), ("periodic", "open")), make()
    tokens = torch.randn(1, 1, 3, 4, DIM, dtype=torch.float64)
    expected = direct(layer, tokens[0, 0], [False, True])
    assert torch.allclose(mix(layer, tokens, there)[0, 0], expected, atol=1e-12)


def test_a_smooth_field_gives_the_same_result_on_every_grid():
    """Modes are coefficients: a field of few waves means the same on 8 tokens and on 64."""
    layer, results = make(), []
    amplitudes = torch.randn(3, DIM, dtype=torch.float64)
    for n in (8, 64):
        x = torch.arange(n, dtype=torch.float64) / n
        waves = torch.stack([torch.cos(2 * math.pi * k * x + k) for k in range(3)], dim=-1)
        tokens = (waves @ amplitudes)[None, None]
        results.append(mix(layer, tokens, grid((n,)))[0, 0])
    assert torch.allclose(results[0], results[1][::8], atol=1e-12)


def test_power_is_kept_by_the_first_weights():
    layer = SpectralMixing(256, mode_blocks=2, scale=1.0)
    modes = torch.complex(torch.randn(500, 256), torch.randn(500, 256))
    power = layer._transfer(modes).abs().square().mean() / modes.abs().square().mean()
    assert power.item() == pytest.approx(1.0, rel=0.1)


def test_half_precision_in_half_precision_out():
    there, layer = grid((4, 6)), make()
    tokens = torch.randn(1, 2, 4, 6, DIM, dtype=torch.float64)
    reference = mix(layer, tokens, there)
    half = mix(layer.bfloat16(), tokens.bfloat16(), there)
    assert half.dtype == torch.bfloat16
    assert (half - reference).std() < 0.02 * reference.std()
