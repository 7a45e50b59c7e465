"""Rotations at physical positions: distances round the circle, one phase for one place."""

import math

import pytest
import torch

import overtone as ot
from overtone.grid import PatchGrid
from overtone.models.processors.rope import rotate, space_rotation, time_rotation, turns


def domain(boundary="periodic", shape=(32, 48)):
    return ot.Domain(shape, (1.0,) * len(shape), boundary, ("u",))


def table(grid, head_dim=16):
    return space_rotation(grid, head_dim, 16, torch.zeros(1))


def test_turns_are_distinct_whole_numbers_up_to_the_largest():
    assert turns(16, 16) == list(range(1, 17))
    for num, most in ((8, 16), (5, 64), (1, 16)):
        result = turns(num, most)
        assert len(set(result)) == num
        assert result == sorted(result)
        assert result[0] == 1
        assert num == 1 or result[-1] == most


def test_complex_and_real_rotation_agree():
    x = torch.randn(2, 32, 48, 3, 16)
    rotation = space_rotation(PatchGrid.lay(domain(), 1), 16, 16, x).unsqueeze(-3)
    # The real path is the one for half precision: round to it on both sides.
    half = rotate(x.bfloat16(), rotation)
    assert torch.allclose(half.float(), rotate(x.bfloat16().float(), rotation), atol=2e-2)
    angle = torch.atan2(rotation[..., 1], rotation[..., 0])
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(
        torch.ones_like(angle), angle
    )
    assert torch.allclose(rotate(x, rotation), torch.view_as_real(pairs).flatten(-2), atol=1e-5)


def test_products_depend_on_distance_round_the_circle():
    grid = PatchGrid.lay(domain(), 4)
    q, k = torch.randn(16), torch.randn(16)
    rq, rk = rotate(q.expand(8, 12, 16), table(grid)), rotate(k.expand(8, 12, 16), table(grid))
    product = torch.einsum("abd,cd->abc", rq, rk[0])
    # The last column and the first are neighbours.
    assert product[0, 11, 0].item() == pytest.approx(product[0, 0, 1].item(), abs=1e-4)
    assert product[0, 3, 2].item() == pytest.approx(product[0, 4, 3].item(), abs=1e-4)


def test_ends_of_a_bounded_axis_are_told_apart():
    grid = PatchGrid.lay(domain("wall", (32,)), 1)
    phase = table(grid, 4)[:, 0]
    angle = torch.atan2(phase[:, 1], phase[:, 0])
    assert angle[-1] - angle[0] == pytest.approx(math.pi * 31 / 32, abs=1e-5)


def test_the_same_place_has_the_same_phase_at_every_patch():
    # Patch 3 puts a centre at cell 1.5 + 3j, patch 9 at 4.5 + 9j: every third of the former.
    there = domain(shape=(36,))
    fine, coarse = (table(PatchGrid.lay(there, patch)) for patch in (3, 9))
    assert torch.allclose(fine[1::3], coarse, atol=1e-6)


def test_products_in_time_depend_on_the_number_of_frames_between():
    rotation = time_rotation(6, 16, torch.zeros(1))
    q, k = (rotate(torch.randn(16).expand(6, 16), rotation) for _ in range(2))
    product = q @ k.T
    for between in range(-5, 6):
        along = product.diagonal(between)
        torch.testing.assert_close(along, along[:1].expand_as(along), atol=1e-5, rtol=1e-4)
    assert torch.equal(rotation[:4], time_rotation(4, 16, torch.zeros(1)))


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_rotations_are_rotations(ndim):
    there = domain("wall", (8,) * ndim)
    rotation = table(PatchGrid.lay(there, 2), head_dim=10)
    assert rotation.shape == (*(4,) * ndim, 5, 2)
    assert torch.allclose(rotation.square().sum(-1), torch.ones(*(4,) * ndim, 5))


def test_the_first_pair_turns_a_radian_in_a_frame_and_the_last_in_a_hundred():
    """Between them the frequencies fall geometrically."""
    rotation = time_rotation(3, 12, torch.zeros(1, dtype=torch.float64))
    angles = torch.atan2(rotation[..., 1], rotation[..., 0])
    expected = [100 ** (-pair / 5) for pair in range(6)]
    assert angles[1].tolist() == pytest.approx(expected)
    assert angles[2].tolist() == pytest.approx([2 * angle for angle in expected])
