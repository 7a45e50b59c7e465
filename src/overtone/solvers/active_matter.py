"""Active matter: rods that stir the Stokes flow they swim in, periodic in both axes.

Rods at angle θ with density ψ(x, θ) are carried and turned by the flow, align with each other and
diffuse (Maddu, Weady and Shelley 2024, the model of The Well's active_matter):

    ∂ψ/∂t + u·∇ψ + ∂(θ̇ ψ)/∂θ = d_T ∇²ψ + d_R ∂²ψ/∂θ²,    ṗ = (I - pp)·(∇u + 2ζ D)·p,
    -∇²u + ∇P = ∇·Σ,  ∇·u = 0,     Σ = α D + β S:E - 2ζβ (D·D - S:D),

with c = ∫ψ, D = ∫pp ψ, S = ∫pppp ψ and the strain rate E. α < 0 pushes fluid out along the rods, β
is the rods' resistance to being stretched, ζ the strength of alignment.

Solved are the moments, with S from D by the Bingham closure. In two dimensions they are

    c = ∫ψ dθ,    q = ∫e^{2iθ} ψ dθ = D_xx - D_yy + 2i D_xy,    r = ∫e^{4iθ} ψ dθ.

The closure takes, of all densities with the given c and q, the one with the largest entropy:
ψ ∝ exp(κ cos(2θ - arg q)). Then |q|/c = I₁(κ)/I₀(κ) and |r|/c = I₂(κ)/I₀(κ), and so

    r = h(|q|²/c²) q²/c,     h(0) = 1/2 (isotropic),  h(1) = 1 (all rods parallel),

with one smooth function h, which is tabulated once. This is the exact fourth moment of rods that
align with their mean direction and diffuse in angle, and it keeps every |r| ≤ c. With
e = E_xx + i E_xy, the vorticity ω and G = e + ζ q, the equations above become, without further
approximation,

    ∂c/∂t + u·∇c = d_T ∇²c,
    ∂q/∂t + u·∇q = iω q + c G - r G* + d_T ∇²q - 4 d_R q,
    Σ_xx + iΣ_xy = (α/2) q + (β/4) (c e + r e*) - (ζβ/4) (c q - r q*)   (traceless part).

The flow depends on itself through β: each evaluation solves for it by a fixed-point iteration
round the viscosity of the mean concentration, which gains at least a factor (8 + β)/β each time.

Pseudo-spectral: products on the grid with the 2/3 rule, diffusion exact by exponential time
differencing, fourth order in time, float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor
from torch.special import i0e, i1e  # pyright: ignore[reportUnknownVariableType]

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace, fourier_space
from overtone.solvers.base import Field, cell_centres, num_substeps, uniform
from overtone.solvers.spectral import SpectralSystem, scheme

NUM_WAVES = 8
TOLERANCE = 1e-8
"""Largest change in the last iteration for the Stokes flow, relative to the stress on it."""
MAX_ITERATIONS = 100
NUM_INTERVALS = 1 << 15
"""Intervals of the closure's table; straight lines between its points are then exact to 1e-9."""


@dataclass(frozen=True)
class ActiveMatter(SpectralSystem):
    """A suspension of active rods and how it is solved.

    The state is `(num, 3, *modes)`, complex: the modes of c and of q's real and imaginary part.

    Args:
        shape: number of cells along x and y.
        dt: time between two frames.
        alpha: α, strength of the active stress; negative for rods that push.
        beta: β, resistance of the rods to stretching.
        zeta: ζ, strength of alignment.
        translational_diffusion: d_T.
        rotational_diffusion: d_R.
        courant: largest number of cells that the flow crosses in a solver step, and the longest
            step in units of the alignment time 1/(2ζc).
    """

    shape: tuple[int, int] = (64, 64)
    dt: float = 0.25
    alpha: float = -1.0
    beta: float = 0.8
    zeta: float = 1.0
    translational_diffusion: float = 0.05
    rotational_diffusion: float = 0.05
    courant: float = 0.5

    name = "active_matter"
    fields = (Field("concentration"), Field("velocity", 1), Field("D", 2), Field("E", 2))
    axes = ("x", "y")
    boundaries = "periodic"
    parameters = ("alpha", "beta", "zeta")
    extent = (10.0, 10.0)

    def __post_init__(self) -> None:
        positive = (self.dt, self.translational_diffusion, self.rotational_diffusion, self.courant)
        if min(positive) <= 0 or min(self.beta, self.zeta) < 0:
            raise OvertoneError(
                f"{self}: expected positive numbers; beta and zeta may be zero, alpha may have "
                "either sign"
            )
        if min(self.shape) <= 3 * NUM_WAVES:
            raise OvertoneError(
                f"{self.shape} cells don't resolve the initial waves; use at least "
                f"{3 * NUM_WAVES + 1} along each axis"
            )

    def initial(self, num: int, *, seed: int) -> Tensor:
        """Eight plane waves round the isotropic state, half of them of c and half of q.

        These are the moments of The Well's initial density, whose wave number i = 1..8 has the
        angular profile cos(2θ + phase)^i: even powers change c, odd ones q.
        """
        random = torch.Generator().manual_seed(seed)
        x, y = (cell_centres(n, 2 * math.pi) for n in self.shape)
        c = torch.ones(num, *self.shape, dtype=torch.float64)
        q = torch.zeros(num, *self.shape, dtype=torch.complex128)
        for power in range(1, NUM_WAVES + 1):
            modes = torch.randint(1, NUM_WAVES + 1, (2, num, 1, 1), generator=random)
            phases = [uniform(random, num, 2, 0.0, 1.0) for _ in range(3)]
            wave = torch.cos(modes[0] * x[:, None] + phases[0])
            wave = wave * torch.cos(modes[1] * y[None, :] + phases[1])
            wave = wave * uniform(random, num, 2, -0.05, 0.05)
            weight = math.comb(power, (power + 1) // 2) / 2**power
            if power % 2:
                q = q + weight * wave * torch.exp(-1j * phases[2])
            else:
                c = c + weight * wave
        return self.state(c / c.mean(dim=(-2, -1), keepdim=True), q)

    def state(self, c: Tensor, q: Tensor) -> Tensor:
        """The state of concentration c (real) and second moment q (complex), `(num, *shape)`."""
        space = self.space(c)
        return space.mask * space.modes(torch.stack([c, q.real, q.imag], dim=1))

    def from_frame(self, frame: Tensor) -> Tensor:
        """The state of a frame's concentration and D; velocity and E follow from them."""
        c, d_xx, d_xy, d_yy = (frame[:, channel] for channel in (0, 3, 4, 6))
        return self.state(c, torch.complex(d_xx - d_yy, 2 * d_xy))

    def num_steps(self, state: Tensor) -> int:
        """As many steps as flow and alignment ask for."""
        space = self.space(state)
        flow = _Stokes(self, space)
        c, q = self._moments(state)
        speed = space.grid(flow.velocity(flow.solve(c, q))).abs().amax().item()
        rate = 2 * self.zeta * c.amax().item()
        return max(
            num_substeps(self.dt, speed, min(self.domain.spacing), self.courant),
            num_substeps(self.dt, rate, 1.0, self.courant),
        )

    def linear(self, space: FourierSpace) -> Tensor:
        """Diffusion in space, and of the rods' angles."""
        diffusion = -self.translational_diffusion * space.k2
        turning = diffusion - 4 * self.rotational_diffusion
        return torch.stack([diffusion, turning, turning])

    def nonlinear(self, state: Tensor) -> Tensor:
        """Transport, turning and alignment."""
        return self._tendency(state, _Stokes(self, self.space(state)))

    def advance(self, state: Tensor) -> Tensor:
        """One frame further; each stage's Stokes flow is sought from where the last one ended."""
        steps, flow = self.num_steps(state), _Stokes(self, self.space(state))
        step = scheme(self, steps, state.device).step
        for _ in range(steps):
            state = step(state, lambda y: self._tendency(y, flow))
        return state

    def frame(self, state: Tensor) -> Tensor:
        """Concentration, velocity, D and E row by row, `(num, 11, *shape)`."""
        space = self.space(state)
        flow = _Stokes(self, space)
        c, q = self._moments(state)
        strain = flow.solve(c, q)
        velocity, e = space.grid(flow.velocity(strain)), flow.strain_rate(strain)
        d_xx, d_xy, d_yy = (c + q.real) / 2, q.imag / 2, (c - q.real) / 2
        tensors = [d_xx, d_xy, d_xy, d_yy, e.real, e.imag, e.imag, -e.real]
        return torch.stack([c, *velocity.unbind(dim=1), *tensors], dim=1)

    def _moments(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Concentration (real) and q (complex) on the grid."""
        c, real, imaginary = self.space(state).grid(state).unbind(dim=1)
        return c, torch.complex(real, imaginary)

    def _tendency(self, state: Tensor, flow: _Stokes) -> Tensor:
        """Transport, turning and alignment; diffusion is part of the linear rates."""
        space = flow.space
        c, q = self._moments(state)
        strain = flow.solve(c, q)
        u, v = torch.split(space.grid(flow.velocity(strain)), 1, dim=1)
        carried = u * space.grid(space.gradient[0] * state)
        carried = carried + v * space.grid(space.gradient[1] * state)
        turned = self.turning(c, q, flow.strain_rate(strain), space.grid(flow.vorticity(strain)))
        turned = torch.stack([torch.zeros_like(c), turned.real, turned.imag], dim=1)
        tendency = space.mask * space.modes(turned - carried)
        tendency[:, 0, 0, 0] = 0  # no rod is lost, to the last digit
        return tendency

    def turning(self, c: Tensor, q: Tensor, e: Tensor, vorticity: Tensor) -> Tensor:
        """Change of q by the flow's rotation and strain and by alignment, `iω q + c G - r G*`."""
        g = e + self.zeta * q
        return 1j * vorticity * q + c * g - fourth_moment(c, q) * g.conj()


def fourth_moment(c: Tensor, q: Tensor) -> Tensor:
    """The fourth moment r.

    Args:
        c: concentration, real and positive, any shape.
        q: second moment, complex, of the same shape; `|q| > c` (which no density has, but a coarse
            grid may) counts as parallel rods.
    """
    squared = q.square()
    order = (q.abs() / c).square()
    return shape_function(order) * squared / c


def shape_function(order: Tensor) -> Tensor:
    """The function h of the squared order parameter `|q|²/c²`, which is clamped to [0, 1]."""
    values, slopes = _table(order.device)
    scaled = order.clamp(0, 1) * NUM_INTERVALS
    index = scaled.to(torch.int64).clamp(max=NUM_INTERVALS - 1)
    return values[index] + (scaled - index) * slopes[index]


class _Stokes:
    """Solves for the flow and remembers it as the first guess of the next solution.

    Of a 2D incompressible flow's strain rate each mode has one free component, along the complex
    direction n = sin 2φ - i cos 2φ of a wavevector at angle φ: `e = n s`. That scalar s is what
    the methods call strain, `(num, *modes)`.
    """

    def __init__(self, system: ActiveMatter, space: FourierSpace):
        self.space = space
        self._system = system
        self._direction = _direction(system.shape, system.extent, space.mask.device)
        self._last: Tensor | None = None

    def solve(self, c: Tensor, q: Tensor) -> Tensor:
        """Strain of the flow that moments c and q on the grid `(num, *shape)` drive."""
        s, r = self._system, fourth_moment(c, q)
        mean = c.mean()
        driving = (s.alpha / 2) * q - (s.zeta * s.beta / 4) * (c * q - r * q.conj())
        if s.beta == 0:
            return -0.5 * self._along(driving)
        smallest = TOLERANCE * driving.abs().amax() * math.prod(s.shape)
        strain = self._last
        for _ in range(MAX_ITERATIONS):
            before, stress = strain, driving
            if strain is not None:
                e = self.strain_rate(strain)
                stress = driving + (s.beta / 4) * ((c - mean) * e + r * e.conj())
            strain = -0.5 / (1 + s.beta * mean / 8) * self._along(stress)
            # Written so that a NaN ends the iteration too.
            if before is not None and not bool((strain - before).abs().amax() > smallest):
                break
        else:
            raise OvertoneError(
                f"the Stokes flow did not settle in {MAX_ITERATIONS} iterations at beta "
                f"{s.beta:g}; use a smaller beta"
            )
        self._last = strain
        return strain

    def strain_rate(self, strain: Tensor) -> Tensor:
        """`E_xx + i E_xy` on the grid."""
        e = self.space.grid(self._direction * strain[:, None])
        return torch.complex(e[:, 0], e[:, 1])

    def vorticity(self, strain: Tensor) -> Tensor:
        """Modes of the vorticity."""
        return -2 * strain

    def velocity(self, strain: Tensor) -> Tensor:
        """Modes of u and v, `(num, 2, *modes)`; the mean flow is zero."""
        psi = 2 * strain * self.space.inverse_laplacian
        return torch.stack([self.space.gradient[1] * psi, -self.space.gradient[0] * psi], dim=1)

    def _along(self, stress: Tensor) -> Tensor:
        """The component of a traceless stress that moves the fluid."""
        modes = self.space.modes(torch.stack([stress.real, stress.imag], dim=1))
        return (self._direction * modes).sum(dim=1)


@lru_cache(maxsize=8)
def _direction(shape: tuple[int, ...], extent: tuple[float, ...], device: torch.device) -> Tensor:
    """The direction n of each mode, dealiased, `(2, *modes)`; zero for the mean."""
    space = fourier_space(shape, extent, device)
    kx, ky = space.k
    scale = -space.inverse_laplacian * space.mask
    return torch.stack([2 * kx * ky * scale, (ky**2 - kx**2) * scale])


@lru_cache(maxsize=8)
def _table(device: torch.device) -> tuple[Tensor, Tensor]:
    """At each interval's start: h, and how much it grows over the interval."""
    order = torch.arange(1, NUM_INTERVALS, dtype=torch.float64) / NUM_INTERVALS
    target = order.sqrt()
    low, high = torch.full_like(order, -10.0), torch.full_like(order, 12.0)
    for _ in range(60):  # bisection for log κ; the ratio of Bessel functions is monotonic
        middle = (low + high) / 2
        kappa = middle.exp()
        above = cast("Tensor", i1e(kappa) / i0e(kappa) > target)
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    inside = (1 - 2 * target / low.exp()) / order  # I₂ = I₀ - 2 I₁ / κ
    ends = torch.tensor([0.5, 1.0], dtype=torch.float64)
    h = torch.cat([ends[:1], inside, ends[1:]])
    return h[:-1].to(device), h.diff().to(device)
