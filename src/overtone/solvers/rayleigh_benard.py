"""Rayleigh-Bénard convection: a fluid between a warm floor and a cold ceiling.

Boussinesq equations for buoyancy b, pressure p and velocity u = (u, v) on the coordinates (x, y),
in units of the height and of the free-fall time, with e the unit vector upwards:

    ∂b/∂t + u·∇b = κ ∇²b,     ∂u/∂t + u·∇u + ∇p = ν ∇²u + b e,     ∇·u = 0,
    κ = (Ra Pr)^(-1/2),   ν = (Ra / Pr)^(-1/2),

periodic in x, with walls at y = 0 and 1: u = 0 at both, b = 1 at the floor and b = 0 at the
ceiling. The mean of p over the box is zero and no mean pressure gradient drives the flow.

Fourier modes in x, polynomials in y (see `channel.py`): velocity and buoyancy are sums of the
eigenmodes of diffusion, so incompressibility and boundary values hold by construction, diffusion
is exact, and the rest is advanced by a fourth-order exponential Runge-Kutta scheme, in float64.
Frames are sampled from the polynomials at the centres of uniform cells, walls not included; The
Well's frames lie on Chebyshev nodes. The initial state follows The Well: the conductive profile
1 - y at rest, with white noise that is damped towards the walls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.fft import irfft, rfft  # pyright: ignore[reportUnknownVariableType]

from overtone.errors import OvertoneError
from overtone.solvers.base import Field, System, cell_centres, num_substeps
from overtone.solvers.channel import Channel, channel, interpolation_matrix
from overtone.solvers.steppers import ExponentialRK4, Tendency

NOISE = 1e-3
"""Standard deviation of the noise, which is then multiplied by y (1 - y)."""
LONGEST_STEP = 0.125
"""Buoyancy acts within the free-fall time, which is 1, also where nothing moves yet."""
LONGEST_LEG = 0.25
"""The flow's speed is looked at again after this time, as plumes grow fast."""
LARGEST_OVERSHOOT = 0.25
"""Exact buoyancy stays between 0 and 1; how far it may leave them before we stop."""


@dataclass(frozen=True)
class RayleighBenard(System):
    """Convection and how it is solved.

    The state is `(num, 2, K, m)`, complex: for each of K wavenumbers along x the coefficients of m
    modes in y, first of the velocity, then of the buoyancy without its conductive profile.

    Args:
        shape: number of cells along x and y; the polynomials in y have the degree `shape[1]`.
        dt: time between two frames.
        rayleigh: Ra, 1e5 to 1e10 as far as the grid resolves it.
        prandtl: Pr, 0.1 to 10.
        courant: largest number of cells that the flow crosses in a solver step; above 1.5 it
            may become unstable.
    """

    shape: tuple[int, int] = (128, 32)
    dt: float = 0.25
    rayleigh: float = 1e6
    prandtl: float = 1.0
    courant: float = 0.8

    name = "rayleigh_benard"
    fields = (Field("buoyancy"), Field("pressure"), Field("velocity", 1))
    axes = ("x", "y")
    boundaries = ("periodic", "wall")
    parameters = ("rayleigh", "prandtl")
    extent = (4.0, 1.0)

    def __post_init__(self) -> None:
        numbers = (self.dt, self.rayleigh, self.prandtl, self.courant)
        if len(self.shape) != 2 or self.shape[0] < 4 or self.shape[1] < 8:
            raise OvertoneError(f"shape is {self.shape}; expected at least 4 x 8 cells")
        if not all(math.isfinite(number) and number > 0 for number in numbers):
            raise OvertoneError(
                f"{self}: expected positive numbers for dt, rayleigh, prandtl and courant"
            )

    @property
    def diffusivity(self) -> float:
        """κ."""
        return (self.rayleigh * self.prandtl) ** -0.5

    @property
    def viscosity(self) -> float:
        """ν."""
        return (self.rayleigh / self.prandtl) ** -0.5

    def initial(self, num: int, *, seed: int) -> Tensor:
        """The conductive profile at rest; seeds differ in the noise."""
        random = torch.Generator().manual_seed(seed)
        box = self._channel(torch.device("cpu"))
        y = box.height
        noise = torch.randn(num, self._fine, len(y), generator=random, dtype=torch.float64)
        waves = cast("Tensor", rfft(NOISE * y * (1 - y) * noise, dim=1, norm="forward"))
        buoyancy = waves[:, : len(box.k)] * box.weight @ box.scalar.to(waves.dtype)
        return torch.stack([torch.zeros_like(buoyancy), buoyancy], dim=1)

    def advance(self, state: Tensor) -> Tensor:
        """One frame further, in as many equal solver steps as the flow's speed asks for."""
        box = self._channel(state.device)
        # The batch goes last: one matrix product for each wavenumber serves all trajectories.
        coefficients = state.permute(1, 2, 3, 0).contiguous()
        rates = torch.stack(
            [self.viscosity * box.velocity_rates, self.diffusivity * box.scalar_rates]
        )
        tendency, legs = self._tendency(box), math.ceil(self.dt / LONGEST_LEG)
        for _ in range(legs):
            steps = self._num_steps(box, coefficients, self.dt / legs)
            scheme = ExponentialRK4.of(-rates[..., None], self.dt / legs / steps)
            for _ in range(steps):
                coefficients = scheme.step(coefficients, tendency)
        return coefficients.permute(3, 0, 1, 2).contiguous()

    def frame(self, state: Tensor) -> Tensor:
        """Buoyancy, pressure, u and v at the cell centres, `(num, 4, *shape)`."""
        return self.sample(state, cell_centres(self.shape[1], 1.0))

    def sample(self, state: Tensor, heights: Tensor) -> Tensor:
        """Buoyancy, pressure, u and v at any heights `(n,)` in 0 … 1, `(num, 4, shape[0], n)`."""
        box = self._channel(state.device)
        coefficients = state.permute(1, 2, 3, 0)
        nodal = torch.stack(
            [
                _apply(box.theta, coefficients[1]),
                self._pressure(box, coefficients),
                _apply(box.u, coefficients[0]),
                -1j * _apply(box.v, coefficients[0]),
            ]
        )
        matrix = interpolation_matrix(box.degree, heights.cpu()).to(state.device)
        values = cast(
            "Tensor", irfft(_apply(matrix, nodal), n=self.shape[0], dim=1, norm="forward")
        )
        values[0] += (1 - heights.to(state.device))[:, None]
        return values.permute(3, 0, 1, 2)

    @property
    def _fine(self) -> int:
        """Points along x on which products are taken."""
        return math.ceil(3 * self.shape[0] / 2)

    def _channel(self, device: torch.device) -> Channel:
        return channel(self.shape[0], self.extent[0], self.shape[1], device)

    def _num_steps(self, box: Channel, coefficients: Tensor, time: float) -> int:
        """Equal solver steps that the flow's speed asks for within `time`."""
        u, v, _, b = self._on_gauss_points(box, coefficients)
        self._require_resolved(b)
        spacing = math.pi / box.degree * (box.height * (1 - box.height)).sqrt()
        rate = u.abs() / self.domain.spacing[0] + v.abs() / spacing[:, None]
        steps = num_substeps(time, rate.amax().item(), 1.0, self.courant)
        return max(steps, math.ceil(time / LONGEST_STEP))

    def _require_resolved(self, buoyancy: Tensor) -> None:
        """Stop on a grid that is far too coarse: the scheme itself would stay finite on it."""
        low, high = (bound.item() for bound in buoyancy.aminmax())
        if max(-low, high - 1) > LARGEST_OVERSHOOT:
            raise OvertoneError(
                f"buoyancy reaches from {low:.2f} to {high:.2f}, and exact buoyancy stays between "
                f"0 and 1: {self.shape[0]} x {self.shape[1]} cells do not resolve rayleigh = "
                f"{self.rayleigh:g}, prandtl = {self.prandtl:g}; use a finer grid or a smaller "
                "rayleigh number"
            )

    def _tendency(self, box: Channel) -> Tendency:
        """Advection and buoyancy, from coefficients `(2, K, m, num)` to the same shape.

        In rotational form: u·∇u is (-vω, uω) and a gradient, which the projection removes.
        """
        phase = torch.tensor([1, 1j, 1j, 1], dtype=torch.complex128, device=box.k.device)
        phase = phase[:, None, None]

        def tendency(coefficients: Tensor) -> Tensor:
            u, v, omega, b = self._on_gauss_points(box, coefficients)
            products = torch.stack([v * omega, b - u * omega, u * b, v * b], dim=1)
            waves = self._waves(box, products) * phase
            force, flux = torch.split(waves.flatten(1, 2), 2 * len(box.height), dim=1)
            return torch.stack([_apply(box.force, force), _apply(box.flux, flux)])

        return tendency

    def _on_gauss_points(self, box: Channel, coefficients: Tensor) -> list[Tensor]:
        """Velocities u and v, vorticity and buoyancy, each `(fine x, M, num)`."""
        num_waves, points = len(box.k), len(box.height)
        flow = _apply(box.u_v_omega, coefficients[0]).reshape(num_waves, 3, points, -1)
        buoyancy = _apply(box.scalar, coefficients[1])
        waves = torch.stack([flow[:, 0], -1j * flow[:, 1], flow[:, 2], buoyancy], dim=1)
        u, v, omega, b = self._values(waves).unbind(dim=1)
        return [u, v, omega, b + (1 - box.height)[:, None]]

    def _pressure(self, box: Channel, coefficients: Tensor) -> Tensor:
        """Pressure at the nodes, `(K, n + 1, num)`.

        The momentum equation tested with all gradients: (∇q, ∇p) = (∇q, b e - u·∇u + ν ∇²u). The
        velocity and its change drop out, having no divergence and not crossing the walls; of the
        viscous force its part normal to the walls remains.
        """
        u, v = _apply(box.u, coefficients[0]), -1j * _apply(box.v, coefficients[0])
        b = _apply(box.theta, coefficients[1])
        ik, derivative = 1j * box.k[:, None, None], box.derivative
        nodal = [u, v, b, ik * u, _apply(derivative, u), ik * v, _apply(derivative, v)]
        waves = torch.stack([_apply(box.to_gauss, field) for field in nodal], dim=1)
        u_, v_, b_, u_x, u_y, v_x, v_y = self._values(waves).unbind(dim=1)
        conductive = (1 - box.height)[:, None]
        force = torch.stack([-u_ * u_x - v_ * u_y, b_ + conductive - u_ * v_x - v_ * v_y], dim=1)
        along, across = (self._waves(box, force) * box.weight[:, None]).unbind(dim=1)
        source = -ik * _apply(box.to_gauss.mT, along)
        source = source + _apply((box.to_gauss @ derivative).mT, across)
        curvature = _apply(derivative, _apply(derivative, v))
        source[:, 0] -= self.viscosity * curvature[:, 0]
        source[:, -1] += self.viscosity * curvature[:, -1]
        return _apply(box.pressure, source)

    def _values(self, waves: Tensor) -> Tensor:
        """From wavenumbers `(K, …)` to the fine grid `(fine x, …)`."""
        return cast("Tensor", irfft(waves, n=self._fine, dim=0, norm="forward"))

    def _waves(self, box: Channel, values: Tensor) -> Tensor:
        """From the fine grid `(fine x, …)` to the wavenumbers that are kept `(K, …)`."""
        waves = cast("Tensor", rfft(values, dim=0, norm="forward"))
        return waves[: len(box.k)]


def _apply(matrix: Tensor, columns: Tensor) -> Tensor:
    """A real matrix `(…, p, m)` times complex columns `(…, m, num)`."""
    pairs = torch.view_as_real(columns.contiguous()).flatten(-2)
    product = matrix @ pairs
    return torch.view_as_complex(cast("Tensor", product.unflatten(-1, (-1, 2))))
