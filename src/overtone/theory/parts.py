"""The linear model of error growth for error estimates: parts of an error that a disagreement sees.

What two patches get wrong alike nobody sees by comparing them; what each gets wrong alone both see.
`error_ratio` says what that makes of a rollout, and `simulate_parts` samples it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import OvertoneError
from overtone.theory.recurrence import amplitudes, carry, require_room


@dataclass(frozen=True)
class Parts:
    """What the error of a step consists of, as root mean squares.

    A step at a patch adds `b + o`, the step that it is compared with `b + o'`: b is what both get
    wrong alike, o and o' are their own. The two see `o - o'` of each other, and nothing of b.

    Args:
        shared: of b.
        own, other: of o and o'.
        likeness: correlation of o and o', -1 to 1.
        shared_persistence, own_persistence: correlations of the parts of consecutive steps, 0 to 1.
        propagation: λ, as of `ErrorModel`.
    """

    shared: float
    own: float
    other: float
    likeness: float = 0.0
    shared_persistence: float = 1.0
    own_persistence: float = 0.0
    propagation: complex = 1.0

    def __post_init__(self) -> None:
        for name, least in (("likeness", -1), ("shared_persistence", 0), ("own_persistence", 0)):
            if not least <= getattr(self, name) <= 1:
                raise OvertoneError(f"{name} is {getattr(self, name)}; expected {least} to 1")
        if min(self.shared, self.own, self.other) < 0:
            raise OvertoneError(f"{self} has a negative part; expected 0 or more")

    @property
    def error(self) -> float:
        """Root mean square error of one step: √(shared² + own²)."""
        return math.hypot(self.shared, self.own)

    @property
    def disagreement(self) -> float:
        """Root mean square of `o - o'`."""
        cross = 2 * self.likeness * self.own * self.other
        return math.sqrt(max(self.own**2 + self.other**2 - cross, 0.0))

    @property
    def bounded(self) -> bool:
        """Whether the disagreement of a step is at least its error.

        That is so if shared² ≤ other² - 2 · likeness · own · other: what both get wrong alike must
        be less than what the other one alone does.
        """
        return self.disagreement >= self.error


def error_ratio(parts: Parts, steps: int) -> Tensor:
    """Error of a rollout over the root of the summed squares of its steps' disagreements.

    Args:
        parts: what a step's error consists of.
        steps: n.

    Returns:
        `√(E|e_n|² / (n d²))` for n = 1 … steps, `(steps,)` float64: what a calibration measures,
        step by step. With independent errors and λ = 1 it is constant; what is shared and repeats
        itself makes it grow with √n; infinite where nothing disagrees.
    """
    require_room(steps)
    lag = (torch.arange(steps)[:, None] - torch.arange(steps)).abs()
    covariance = sum(
        size**2 * torch.where(lag == 0, 1.0, torch.tensor(persistence).double() ** lag)
        for size, persistence in (
            (parts.shared, parts.shared_persistence),
            (parts.own, parts.own_persistence),
        )
    )
    assert isinstance(covariance, Tensor)
    energy = carry(covariance.to(torch.complex128), parts.propagation)
    seen = torch.arange(1, steps + 1, dtype=torch.float64) * parts.disagreement**2
    return (energy / seen).sqrt()


def simulate_parts(
    parts: Parts, steps: int, *, trials: int = 1000, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """|e_n|² and the summed squares of disagreements of random rollouts, `(trials, steps)` each."""
    random = torch.Generator().manual_seed(seed)
    shared = parts.shared * amplitudes(trials, steps, parts.shared_persistence, random)
    own = amplitudes(trials, steps, parts.own_persistence, random)
    apart = amplitudes(trials, steps, parts.own_persistence, random)
    other = parts.likeness * own + math.sqrt(1 - parts.likeness**2) * apart
    difference = (parts.own * own - parts.other * other).abs().square().cumsum(dim=1)
    error, energies = torch.zeros(trials, dtype=torch.complex128), []
    for n in range(steps):
        error = parts.propagation * error + shared[:, n] + parts.own * own[:, n]
        energies.append(error.abs().square())
    return torch.stack(energies, dim=1), difference
