"""Compressible Euler equations of an ideal gas, finite volumes on one to three axes.

    ∂ρ/∂t + ∇·(ρv) = 0,   ∂(ρv)/∂t + ∇·(ρvv) + ∇p = 0,   ∂E/∂t + ∇·((E + p)v) = 0,

    E = p/(γ - 1) + ρ|v|²/2.

Method of lines: primitive variables are reconstructed at the faces by limited linear pieces
(monotonized central), the HLLC Riemann solver gives the flux through each face, and a second-order
strong-stability-preserving Runge-Kutta step adds the differences of fluxes. Mass, momentum and
energy change by fluxes only, so they are conserved to round-off where nothing leaves.

The limiter keeps face values between those of the two cells at the face. So density and pressure
of a face are positive when those of the cells are; cells have floors for both.

All axes run through the same code: a sweep copies the variables so that its axis is the slowest of
the grid. Neighbours along it are then whole contiguous blocks, and every pass over memory is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.domain import Boundary, Sides
from overtone.errors import OvertoneError
from overtone.solvers.steppers import ssp_rk2

GHOSTS = 2
MAX_STEPS = 20_000

Source = Callable[[Tensor, float], Tensor]
"""A source step: the state after the sources alone acted on it for a while."""


@dataclass(frozen=True)
class Gas:
    """An ideal gas on a uniform grid.

    A state is `(num, 2 + d, *space)`: density, the d momentum densities, total energy density.
    Primitive variables are in the same order: density, velocities, pressure.

    Args:
        spacing: length of a cell along each of the d axes.
        boundaries: what lies beyond the two sides of each axis. Periodic sides wrap, open sides
            repeat the last cell, walls reflect.
        gamma: ratio of specific heats.
        density_floor: least density of a cell.
        pressure_floor: least pressure of a cell.
        courant: how much of a cell the fastest waves of all axes together may cross in a step.
    """

    spacing: tuple[float, ...]
    boundaries: tuple[Sides, ...]
    gamma: float = 5 / 3
    density_floor: float = 1e-10
    pressure_floor: float = 1e-12
    courant: float = 0.8

    def __post_init__(self) -> None:
        if self.gamma <= 1 or min(self.density_floor, self.pressure_floor) <= 0:
            raise OvertoneError(f"{self}: expected gamma above 1 and floors above 0")
        if not 0 < self.courant <= 1:
            raise OvertoneError(f"courant is {self.courant}; expected a number in (0, 1]")

    def primitive(self, state: Tensor) -> Tensor:
        """Density, velocities and pressure of a state, floors applied, same shape."""
        # Variables first in memory: each of them is then one contiguous block.
        shape = (state.shape[1], state.shape[0], *state.shape[2:])
        result = state.new_empty(shape)
        torch.clamp(state[:, 0], min=self.density_floor, out=result[0])
        torch.div(state[:, 1:-1].movedim(1, 0), result[0], out=result[1:-1])
        kinetic = _dot(state[:, 1:-1].movedim(1, 0), result[1:-1])
        pressure = torch.sub(state[:, -1], kinetic, alpha=0.5, out=result[-1])
        pressure.mul_(self.gamma - 1).clamp_(min=self.pressure_floor)
        return result.movedim(0, 1)

    def conserved(self, primitive: Tensor) -> Tensor:
        """The state of density, velocities and pressure, same shape."""
        density, velocity, pressure = primitive[:, :1], primitive[:, 1:-1], primitive[:, -1:]
        energy = pressure / (self.gamma - 1)
        energy = energy + density * velocity.square().sum(dim=1, keepdim=True) / 2
        return torch.cat([density, density * velocity, energy], dim=1)

    def tendency(self, state: Tensor) -> Tensor:
        """Minus the divergence of the fluxes, same shape as the state."""
        variables = self.primitive(state).movedim(1, 0)
        result = torch.empty_like(variables)
        for axis, spacing in enumerate(self.spacing):
            padded = _pad(variables.movedim(2 + axis, 1), self.boundaries[axis], 1 + axis)
            flux = hllc_flux(*limited_faces(padded), axis=axis, gamma=self.gamma)
            change = torch.sub(flux[:, :-1], flux[:, 1:]).div_(spacing)
            target = result.movedim(2 + axis, 1)
            _ = target.add_(change) if axis else target.copy_(change)
        return result.movedim(0, 1)

    def time_step(self, state: Tensor) -> float:
        """The longest stable step, common to all trajectories."""
        variables = self.primitive(state).movedim(1, 0)
        sound = torch.div(variables[-1], variables[0]).mul_(self.gamma).sqrt_()
        rate = sound * sum(1 / spacing for spacing in self.spacing)
        for velocity, spacing in zip(variables[1:-1], self.spacing, strict=True):
            rate.add_(velocity.abs(), alpha=1 / spacing)
        return self.courant / rate.amax().item()

    def step(self, state: Tensor, dt: float) -> Tensor:
        """The state one step later, without sources."""
        return self.lift(ssp_rk2(state, dt, self.tendency))

    def lift(self, state: Tensor) -> Tensor:
        """Bring density and pressure up to their floors, in place."""
        density, momentum, energy = state[:, 0], state[:, 1:-1].movedim(1, 0), state[:, -1]
        density.clamp_(min=self.density_floor)
        least = _dot(momentum, momentum).div_(density).mul_(0.5)
        least.add_(self.pressure_floor / (self.gamma - 1))
        torch.maximum(energy, least, out=energy)
        return state

    def advance(self, state: Tensor, duration: float, source: Source | None = None) -> Tensor:
        """The state after some time, in as many steps as its waves ask for.

        Flow and sources alternate by Strang's splitting. Half steps of the source that follow each
        other are taken as one.
        """
        remaining, half = duration, 0.0
        while remaining > 1e-12 * duration:
            longest = self.time_step(state)
            if not math.isfinite(longest):
                return state  # the frame after it reports the instability
            dt = remaining / _num_steps(remaining, longest)
            if source is not None:
                state = source(state, half + dt / 2)
            state = self.step(state, dt)
            remaining, half = remaining - dt, dt / 2
        return state if source is None else source(state, half)


def limited_faces(padded: Tensor) -> tuple[Tensor, Tensor]:
    """Values on both sides of every face, by limited linear pieces in the cells.

    The limiter is the monotonized central one: the central slope, but no face value beyond the
    neighbour's mean, and flat at extrema. Second order in smooth flow.

    Args:
        padded: cell means `(variables, n + 4, …)`, two ghost cells on both sides.

    Returns:
        left and right values at the n + 1 faces, each `(variables, n + 1, …)`.
    """
    jump = padded[:, 1:] - padded[:, :-1]
    below, above = jump[:, :-1], jump[:, 1:]
    # Half of minmod(2a, 2b, (a + b)/2): clamp the central value between 0 and the smaller jump.
    upper = torch.minimum(below, above).clamp_(min=0)
    lower = torch.maximum(below, above).clamp_(max=0)
    half = torch.add(below, above).mul_(0.25)
    torch.minimum(torch.maximum(half, lower, out=half), upper, out=half)
    # The limits have done their work; large new tensors would cost more than the arithmetic.
    left = torch.add(padded[:, 1:-2], half[:, :-1], out=upper[:, :-1])
    right = torch.sub(padded[:, 2:-1], half[:, 1:], out=lower[:, :-1])
    return left, right


def hllc_flux(left: Tensor, right: Tensor, *, axis: int, gamma: float) -> Tensor:
    """Flux of conserved variables through faces, by the HLLC Riemann solver.

    Three waves: the outer ones at the extreme speeds of both sides (Davis), between them a contact
    that moves at the speed s and is kept sharp. Only the side upwind of the contact enters the
    flux, so it is selected first and one flux is computed.

    Args:
        left: primitive variables on the lower side, `(2 + d, …)`.
        right: those on the upper side, same shape.
        axis: which of the d velocities is normal to the faces.
        gamma: ratio of specific heats.
    """
    normal = 1 + axis
    sound_l, sound_r = _sound(left, gamma), _sound(right, gamma)
    slowest = torch.minimum(left[normal] - sound_l, right[normal] - sound_r)
    fastest = torch.maximum(sound_l.add_(left[normal]), sound_r.add_(right[normal]))
    # Mass that crosses the outer waves, negative on the left.
    mass_l = torch.sub(slowest, left[normal]).mul_(left[0])
    mass_r = torch.sub(fastest, right[normal]).mul_(right[0])
    contact = torch.sub(right[-1], left[-1])
    contact.addcmul_(left[normal], mass_l).addcmul_(right[normal], mass_r, value=-1)
    contact.div_(mass_l - mass_r)

    from_left = contact >= 0
    side = torch.where(from_left, left, right)
    wave = torch.where(from_left, slowest, fastest)
    crossing = torch.where(from_left, mass_l, mass_r)
    # An outer wave that does not reach over the face changes nothing there.
    reach = torch.where(from_left, slowest.clamp_(max=0), fastest.clamp_(min=0))
    return _upwind_flux(side, contact, wave, crossing, reach, normal, gamma)


def _upwind_flux(
    side: Tensor,
    contact: Tensor,
    wave: Tensor,
    crossing: Tensor,
    reach: Tensor,
    normal: int,
    gamma: float,
) -> Tensor:
    """`F + reach (U* - U)` with the flux F, the state U and the star state U* of one side."""
    density, speed, pressure = side[0], side[normal], side[-1]
    flux = torch.empty_like(side)
    star = torch.div(crossing, wave.sub_(contact))
    mass = torch.mul(density, speed, out=flux[0])
    mass.addcmul_(reach, star - density)
    # What pressure does to the gas between the outer wave and the contact.
    push = reach.mul_(star).mul_(contact - speed)
    torch.mul(side[1:-1], mass, out=flux[1:-1])
    flux[normal].add_(pressure).add_(push)
    energy = torch.div(pressure, density).mul_(1 / (gamma - 1))
    energy.add_(_dot(side[1:-1], side[1:-1]), alpha=0.5).mul_(mass)
    energy.addcmul_(pressure, speed)
    torch.addcmul(energy, push, contact.addcdiv_(pressure, crossing), out=flux[-1])
    return flux


def _num_steps(duration: float, longest: float) -> int:
    """Equal steps of at most the longest that cover the duration."""
    if duration > MAX_STEPS * longest:
        raise OvertoneError(
            f"{duration:g} time units need more than {MAX_STEPS} solver steps, of {longest:g} "
            "each: the gas is too fast or too hot. Use milder parameters, a smaller frame interval "
            "or a coarser grid"
        )
    return max(1, math.ceil(duration / longest))


def _pad(variables: Tensor, sides: Sides, normal: int) -> Tensor:
    """Cells along the first grid axis with ghost cells: `(V, n, …)` to `(V, n + 4, …)`."""
    n, g = variables.shape[1], GHOSTS
    if n < g:
        raise OvertoneError(f"the grid has {n} cells along an axis; expected at least {g}")
    shape = (variables.shape[0], n + 2 * g, *variables.shape[2:])
    padded = variables.new_empty(shape)
    padded[:, g:-g] = variables
    lower, upper = padded[:, :g], padded[:, -g:]
    if sides[0] is Boundary.PERIODIC:
        lower.copy_(padded[:, n : n + g])
        upper.copy_(padded[:, g : 2 * g])
        return padded
    inner = padded[:, g:-g]
    for ghost, kind, edge, mirror in (
        (lower, sides[0], inner[:, :1], inner[:, :g]),
        (upper, sides[1], inner[:, -1:], inner[:, -g:]),
    ):
        if kind is Boundary.OPEN:
            ghost.copy_(edge.expand_as(ghost))
        else:
            ghost.copy_(mirror.flip(1))
            ghost[normal].neg_()
    return padded


def _sound(variables: Tensor, gamma: float) -> Tensor:
    return torch.div(variables[-1], variables[0]).mul_(gamma).sqrt_()


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Sum of the products along the first axis."""
    result = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        result.addcmul_(x, y)
    return result


__all__ = ["Gas", "Source", "hllc_flux", "limited_faces"]
