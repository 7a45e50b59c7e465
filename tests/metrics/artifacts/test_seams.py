"""How high seams are, wherever the grid lies; which distance is found, and when none is."""

import math

import pytest
import torch

import overtone as ot
from overtone.errors import PatchError
from overtone.grid import PatchGrid
from overtone.metrics import SeamFinder, find_seams, harmonic_excess, seams, worst_seams
from overtone.metrics.artifacts.seams import LARGEST, jumps, seam_height
from overtone.solvers import ShearFlow


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


@pytest.mark.parametrize("shift", [3, (13, 0), (0, 5), (15, 7), (-3, 20)])
def test_a_residual_that_moves_with_its_grid_keeps_its_seams(shift):
    residual = blocks(16) + noise(3, 64, 64)
    moved = residual.roll(ot.domain.per_axis(shift, 2, "shift"), dims=(-2, -1))
    torch.testing.assert_close(seams(moved, 16, ndim=2, shift=shift), seams(residual, 16, ndim=2))


@pytest.mark.parametrize("periodic", [True, False])
def test_a_shift_by_whole_patches_is_none(periodic):
    residual, options = noise(64, 60), {"ndim": 2, "periodic": periodic}
    rest = seams(residual, (16, 8), **options)
    assert seams(residual, (16, 8), shift=(32, -8), **options) == rest
    assert seams(residual, (16, 8), shift=(35, -5), **options) == seams(
        residual, (16, 8), shift=3, **options
    )


def test_a_moved_grid_has_its_seams_where_it_lies():
    moved = blocks(16).roll((13, 0), dims=(0, 1)) + 0.1 * noise(64, 64)
    across, within = jumps(moved, 16, ndim=2)
    assert across[0] < within[0]  # at rest, along the moved axis
    assert seams(moved, 16, ndim=2, shift=(3, 0)) < seams(moved, 16, ndim=2, shift=(13, 0)) - 10
    assert seams(moved, 16, ndim=2, shift=(13, 0)) > 15
    torch.testing.assert_close(
        worst_seams(moved, 16, ndim=2), seams(moved, 16, ndim=2, shift=(13, 0))
    )


@pytest.mark.parametrize("boundaries", ["periodic", "wall"])
@pytest.mark.parametrize("shape", [(64, 48), (40, 61)])
@pytest.mark.parametrize("shift", [0, (13, 0), (1, 15), (5, 30)])
def test_borders_are_those_of_the_grid_of_a_model_call(make_domain, boundaries, shape, shift):
    domain = make_domain(shape, boundaries)
    grid = PatchGrid.lay(domain, 16, shift)
    residual = noise(*shape).double()
    for axis, n in enumerate(shape):
        token = torch.full((n,), -1)  # of every cell; a cell belongs to the first that covers it
        for j in reversed(range(grid.shape[axis])):
            for cell in range(16):
                place = grid.start[axis] + 16 * j + cell
                if domain.periodic[axis] or 0 <= place < n:
                    token[place % n] = j
        border = token != token.roll(1)
        jump = (residual - residual.roll(1, dims=axis)).square().mean(dim=1 - axis)
        if not domain.periodic[axis]:
            border, jump = border[1:], jump[1:]
        options = {"ndim": 2, "periodic": domain.periodic, "shift": shift}
        across, within = jumps(residual, 16, **options)
        assert across[axis].item() == pytest.approx(jump[border].mean().item())
        assert within[axis].item() == pytest.approx(jump[~border].mean().item())


@pytest.mark.parametrize("periodic", [True, False, (True, False)])
def test_the_worst_seams_are_the_highest_of_any_shift_along_each_axis(periodic):
    residual, options = noise(5, 3, 24, 30), {"ndim": 2, "periodic": periodic}
    by_shift = torch.stack(
        [seam_height(*jumps(residual, 8, shift=shift, **options)) for shift in range(8)]
    )
    worst = worst_seams(residual, 8, **options)
    assert worst.shape == (5, 3)
    torch.testing.assert_close(worst, by_shift.amax(dim=0).mean(dim=0))
    for shift in ((0, 0), (3, 5), (7, 2)):
        assert (worst >= seams(residual, 8, shift=shift, **options) - 1e-9).all()


def test_the_worst_seams_of_a_moved_residual_are_the_same():
    residual = blocks(8) + 0.5 * noise(64, 64)
    moved = residual.roll((3, 6), dims=(0, 1))
    torch.testing.assert_close(worst_seams(moved, 8, ndim=2), worst_seams(residual, 8, ndim=2))
    assert worst_seams(blocks(16), 16, ndim=2) == LARGEST
    assert worst_seams(torch.zeros(64, 64), 16, ndim=2) == 0


def test_a_shift_for_another_number_of_axes_is_refused():
    with pytest.raises(ot.DomainError, match="shift is"):
        seams(noise(16, 16), 4, ndim=2, shift=(1, 2, 3))


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


GRID = (64, 64)


@pytest.fixture(scope="module")
def smooth(red_noise):
    def make(shape=GRID, slope=5.0, seed=0, num=4):
        return red_noise(num, shape, slope, seed)

    return make


def blocky(patch, shape=GRID, seed=1, num=4):
    """Patches `(num, *shape)` that are each off by a number of their own."""
    sizes = ot.domain.per_axis(patch, len(shape), "patch")
    random = torch.Generator().manual_seed(seed)
    counts = [-(-n // p) for n, p in zip(shape, sizes, strict=True)]
    values = torch.randn(num, *counts, generator=random, dtype=torch.float64)
    for axis, (n, p) in enumerate(zip(shape, sizes, strict=True), start=1):
        values = values.repeat_interleave(p, axis).narrow(axis, 0, n)
    return values


@pytest.mark.parametrize("patch", [3, 4, 8, 16])
def test_patches_that_disagree_are_found_by_their_seams(smooth, patch):
    found = find_seams(smooth() + 0.1 * blocky(patch), ndim=2)
    assert found.sizes == (patch, patch)
    assert found.p_value < 1e-3
    assert find_seams(smooth(), ndim=2).sizes == ()


@pytest.mark.parametrize("patch", [(8, 64), (64, 8), (4, 16)])
def test_axes_have_distances_of_their_own(smooth, patch):
    expected = tuple(1 if size == 64 else size for size in patch)
    assert find_seams(smooth() + 0.2 * blocky(patch), ndim=2).sizes == expected


def test_blocks_within_blocks_have_the_period_of_the_louder_ones(smooth):
    louder = smooth() + 0.3 * blocky(16) + 0.03 * blocky(4)
    assert find_seams(louder, ndim=2).sizes == (16, 16)
    alike = smooth() + 0.2 * blocky(4)
    assert find_seams(alike, [16, 8, 4], ndim=2).sizes == (4, 4)


@pytest.mark.parametrize(("shape", "patch"), [((256,), 8), ((24, 24, 24), 6), ((60, 44), 8)])
def test_other_numbers_of_axes_and_grids_that_patches_do_not_divide(smooth, shape, patch):
    field = smooth(shape) + 0.2 * blocky(patch, shape)
    assert find_seams(field, ndim=len(shape), periodic=False).sizes == (patch,) * len(shape)
    quiet = find_seams(smooth(shape), ndim=len(shape), periodic=False)
    assert quiet.sizes == ()


@pytest.mark.parametrize(("shape", "patch"), [((64, 64), 32), ((32, 64), 16)])
def test_two_patches_along_an_axis(smooth, shape, patch):
    assert find_seams(smooth(shape) + 0.3 * blocky(patch, shape), ndim=2).sizes == (patch, patch)
    assert find_seams(smooth(shape), ndim=2).sizes == ()


def test_a_decoder_may_have_several_stages(smooth):
    field = 0.05 * smooth(num=8) + 0.4 * blocky(16, num=8)
    field += 0.1 * blocky(4, seed=2, num=8) + 0.03 * blocky(2, seed=3, num=8)
    assert find_seams(field, ndim=2).sizes == (16, 16)


def test_axes_with_the_same_finer_seams_share_the_coarser_ones(smooth):
    """A wide layer along one axis hides that some of its seams are higher, but not both axes'."""
    layer = 3 * (torch.arange(64, dtype=torch.float64) * 4 * math.pi / 64).cos()
    field = 0.05 * smooth(num=8) + 0.2 * blocky(16, num=8) + 0.15 * blocky(4, seed=2, num=8)
    field = field * layer.exp()
    assert find_seams(field, ndim=2).sizes == (16, 16)


def test_a_front_that_lies_on_a_border_is_no_comb(smooth):
    field = smooth()
    field[:, 16:] += 1.0
    assert find_seams(field, ndim=2).sizes == ()


def test_few_false_alarms(smooth):
    fields = [
        smooth(shape, slope, seed, num)
        for seed in range(12)
        for slope in (0, 2, 4, 6)
        for shape, num in (((32, 32), 1), ((32, 48), 16))
    ]
    assert not any(find_seams(field, ndim=2).sizes for field in fields)


def test_one_flow_against_another_raises_no_alarm():
    flow = ShearFlow(shape=(64, 64), reynolds=5e3, dt=0.5)
    *_, frame = flow.trajectory(2, 7, seed=2)
    assert find_seams(frame[0] - frame[1], ndim=2).sizes == ()


def test_one_by_one_is_the_same_as_all_at_once(smooth):
    field = smooth(num=6) + 0.1 * blocky(8, num=6)
    finder = SeamFinder(ndim=2)
    for part in field.split(2):
        finder.update(part)
    whole, parts = find_seams(field, ndim=2), finder.result()
    assert parts.sizes == whole.sizes == (8, 8)
    assert parts.p_value == pytest.approx(whole.p_value)


def test_units_do_not_matter(smooth):
    field = smooth() + 0.1 * blocky(8)
    assert find_seams(1e-9 * field, ndim=2).p_value == pytest.approx(
        find_seams(field, ndim=2).p_value
    )


def test_too_few_borders_and_bad_input(smooth):
    one = smooth((16, 16)) + blocky(8, (16, 16))  # along an axis that does not wrap
    assert find_seams(one, [8], ndim=2, periodic=False).sizes == ()
    assert find_seams(torch.zeros(2, 32, 32), ndim=2).sizes == ()
    finder = SeamFinder(ndim=2)
    with pytest.raises(ot.OvertoneError, match="call update first"):
        finder.result()
    finder.update(smooth((32, 32)))
    with pytest.raises(ot.DomainError, match="after ones of"):
        finder.update(smooth((16, 32)))
    with pytest.raises(ot.PatchError, match="does not fit"):
        find_seams(smooth(), [65], ndim=2)
