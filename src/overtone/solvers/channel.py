"""Incompressible flow between two walls: its basis, and the way to the grid and back.

The box is periodic in x and has walls at y = 0 and y = 1. For every wavenumber k along x, with
i² = -1, the fields are polynomials in y of degree n that keep their boundary values exactly:

    velocity (ψ', -ikψ) e^{ikx} with ψ = ψ' = 0 at the walls  (k = 0: (u, 0) with u = 0),
    scalar   θ e^{ikx} with θ = 0 at the walls.

Of these spaces we take the Galerkin eigenmodes of diffusion (Stokes modes for the velocity). They
are orthonormal, so projecting on them removes the pressure; they have no divergence; and diffusion
only damps each of them at its own rate, so that a solver can treat it exactly. Products of two
fields are projected with the 3/2 rule along x and Gauss points in y: without aliasing errors.

A polynomial on [0, L] is held as its values at n + 1 Chebyshev nodes, both ends included,

    y_j = L/2 (1 - cos(π j / n)),   j = 0 … n.

They crowd towards the ends, where boundary layers are, and interpolation through them converges
geometrically for smooth functions. Everything else is a matrix on those values: the derivative,
values elsewhere, the integral. All results are float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from overtone.errors import OvertoneError


@dataclass(frozen=True)
class Channel:
    """The basis on one grid; K wavenumbers, n the degree in y, M Gauss points, m = n - 1 modes.

    Velocity modes number n - 3 (n - 2 at k = 0); the rest of the m are zero.

    Attributes:
        k: wavenumbers `(K,)`.
        height: Gauss points `(M,)`.
        weight: their quadrature weights `(M,)`.
        to_gauss: from nodes to Gauss points, `(M, n + 1)`.
        derivative: at the nodes, `(n + 1, n + 1)`.
        u: modes of u at the nodes, `(K, n + 1, m)`.
        v: modes of v, times i, at the nodes, `(K, n + 1, m)`.
        theta: modes of the scalar at the nodes, `(n + 1, m)`.
        velocity_rates: λ of `-∇²` for the velocity modes, `(K, m)`.
        scalar_rates: the same for the scalar, `(K, m)`.
        u_v_omega: modes of u, i v and the vorticity at the Gauss points, `(K, 3 M, m)`.
        force: projects a force (f, i g) at the Gauss points on the velocity modes, `(K, m, 2 M)`.
        scalar: modes of the scalar at the Gauss points, `(M, m)`.
        flux: minus the divergence of a flux (i f, g), projected on the scalar, `(K, m, 2 M)`.
        pressure: from the weak divergence of a force to its pressure at the nodes,
            `(K, n + 1, n + 1)`.
    """

    k: Tensor
    height: Tensor
    weight: Tensor
    to_gauss: Tensor
    derivative: Tensor
    u: Tensor
    v: Tensor
    theta: Tensor
    velocity_rates: Tensor
    scalar_rates: Tensor
    u_v_omega: Tensor
    force: Tensor
    scalar: Tensor
    flux: Tensor
    pressure: Tensor

    @property
    def degree(self) -> int:
        """Highest power of y."""
        return self.theta.shape[0] - 1

    def to(self, device: torch.device) -> Channel:
        """The same on another device."""
        return Channel(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


@lru_cache(maxsize=4)
def channel(num: int, length: float, degree: int, device: torch.device) -> Channel:
    """The basis for `num` cells along x on `length`, and polynomials of `degree` in y.

    Wavenumbers reach up to, not including, the grid's Nyquist wavenumber.
    """
    k = 2 * math.pi / length * torch.arange((num + 1) // 2, dtype=torch.float64)
    height, weight = gauss_quadrature(math.ceil(3 * degree / 2))
    to_gauss, derivative = interpolation_matrix(degree, height), differentiation_matrix(degree)
    theta, rates = _scalar_modes(degree, degree, to_gauss, derivative, weight)
    u, v, velocity_rates = _velocity_modes(k, degree, to_gauss, derivative, weight)
    omega = k[:, None, None] * v - derivative @ u
    slope = (derivative @ theta).expand(len(k), -1, -1)
    along = -k[:, None, None] * theta
    test_force = torch.cat([to_gauss @ u, to_gauss @ v], dim=1)
    test_flux = torch.cat([to_gauss @ along, to_gauss @ slope], dim=1)
    twice = torch.cat([weight, weight])[:, None]
    return Channel(
        k=k,
        height=height,
        weight=weight,
        to_gauss=to_gauss,
        derivative=derivative,
        u=u,
        v=v,
        theta=theta,
        velocity_rates=velocity_rates,
        scalar_rates=rates + k[:, None] ** 2,
        u_v_omega=torch.cat([to_gauss @ u, to_gauss @ v, to_gauss @ omega], dim=1),
        force=(twice * test_force).mT.contiguous(),
        scalar=to_gauss @ theta,
        flux=(twice * test_flux).mT.contiguous(),
        pressure=_pressure_inverse(k, degree, to_gauss, derivative, weight),
    ).to(device)


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


def _scalar_modes(
    degree: int, highest: int, to_gauss: Tensor, derivative: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Eigenmodes of -d²/dy² with zero values at the walls and degree `highest`, and their rates."""
    waves = _chebyshev_polynomials(degree)[:, : highest + 1]
    basis = waves[:, :-2] - waves[:, 2:]
    basis[[0, -1]] = 0.0  # zero by construction, not only to round-off
    root = weight.sqrt()[:, None]
    values, slope = to_gauss @ basis, to_gauss @ derivative @ basis
    coefficients, rates = _eigenmodes(root * values, root * slope)
    return basis @ coefficients, rates


def _velocity_modes(
    k: Tensor, degree: int, to_gauss: Tensor, derivative: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Stokes modes u and i v at the nodes, `(K, n + 1, m)`, and their rates `(K, m)`."""
    waves, j = _chebyshev_polynomials(degree), torch.arange(degree - 3, dtype=torch.float64)
    # Three polynomials of one parity, combined so that value and slope vanish at both walls.
    psi = waves[:, :-4] - 2 * (j + 2) / (j + 3) * waves[:, 2:-2] + (j + 1) / (j + 3) * waves[:, 4:]
    slope = derivative @ psi
    psi[[0, -1]], slope[[0, -1]] = 0.0, 0.0
    root, wave = weight.sqrt()[:, None], k[1:, None, None]
    values = torch.cat(
        [(root * (to_gauss @ slope)).expand(len(k) - 1, -1, -1), wave * root * (to_gauss @ psi)], 1
    )
    laplacian = root * (to_gauss @ (derivative @ slope - wave**2 * psi))
    coefficients, rates = _eigenmodes(values, laplacian)
    mean, mean_rates = _scalar_modes(degree, degree - 1, to_gauss, derivative, weight)
    u = torch.cat([pad(mean, (0, 1))[None], pad(slope @ coefficients, (0, 2))])
    v = torch.cat([torch.zeros_like(u[:1]), pad(wave * (psi @ coefficients), (0, 2))])
    return u, v, torch.cat([pad(mean_rates, (0, 1))[None], pad(rates, (0, 2))])


def _eigenmodes(values: Tensor, operator: Tensor) -> tuple[Tensor, Tensor]:
    """Solve `operatorᵀ operator q = λ valuesᵀ values q`, for `(…, P, r)` matrices.

    Through QR and the singular values, which keep the digits that squaring would lose. Returns the
    coefficients q in columns, `(…, r, r)`, normalised by `values`, and λ ascending, `(…, r)`.
    """
    triangle = torch.linalg.qr(values).R
    reduced = torch.linalg.solve_triangular(triangle, operator, upper=True, left=False)
    _, singular, right = torch.linalg.svd(reduced, full_matrices=False)
    coefficients = torch.linalg.solve_triangular(triangle, right.mT, upper=True)
    return coefficients.flip(-1), singular.flip(-1) ** 2


def _pressure_inverse(
    k: Tensor, degree: int, to_gauss: Tensor, derivative: Tensor, weight: Tensor
) -> Tensor:
    """Inverse of (∇q, ∇p) for all polynomials q at each wavenumber; p has no mean."""
    slope = to_gauss @ derivative
    stiffness = slope.mT @ (weight[:, None] * slope)
    mass = to_gauss.mT @ (weight[:, None] * to_gauss)
    matrix = stiffness + k[:, None, None] ** 2 * mass
    # A constant pressure has no gradient; its mean takes that place, and is asked to be zero.
    mean = quadrature_weights(degree)
    matrix[0] += mean[:, None] * mean[None, :]
    return torch.linalg.inv(matrix)


def _chebyshev_polynomials(degree: int) -> Tensor:
    """T_j at the nodes, up to sign, `(n + 1, n + 1)`."""
    j = torch.arange(degree + 1, dtype=torch.float64)
    return torch.cos(j[:, None] * j[None, :] * math.pi / degree)


def _angles(degree: int) -> Tensor:
    if degree < 1:
        raise OvertoneError(f"degree is {degree}; expected at least 1")
    return torch.arange(degree + 1, dtype=torch.float64) * math.pi / degree


def _barycentric_weights(degree: int) -> Tensor:
    weight = (-1.0) ** torch.arange(degree + 1, dtype=torch.float64)
    weight[[0, -1]] *= 0.5
    return weight
