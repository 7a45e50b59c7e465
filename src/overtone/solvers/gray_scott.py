"""Gray-Scott reaction and diffusion of two chemicals in two dimensions, periodic.

    ∂A/∂t = D_A ∇²A - A B² + f (1 - A),
    ∂B/∂t = D_B ∇²B + A B² - (f + k) B,      D_A = 2e-5, D_B = 1e-5, on the unit square.

A is fed at the rate f and eaten by B, which is removed at the rate f + k. The pair (f, k) chooses
the pattern: spots that divide, worms, mazes, spirals. The uniform state A = 1, B = 0 is stable.

Pseudo-spectral: reactions on the grid, diffusion and removal exact by exponential time
differencing, fourth order in time, float64. The 2/3 rule is not applied: diffusion keeps the
shortest waves small, and the product is of third order, which the rule would not cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace, fourier_space
from overtone.solvers.base import Field, System, cell_centres, uniform
from overtone.solvers.exponential import ExponentialRK4

NUM_BLOBS = 12


@dataclass(frozen=True)
class GrayScott(System):
    """The reaction and how it is solved.

    The state is `(num, 2, *modes)`, complex: the modes of A and B.

    Args:
        shape: number of cells along x and y.
        dt: time between two frames.
        feed: f.
        kill: k.
        step: longest solver step.
    """

    shape: tuple[int, int] = (60, 60)
    dt: float = 10.0
    feed: float = 0.029
    kill: float = 0.057
    step: float = 1.0

    name = "gray_scott"
    fields = (Field("A"), Field("B"))
    axes = ("x", "y")
    boundaries = "periodic"
    parameters = ("feed", "kill")
    extent = (1.0, 1.0)
    diffusion = (2e-5, 1e-5)

    def __post_init__(self) -> None:
        if min(self.shape) < 4 or min(self.feed, self.kill, self.dt, self.step) <= 0:
            raise OvertoneError(
                f"{self}: expected at least 4 cells along each axis and positive numbers"
            )

    def initial(self, num: int, *, seed: int) -> Tensor:
        """The uniform state with round blobs of B at random places."""
        random = torch.Generator().manual_seed(seed)
        x = cell_centres(self.shape[0], 2 * math.pi)[:, None]
        y = cell_centres(self.shape[1], 2 * math.pi)[None, :]
        b = torch.zeros(num, *self.shape, dtype=torch.float64)
        for _ in range(NUM_BLOBS):
            place = [uniform(random, num, 2, 0.0, 2 * math.pi) for _ in range(2)]
            width = 2 * math.pi * uniform(random, num, 2, 0.03, 0.06)
            # A Gaussian that closes smoothly round the torus.
            distance = 4 - 2 * torch.cos(x - place[0]) - 2 * torch.cos(y - place[1])
            b = torch.maximum(b, 0.5 * torch.exp(-distance / (2 * width**2)))
        return self.state(1 - b, b)

    def state(self, a: Tensor, b: Tensor) -> Tensor:
        """The state of A and B, `(num, *shape)`."""
        return self._space(a).modes(torch.stack([a, b], dim=1))

    def advance(self, state: Tensor) -> Tensor:
        """One frame further, in equal solver steps."""
        scheme = _scheme(self, state.device)
        for _ in range(self._steps):
            state = scheme.step(state, self._tendency)
        return state

    def frame(self, state: Tensor) -> Tensor:
        """A and B, `(num, 2, *shape)`."""
        return self._space(state).grid(state)

    @property
    def _steps(self) -> int:
        return math.ceil(self.dt / self.step)

    def _space(self, state: Tensor) -> FourierSpace:
        return fourier_space(self.shape, self.extent, state.device)

    def _tendency(self, state: Tensor) -> Tensor:
        """Reaction and feed; the removal of A and B is part of the linear rates."""
        space = self._space(state)
        a, b = space.grid(state).unbind(dim=1)
        eaten = a * b.square()
        return space.modes(torch.stack([self.feed - eaten, eaten], dim=1))


@lru_cache(maxsize=8)
def _scheme(system: GrayScott, device: torch.device) -> ExponentialRK4:
    k2 = fourier_space(system.shape, system.extent, device).k2
    a, b = system.diffusion
    rates = torch.stack([-a * k2 - system.feed, -b * k2 - system.feed - system.kill])
    return ExponentialRK4.of(rates, system.dt / system._steps)
