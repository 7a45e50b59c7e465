"""Interpolation: what a spline must reproduce, and that grids and points agree."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from overtone.ops.sampling import sample_grid, sample_points, stencil

CASES = list(product(("linear", "cubic"), (True, False)))


def centres(n):
    return [(i + 0.5) / n for i in range(n)]


@pytest.mark.parametrize(("spline", "periodic"), CASES)
def test_a_cell_has_its_own_value_at_its_centre(spline, periodic):
    values = torch.randn(5, 7, 3, dtype=torch.float64)
    places = torch.tensor(list(product(centres(5), centres(7))), dtype=torch.float64)
    options = {"periodic": (periodic, periodic), "spline": spline}
    assert torch.allclose(sample_points(values, places, **options), values.flatten(0, 1))
    assert sample_grid(values, (centres(5), centres(7)), **options) is values


@pytest.mark.parametrize(("spline", "degree"), [("linear", 1), ("cubic", 2)])
def test_polynomials_are_reproduced_inside(spline, degree):
    x = torch.tensor(centres(12), dtype=torch.float64)
    places = torch.linspace(0.2, 0.8, 50, dtype=torch.float64)
    read = sample_points((x**degree)[:, None], places[:, None], periodic=(False,), spline=spline)
    assert torch.allclose(read[:, 0], places**degree, atol=1e-12)


@pytest.mark.parametrize(("spline", "order"), [("linear", 2), ("cubic", 3)])
def test_order_of_convergence_on_a_circle(spline, order):
    places = torch.rand(200, 1, dtype=torch.float64)
    exact = torch.sin(2 * math.pi * places)
    errors = []
    for n in (32, 64, 128):
        values = torch.sin(2 * math.pi * torch.tensor(centres(n), dtype=torch.float64))[:, None]
        read = sample_points(values, places, periodic=(True,), spline=spline)
        errors.append((read - exact).square().mean().sqrt())
    assert math.log2(errors[0] / errors[2]) / 2 > order - 0.2


@pytest.mark.parametrize(("spline", "periodic"), CASES)
def test_weights_add_up_to_one_and_cells_exist(spline, periodic):
    cells, weights = stencil(torch.linspace(0, 1, 101), 6, periodic=periodic, spline=spline)
    assert torch.allclose(weights.sum(dim=1), torch.ones(101))
    assert cells.min() == 0
    assert cells.max() == 5


@pytest.mark.parametrize(("spline", "periodic"), CASES)
def test_a_grid_of_places_is_its_points(spline, periodic):
    values = torch.randn(5, 1, 6, 2, dtype=torch.float64)
    along = [[0.0, 0.13, 0.99], [0.5], [0.31, 0.7]]
    options = {"periodic": (periodic,) * 3, "spline": spline}
    points = torch.tensor(list(product(*along)), dtype=torch.float64)
    read = sample_grid(values, along, **options)
    assert torch.allclose(read.flatten(0, 2), sample_points(values, points, **options))


@pytest.mark.parametrize("size", [(4, 12), (16, 24), (5, 7)])
def test_linear_sampling_is_the_bilinear_resize_of_images(size):
    values = torch.randn(8, 12, 3, dtype=torch.float64)
    image = values.movedim(-1, 0)[None]
    expected = F.interpolate(image, size=size, mode="bilinear")[0].movedim(0, -1)
    read = sample_grid(values, [centres(n) for n in size], periodic=(False, False), spline="linear")
    assert torch.allclose(read, expected, atol=1e-12)


def test_a_circle_has_no_seam():
    values = torch.randn(9, 2, dtype=torch.float64)
    places = torch.rand(40, 1, dtype=torch.float64)
    options = {"periodic": (True,), "spline": "cubic"}
    read = sample_points(values, places, **options)
    moved = sample_points(values.roll(4, 0), places + 4 / 9 - 1, **options)
    assert torch.allclose(read, moved, atol=1e-12)


def test_the_cubic_spline_has_a_continuous_slope():
    values = torch.randn(6, 1, dtype=torch.float64)
    places = torch.linspace(0, 1, 6001, dtype=torch.float64)[:, None]
    read = sample_points(values, places, periodic=(True,), spline="cubic")
    slope = read.diff(dim=0)
    assert slope.diff(dim=0).abs().max() < 0.02 * slope.abs().max()
