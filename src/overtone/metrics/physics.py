"""Does a prediction obey the equations: derivatives, budgets, and residuals of incompressible flow.

    mass:       |∇·u|
    momentum:   |∂u/∂t - ν ∇²u + u·∇u + ∇p|

are the two of the paper's section "Physics informed behavior" (density 1). A solver's own output
does not make them zero either: frames lie apart in time and were often coarsened. So compare with
the truth's residuals. Where the truth's are next to nothing, relative to them is a number without
bound; relative to the terms, which have to cancel, it is between 0 and 1:

    mass:       Σ_i |∂u_i/∂x_i|
    momentum:   |∂u/∂t| + |ν ∇²u| + |u·∇u| + |∇p|

Derivatives are spectral on periodic axes and finite differences of fourth order on others,
one-sided at the ends. Non-periodic axes have equal cells unless coordinates are given. All
computations are float64. Vectors are `(..., d, *space)`, one component for each axis of the domain,
in its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import torch
from torch import Tensor

from overtone.domain import Domain
from overtone.errors import DomainError
from overtone.ops.spectral import wavenumbers

STENCIL = 5
"""Points of a finite difference."""

Coordinates = Mapping[int, Tensor]
"""Positions `(n,)` of the grid points along axes with unequal cells, by axis."""


def derivative(
    field: Tensor, axis: int, domain: Domain, *, coordinates: Coordinates | None = None
) -> Tensor:
    """∂/∂x along one axis, `(..., *space)` to the same shape."""
    _require_grid(field, domain)
    field = field.double()
    dim = axis - domain.ndim
    if coordinates is not None and axis in coordinates:
        points = tuple(coordinates[axis].double().tolist())
    elif domain.periodic[axis]:
        return _spectral_derivative(field, dim, domain.extent[axis])
    else:
        points = tuple(i * domain.spacing[axis] for i in range(domain.shape[axis]))
    matrix = _difference_matrix(points).to(field.device)
    if len(matrix) != domain.shape[axis]:
        raise DomainError(
            f"{len(matrix)} coordinates along axis {axis} of {domain.shape[axis]} cells"
        )
    return torch.movedim(torch.movedim(field, dim, -1) @ matrix.T, -1, dim)


def gradient(field: Tensor, domain: Domain, *, coordinates: Coordinates | None = None) -> Tensor:
    """∇ of `(..., *space)`: `(..., d, *space)`."""
    parts = [derivative(field, a, domain, coordinates=coordinates) for a in range(domain.ndim)]
    return torch.stack(parts, dim=-domain.ndim - 1)


def divergence(
    velocity: Tensor, domain: Domain, *, coordinates: Coordinates | None = None
) -> Tensor:
    """∇· of `(..., d, *space)`: `(..., *space)`."""
    components = _components(velocity, domain)
    parts = [derivative(c, a, domain, coordinates=coordinates) for a, c in enumerate(components)]
    return torch.stack(parts).sum(dim=0)


def laplacian(field: Tensor, domain: Domain, *, coordinates: Coordinates | None = None) -> Tensor:
    """∇² of `(..., *space)`: the same shape."""
    return divergence(
        gradient(field, domain, coordinates=coordinates), domain, coordinates=coordinates
    )


def vorticity(
    velocity: Tensor, domain: Domain, *, coordinates: Coordinates | None = None
) -> Tensor:
    """∇× of `(..., d, *space)`: one component in 2D, three in 3D, in the place of d."""
    components = _components(velocity, domain)
    pairs = {2: [(0, 1)], 3: [(1, 2), (2, 0), (0, 1)]}.get(domain.ndim)
    if pairs is None:
        raise DomainError("a flow in one dimension has no vorticity")

    def slope(component: int, axis: int) -> Tensor:
        return derivative(components[component], axis, domain, coordinates=coordinates)

    return torch.stack([slope(b, a) - slope(a, b) for a, b in pairs], dim=-domain.ndim - 1)


def kinetic_energy(velocity: Tensor, domain: Domain, *, density: Tensor | None = None) -> Tensor:
    """½ ρ |u|² integrated over the domain, `(...)`; ρ is 1 if it is not given."""
    energy = torch.stack(_components(velocity, domain)).double().square().sum(dim=0) / 2
    return total(energy if density is None else density.double() * energy, domain)


def enstrophy(
    velocity: Tensor, domain: Domain, *, coordinates: Coordinates | None = None
) -> Tensor:
    """½ |∇×u|² integrated over the domain, `(...)`."""
    spin = vorticity(velocity, domain, coordinates=coordinates)
    return total(spin.square().sum(dim=-domain.ndim - 1) / 2, domain)


def total(field: Tensor, domain: Domain) -> Tensor:
    """A field `(..., *space)` integrated over a domain of equal cells: mass, from a density."""
    _require_grid(field, domain)
    volume = torch.tensor(domain.spacing, dtype=torch.float64).prod().item()
    return field.double().flatten(-domain.ndim).sum(dim=-1) * volume


def total_momentum(velocity: Tensor, domain: Domain, *, density: Tensor | None = None) -> Tensor:
    """ρ u integrated over the domain, `(..., d)`; ρ is 1 if it is not given."""
    parts = [c.double() for c in _components(velocity, domain)]
    parts = parts if density is None else [c * density.double() for c in parts]
    return torch.stack([total(part, domain) for part in parts], dim=-1)


def total_energy(
    velocity: Tensor, density: Tensor, pressure: Tensor, domain: Domain, *, gamma: float = 5 / 3
) -> Tensor:
    """½ ρ |u|² + p / (γ - 1) of an ideal gas, integrated over the domain, `(...)`."""
    thermal = total(pressure, domain) / (gamma - 1)
    return kinetic_energy(velocity, domain, density=density) + thermal


def mass_residual(
    velocity: Tensor, domain: Domain, *, coordinates: Coordinates | None = None
) -> Tensor:
    """|∇·u| of `(..., d, *space)`: `(..., *space)`."""
    return divergence(velocity, domain, coordinates=coordinates).abs()


def mass_terms(
    velocity: Tensor, domain: Domain, *, coordinates: Coordinates | None = None
) -> Tensor:
    """Σ_i |∂u_i/∂x_i|, the most that `mass_residual` can be; arguments and shape are its own."""
    components = _components(velocity, domain)
    parts = [derivative(c, a, domain, coordinates=coordinates) for a, c in enumerate(components)]
    return torch.stack(parts).abs().sum(dim=0)


def momentum_residual(
    velocity: Tensor,
    pressure: Tensor,
    domain: Domain,
    *,
    viscosity: float,
    force: Tensor | None = None,
    coordinates: Coordinates | None = None,
) -> Tensor:
    """|∂u/∂t - ν ∇²u + u·∇u + ∇p - f| at all frames that have one before and one after.

    Args:
        velocity: `(..., T, d, *space)`, at least three frames `domain.dt` apart.
        pressure: `(..., T, *space)`.
        domain: what they live on.
        viscosity: ν.
        force: f, e.g. buoyancy, `(..., T, d, *space)`; none if it is not given.
        coordinates: of axes with unequal cells.

    Returns:
        `(..., T - 2, *space)`: the length of the vector. The time derivative is a central
        difference, so the exact solution has a residual of order dt².
    """
    terms = _momentum(velocity, pressure, domain, viscosity, force, coordinates)
    return _length(torch.stack(terms).sum(dim=0), domain)


def momentum_terms(
    velocity: Tensor,
    pressure: Tensor,
    domain: Domain,
    *,
    viscosity: float,
    force: Tensor | None = None,
    coordinates: Coordinates | None = None,
) -> Tensor:
    """|∂u/∂t| + |ν ∇²u| + |u·∇u| + |∇p - f|, the most that `momentum_residual` can be.

    Pressure and force are one term: at rest they balance each other. Arguments and shapes are those
    of `momentum_residual`.
    """
    terms = _momentum(velocity, pressure, domain, viscosity, force, coordinates)
    return torch.stack([_length(term, domain) for term in terms]).sum(dim=0)


def _momentum(
    velocity: Tensor,
    pressure: Tensor,
    domain: Domain,
    viscosity: float,
    force: Tensor | None,
    coordinates: Coordinates | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """∂u/∂t, -ν ∇²u, u·∇u and ∇p - f, each `(..., T - 2, d, *space)`."""
    frames = velocity.dim() - domain.ndim - 2
    if frames < 0 or velocity.shape[frames] < 3:
        raise DomainError(
            f"velocity has shape {tuple(velocity.shape)}; expected (..., T, {domain.ndim}, *space) "
            "with at least three frames"
        )
    num = velocity.shape[frames] - 2
    earlier, now, later = (velocity.narrow(frames, i, num).double() for i in range(3))
    component = -domain.ndim - 1
    _components(now, domain)
    advection = torch.zeros_like(now)
    diffusion = torch.zeros_like(now)
    for axis in range(domain.ndim):
        slope = derivative(now, axis, domain, coordinates=coordinates)
        advection += now.narrow(component, axis, 1) * slope
        diffusion += derivative(slope, axis, domain, coordinates=coordinates)
    push = gradient(pressure.narrow(frames, 1, num), domain, coordinates=coordinates)
    if force is not None:
        push = push - force.narrow(frames, 1, num).double()
    change = (later - earlier) / (2 * domain.dt)
    return change, -viscosity * diffusion, advection, push


def _length(vectors: Tensor, domain: Domain) -> Tensor:
    """Lengths `(..., *space)` of `(..., d, *space)`; norm() takes a slow path over this axis."""
    return vectors.square().sum(dim=-domain.ndim - 1).sqrt()


def _spectral_derivative(field: Tensor, dim: int, length: float) -> Tensor:
    n = field.shape[dim]
    (k,) = wavenumbers((n,), (length,))
    if n % 2 == 0:
        k = k.clone()
        k[-1] = 0  # the derivative of cos at the Nyquist wavenumber vanishes on the grid
    # Some versions of MKL refuse a field that is expanded along another axis.
    modes = torch.movedim(torch.fft.rfft(field.contiguous(), dim=dim), dim, -1)
    return torch.movedim(torch.fft.irfft(1j * k.to(field.device) * modes, n=n), -1, dim)


@lru_cache(maxsize=64)
def _difference_matrix(points: tuple[float, ...]) -> Tensor:
    """From values at points to the derivative there of the polynomial through the nearest five."""
    n = len(points)
    if n < STENCIL:
        raise DomainError(f"an axis that is not periodic has {n} cells; expected {STENCIL} or more")
    x = torch.tensor(points, dtype=torch.float64)
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        start = min(max(i - STENCIL // 2, 0), n - STENCIL)
        offset = x[start : start + STENCIL] - x[i]
        scale = offset.abs().max()
        # Weights that differentiate 1, x, x², … exactly, in units in which the system is tame.
        powers = (offset / scale) ** torch.arange(STENCIL)[:, None]
        slopes = torch.zeros(STENCIL, dtype=torch.float64)
        slopes[1] = 1 / scale
        matrix[i, start : start + STENCIL] = torch.linalg.solve(powers, slopes)
    return matrix


def _components(velocity: Tensor, domain: Domain) -> tuple[Tensor, ...]:
    _require_grid(velocity, domain)
    component = -domain.ndim - 1
    if velocity.dim() <= domain.ndim or velocity.shape[component] != domain.ndim:
        raise DomainError(
            f"velocity has shape {tuple(velocity.shape)}; expected {domain.ndim} components before "
            f"the axes {domain.shape}"
        )
    return velocity.unbind(dim=component)


def _require_grid(field: Tensor, domain: Domain) -> None:
    if tuple(field.shape[-domain.ndim :]) != domain.shape:
        raise DomainError(
            f"field has shape {tuple(field.shape)}; the domain's grid is {domain.shape}"
        )
