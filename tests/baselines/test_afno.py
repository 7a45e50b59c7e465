"""AFNO: its spectral layer against sums, its patch grid, its positions."""

import math

import pytest
import torch
import torch.nn.functional as F

import overtone as ot
from overtone.baselines.afno import SHRINKAGE, SpectralMixing


def test_spectral_mixing_is_a_direct_fourier_computation():
    """Every mode by explicit sums, through both block-diagonal matrices and the shrinkage."""
    rows, columns, dim, blocks = 3, 4, 6, 2
    layer = SpectralMixing(dim, blocks).double()
    with torch.no_grad():
        layer.weight.mul_(20)  # so that the shrinkage leaves something
    x = torch.randn(1, rows, columns, dim, dtype=torch.float64)
    full = [torch.block_diag(*torch.view_as_complex(layer.weight)[i]) for i in (0, 1)]
    expected = torch.zeros(rows, columns, dim, dtype=torch.float64)
    place = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    for p in range(rows):
        for q in range(columns // 2 + 1):
            angle = 2 * math.pi * (p * place[0] / rows + q * place[1] / columns)
            wave = torch.polar(torch.ones_like(angle), angle).to(torch.complex128)
            mode = torch.einsum("xyc,xy->c", x[0] + 0j, wave.conj()) / math.sqrt(rows * columns)
            mode = mode @ full[0]
            mode = torch.complex(F.gelu(mode.real), F.gelu(mode.imag)) @ full[1]
            mode = torch.complex(
                *(F.softshrink(part, SHRINKAGE) for part in (mode.real, mode.imag))
            )
            part = torch.einsum("c,xy->xyc", mode, wave).real / math.sqrt(rows * columns)
            # Columns between the first and the Nyquist one stand for their conjugates too.
            expected += part if q in (0, columns // 2) else 2 * part
    assert torch.allclose(layer(x)[0], expected, atol=1e-6)
    assert expected.abs().max() > 0.1


def test_the_diagonal_blocks_keep_channels_apart():
    layer = SpectralMixing(6, 2)
    with torch.no_grad():
        layer.weight.mul_(20)
    x = torch.randn(1, 4, 4, 6)
    other = x.clone()
    other[..., :3] += torch.randn(1, 4, 4, 3)
    moved = (layer(other) - layer(x)).abs().amax(dim=(0, 1, 2))
    assert (moved[:3] > 1e-3).all()
    assert (moved[3:] < 1e-6).all()


def test_shifts_turn_phases_so_the_layer_does_not_commute_with_them():
    """Gelu on real and imaginary parts: a property of the idea that the module's text states."""
    layer = SpectralMixing(6, 2).double()
    with torch.no_grad():
        layer.weight.mul_(20)
    x = torch.randn(1, 4, 6, 6, dtype=torch.float64)
    moved = layer(x.roll((1, 2), (1, 2))) - layer(x).roll((1, 2), (1, 2))
    assert moved.abs().max() > 0.05 * layer(x).abs().max()


def test_shifting_the_grid_is_shifting_the_fields_the_other_way(make_baseline, make_window):
    model = make_baseline("afno_net", patch=4)
    window = make_window(model.domain)
    rolled = ot.Window(window.fields.roll((-3, -1), (-2, -1)), model.domain)
    expected = model(rolled).roll((3, 1), (-2, -1))
    assert torch.allclose(model(window, 4, (3, 1)), expected, atol=1e-5)
    assert not torch.allclose(model(window, 4), expected, atol=1e-3)
    assert torch.equal(model(window, 4, 4), model(window, 4))


def test_on_walls_a_shifted_grid_starts_earlier_and_covers_all(
    make_baseline, make_domain, make_window
):
    domain = make_domain((16, 24), "wall")
    model = make_baseline("afno_net", domain, patch=4)
    window = make_window(domain)
    frame = model(window, 4, 1)
    assert frame.shape == (2, 2, 16, 24)
    assert not torch.allclose(frame, model(window), atol=1e-4)


def test_bad_numbers(make_baseline, make_domain, make_window):
    with pytest.raises(ot.OvertoneError, match="does not split into 5 diagonal blocks"):
        make_baseline("afno_net", diagonal_blocks=5)
    with pytest.raises(ot.PatchError, match="patch 16 does not fit axis 0 of 8 cells"):
        make_baseline("afno_net", make_domain((8, 32)), patch=16)
