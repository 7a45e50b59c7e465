"""Which modes are on a lattice, which are its own, and which lie around them."""

import pytest
import torch

from overtone.errors import PatchError
from overtone.metrics.artifacts.lattice import (
    lay_lattice,
    patch_power,
    usual_periods,
    whole_patches,
)


def frequencies(lattice, shape):
    """Numbers of the lattice modes along each axis, `(M, d)`."""
    return torch.stack(torch.unravel_index(lattice.modes, shape), dim=1)


@pytest.mark.parametrize(
    ("shape", "patch"), [((64,), (8,)), ((32, 48), (8, 12)), ((16, 16, 8), (4, 4, 2))]
)
def test_a_repeated_cell_has_power_on_the_lattice_only(shape, patch):
    cell = torch.randn(3, *patch, dtype=torch.float64)
    field = cell.repeat(1, *(n // p for n, p in zip(shape, patch, strict=True)))
    power, lattice = patch_power(field, patch, (True,) * len(shape))
    variance = power[:, 1:].sum(dim=1)
    assert torch.allclose((power[:, lattice.modes] * lattice.weight).sum(dim=1), variance)
    assert power[:, lattice.neighbours].max() < 1e-20


def test_own_modes_are_on_no_finer_lattice():
    lattice = lay_lattice((64,), (16,), (True,))
    assert frequencies(lattice, (64,))[lattice.own][:, 0].tolist() == [4, 12, 20, 28]
    shape = (64, 64)
    lattice = lay_lattice(shape, (8, 8), (True, True))
    finer = set(lay_lattice(shape, (4, 4), (True, True)).modes.tolist())
    assert set(lattice.modes[~lattice.own].tolist()) == finer


def test_modes_along_an_axis():
    shape = (32, 32)
    lattice = lay_lattice(shape, (4, 4), (True, True))
    modes = frequencies(lattice, shape)
    assert modes[lattice.axis == 0].tolist() == [[8, 0], [16, 0]]
    assert modes[lattice.axis == 1].tolist() == [[0, 8], [0, 16]]


def test_windowed_axes_keep_clear_of_widened_lines():
    shape = (64,)
    lattice = lay_lattice(shape, (8,), (False,))
    beyond = lattice.neighbours % 8
    assert bool(((beyond > 1) & (beyond < 7)).all())
    line = torch.cos(2 * torch.pi * torch.arange(64) / 8)
    power, lattice = patch_power(line, (8,), (False,))
    assert power[lattice.neighbours].max() < 1e-12 * power.max()


def test_columns_of_neighbours_are_shifted_lattices():
    shape = (32, 32)
    lattice = lay_lattice(shape, (8, 8), (True, True))
    size = torch.tensor(shape)
    start = frequencies(lattice, shape)
    for column in lattice.neighbours.T:
        moved = torch.stack(torch.unravel_index(column, shape), dim=1)
        # Of k and -k the table holds one.
        offsets = [(sign * moved - start).remainder(size).tolist() for sign in (1, -1)]
        (shift,) = {tuple(o) for o in offsets[0] + offsets[1] if _shifts_all(o, offsets)}
        assert any(component % 4 for component in shift)


def _shifts_all(offset, offsets):
    return all(offset in pair for pair in zip(*offsets, strict=True))


def test_neighbours_of_axial_modes_lie_along_the_axis():
    shape = (32, 48)
    lattice = lay_lattice(shape, (8, 8), (True, True))
    for axis in (0, 1):
        chosen = lattice.along[lattice.axis == axis].flatten()
        coordinates = torch.stack(torch.unravel_index(chosen, shape), dim=1)
        assert not bool(coordinates[:, 1 - axis].any())
        assert bool((coordinates[:, axis] % (shape[axis] // 8)).all())


def test_looks_are_at_lattices():
    lattice = lay_lattice((64, 64), (16, 16), (True, True))
    # All; along any axis; along each: 1/16, 3/16, 5/16, 7/16.
    assert [len(look.modes) for look in lattice.own_looks] == [96, 8, 4, 4]
    assert [len(look.modes) for look in lay_lattice((64,), (4,), (True,)).own_looks] == [2]
    assert lay_lattice((64,), (2,), (True,)).own_looks == ()


def test_flattening_removes_any_power_law():
    def fftfreq(n):
        return torch.fft.fftfreq(n, dtype=torch.float64)

    shape = (32, 48)
    lattice = lay_lattice(shape, (4, 4), (True, True))
    kx, ky = fftfreq(32)[:, None], fftfreq(48)[None]
    k = (kx**2 + ky**2).sqrt().flatten()
    flat = lattice.flatten(-6 * k.clamp(min=1e-3).log())
    assert flat[1:].abs().max() < 1e-6


def test_cropping_to_whole_patches():
    power, lattice = patch_power(torch.randn(50, 64), (8, 8), (True, True))
    assert power.shape == (48 * 64,)
    assert int(lattice.modes.max()) < 48 * 64


def test_too_few_patches():
    with pytest.raises(PatchError, match="too few patches"):
        lay_lattice((16,), (16,), (True,))
    with pytest.raises(PatchError, match="too few patches"):
        lay_lattice((16, 16), (8, 8), (False, False))


@pytest.mark.parametrize(
    ("shape", "wraps", "expected"),
    [
        ((64, 64), (True, True), [*range(2, 17), 32]),
        ((32, 64), (True, True), [*range(2, 9), 16]),
        ((48, 64), (True, True), [*range(2, 13), 16]),
        ((64, 64), (True, False), [*range(2, 17)]),
        ((512,), (True,), [*range(2, 65), 128, 256]),
        ((512,), (False,), [*range(2, 65)]),
        ((3, 64), (True, True), []),
    ],
)
def test_the_periods_that_are_tried_fit_often_enough(shape, wraps, expected):
    assert usual_periods(shape, wraps) == expected
    for period in expected:
        whole = whole_patches(shape, (period,) * len(shape), wraps)
        lay_lattice(whole[0], (period,) * len(shape), whole[1])  # raises if it can't be judged


def test_an_axis_that_is_cropped_wraps_no_more():
    assert whole_patches((10, 12), (4, 4), (True, True)) == ((8, 12), (False, True))
    assert whole_patches((10, 12), (5, 5), (False, True)) == ((10, 10), (False, False))
