"""Polynomials on an interval [0, L], held as their values at Chebyshev nodes.

The nodes crowd towards both ends, where boundary layers are, and interpolation through them
converges geometrically for smooth functions. A polynomial of degree n has the n + 1 nodes

    y_j = L/2 (1 - cos(π j / n)),   j = 0 … n,

both ends included. Everything else is a matrix on those values: its derivative, its values
elsewhere, its integral. All results are float64.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from overtone.errors import OvertoneError


def chebyshev_nodes(degree: int, length: float = 1.0) -> Tensor:
    """The nodes `(degree + 1,)` from 0 to `length`."""
    # sin² keeps the digits of the nodes next to 0, where 1 - cos would lose them.
    return length * torch.sin(_angles(degree) / 2) ** 2


def differentiation_matrix(degree: int, length: float = 1.0) -> Tensor:
    """From values at the nodes to the derivative there, `(degree + 1, degree + 1)`."""
    angle = _angles(degree)
    # Differences of nodes as products of sines, which do not cancel.
    total, difference = angle[:, None] + angle[None, :], angle[:, None] - angle[None, :]
    gap = length * torch.sin(total / 2) * torch.sin(difference / 2)
    weight = _barycentric_weights(degree)
    matrix = (weight[None, :] / weight[:, None]) / gap.fill_diagonal_(1.0)
    # A constant has no derivative: the diagonal makes every row add up to zero.
    matrix.fill_diagonal_(0.0)
    return matrix - torch.diag(matrix.sum(dim=1))


def interpolation_matrix(degree: int, points: Tensor, length: float = 1.0) -> Tensor:
    """From values at the nodes to values at `points` `(n,)`: `(n, degree + 1)`."""
    if bool(((points < 0) | (points > length)).any()):
        raise OvertoneError(
            f"points reach from {points.min():g} to {points.max():g}; expected points between 0 "
            f"and {length:g}, as polynomials grow fast outside their nodes"
        )
    gap = points.double()[:, None] - chebyshev_nodes(degree, length)[None, :]
    exact = gap == 0
    ratio = _barycentric_weights(degree) / torch.where(exact, 1.0, gap)
    matrix = ratio / ratio.sum(dim=1, keepdim=True)
    return torch.where(exact.any(dim=1, keepdim=True), exact.double(), matrix)


def quadrature_weights(degree: int, length: float = 1.0) -> Tensor:
    """Weights `(degree + 1,)` that integrate the polynomial through the nodes exactly."""
    points, weights = gauss_quadrature(degree // 2 + 1, length)
    return weights @ interpolation_matrix(degree, points, length)


def gauss_quadrature(num: int, length: float = 1.0) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre points and weights, `(num,)` each: exact up to degree 2 num - 1.

    Products of polynomials are integrated on these points: half as many as Chebyshev nodes do.
    """
    points, weights = np.polynomial.legendre.leggauss(num)
    return torch.from_numpy(length / 2 * (1 + points)), torch.from_numpy(length / 2 * weights)


def _angles(degree: int) -> Tensor:
    if degree < 1:
        raise OvertoneError(f"degree is {degree}; expected at least 1")
    return torch.arange(degree + 1, dtype=torch.float64) * math.pi / degree


def _barycentric_weights(degree: int) -> Tensor:
    weight = (-1.0) ** torch.arange(degree + 1, dtype=torch.float64)
    weight[[0, -1]] *= 0.5
    return weight
