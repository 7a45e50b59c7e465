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

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.ops.spectral import FourierSpace
from overtone.solvers.base import Field, cell_centres, uniform
from overtone.solvers.spectral import SpectralSystem

NUM_BLOBS = 12


@dataclass(frozen=True)
class GrayScott(SpectralSystem):
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
        return self.space(a).modes(torch.stack([a, b], dim=1))

    def from_frame(self, frame: Tensor) -> Tensor:
        """The state of a frame."""
        return self.state(frame[:, 0], frame[:, 1])

    def frame(self, state: Tensor) -> Tensor:
        """A and B, `(num, 2, *shape)`."""
        return self.space(state).grid(state)

    def num_steps(self, state: Tensor) -> int:
        """As many steps as keep each below the largest."""
        return math.ceil(self.dt / self.step)

    def linear(self, space: FourierSpace) -> Tensor:
        """Diffusion and removal of A and B."""
        a, b = self.diffusion
        return torch.stack([-a * space.k2 - self.feed, -b * space.k2 - self.feed - self.kill])

    def nonlinear(self, state: Tensor) -> Tensor:
        """Reaction and feed; the removal of A and B is part of the linear rates."""
        space = self.space(state)
        a, b = space.grid(state).unbind(dim=1)
        eaten = a * b.square()
        return space.modes(torch.stack([self.feed - eaten, eaten], dim=1))
