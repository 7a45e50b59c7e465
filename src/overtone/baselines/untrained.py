"""What needs no training and should be beaten: persistence, extrapolation, a coarser solver.

Persistence says that tomorrow is like today: the least that a model must beat. Extrapolation says
that what changed will go on changing: hard to beat for one step, useless for many.

The coarser solver is the rival that counts: an emulator is worth its training only where it is more
accurate than the solver at equal cost, or cheaper at equal error. This baseline puts a built-in
solver behind the interface of a model: take the last frame to a coarser grid, restart the solver
from it, advance one frame in longer steps, take the result back. Both ways are exact for the modes
that the coarser grid resolves, so in a rollout nothing is lost by going to and fro; what the coarse
grid's 2/3 rule does not keep is dropped once, at the start.

It needs to know the equations and their parameters, which a learned model does not; and one set of
parameters holds for all that it is asked. Only periodic systems whose frames determine their state
can be restarted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from overtone.baselines.base import Baseline, Sizes
from overtone.baselines.registry import create
from overtone.domain import Domain, PerAxis, Window
from overtone.errors import DomainError, OvertoneError
from overtone.grid import PatchGrid
from overtone.normalize import Statistics, statistics
from overtone.ops.spectral import resample
from overtone.schedules import Patch
from overtone.solvers import SYSTEMS
from overtone.solvers.spectral import SpectralSystem

RESTARTED = tuple(name for name, kind in SYSTEMS.items() if issubclass(kind, SpectralSystem))
"""The systems that can be restarted from a frame."""


class Persistence(Baseline):
    """The last frame again, exactly. No weights, nothing to train.

    Args:
        domain: what it is built for.
        context: number of frames that a window must have.
    """

    name = "persistence"
    sizes: ClassVar[Sizes] = {"paper": {}, "mini": {}}

    def __init__(self, *, domain: Domain, context: int):
        super().__init__(domain, context, {})

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """No change."""
        return torch.zeros_like(window.fields[:, -1:]), statistics(
            window.fields, causal=False
        ).last()


class Extrapolation(Baseline):
    """The last frame and once more the change that led to it. No weights, nothing to train.

    Args:
        domain: what it is built for.
        context: number of frames that a window must have, at least 2.
    """

    name = "extrapolation"
    sizes: ClassVar[Sizes] = {"paper": {}, "mini": {}}

    def __init__(self, *, domain: Domain, context: int):
        if context < 2:
            raise OvertoneError(f"context is {context}; extrapolation needs at least 2 frames")
        super().__init__(domain, context, {})

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """The last change again."""
        stats = statistics(window.fields, causal=False).last()
        before, last = window.fields[:, -2:-1], window.fields[:, -1:]
        return stats.change_between(before, last), stats


YARDSTICKS = {"persistence": 1, "extrapolation": 2}
"""What is measured beside every model, and how many frames each needs."""


class Yardstick:
    """Persistence or extrapolation on any domain: it has learned no dt, extent or boundary.

    Args:
        name: one of `YARDSTICKS`.
        domain: of the data; it is told, and no more.
    """

    patches: tuple[Patch, ...] = (1,)
    num_parameters = 0

    def __init__(self, name: str, domain: Domain):
        self.name, self.domain, self.context = name, domain, YARDSTICKS[name]

    def __call__(self, window: Window, patch: PerAxis = 1, shift: PerAxis = 0) -> Tensor:
        """The next frame, `(B, C, *space)`."""
        model = create(self.name, domain=window.domain, context=self.context)
        return model(window, check_finite=False)


def yardsticks(domain: Domain, frames: int) -> list[Yardstick]:
    """Those that a number of frames is enough for."""
    return [Yardstick(name, domain) for name, needed in YARDSTICKS.items() if needed <= frames]


class CoarseSolver(Baseline):
    """A built-in solver that restarts from the last frame. No weights, nothing to train.

    Args:
        domain: what the frames lie on; it must be that of the system.
        context: number of frames that a window must have; only the last is used.
        system: name of the system, e.g. `"shear_flow"`.
        coarsen: cells of the frames over cells of the solver along every axis, 1 or more.
        settings: of the system: physical parameters such as `reynolds`, and the solver's
            `courant` or `step`; larger ones are coarser steps.
    """

    name = "coarse_solver"
    sizes: ClassVar[Sizes] = {
        "paper": {"system": None, "coarsen": 1.0, "settings": {}},
        "mini": {"system": None, "coarsen": 2.0, "settings": {}},
    }
    assumes_periodic = True

    def __init__(
        self,
        *,
        domain: Domain,
        context: int,
        system: str | None,
        coarsen: float,
        settings: Mapping[str, Any],
    ):
        options = {"system": system, "coarsen": coarsen, "settings": dict(settings)}
        super().__init__(domain, context, options)
        if not (math.isfinite(coarsen) and coarsen >= 1):
            raise OvertoneError(f"coarsen is {coarsen}; expected 1 (the frames' grid) or more")
        if not domain.has_one_dt:
            raise DomainError(
                f"the domain's frames are {domain.dt_range[0]} to {domain.dt_range[1]} apart; a "
                "coarse solver has one dt"
            )
        self.coarsen = coarsen
        self._require_match(domain, self._system(domain.shape))
        self.solver(domain.shape)  # refuses a grid that is too coarse for it

    def solver(self, shape: tuple[int, ...]) -> SpectralSystem:
        """The system on the coarser grid that belongs to a grid of frames."""
        return self._system(tuple(max(1, round(n / self.coarsen)) for n in shape))

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """The change that the solver computes."""
        stats = statistics(window.fields, causal=False).last()
        following = self.next_frame(window, grid)
        return stats.change_between(window.fields[:, -1:], following[:, None]), stats

    def next_frame(self, window: Window, grid: PatchGrid) -> Tensor:
        """See `Model.next_frame`; the solver knows how a field leaves zero, which has no unit."""
        self._require_match(window.domain, self._system(window.domain.shape))
        last = window.fields[:, -1]
        frame = torch.full_like(last, torch.nan)
        sound = last.isfinite().flatten(1).all(dim=1)  # nothing leads on from NaN
        if bool(sound.any()):
            with torch.no_grad():
                frame[sound] = self.advance(last[sound].double()).to(last.dtype)
        return frame

    def advance(self, frame: Tensor) -> Tensor:
        """The frame that follows, both `(B, C, *space)` in float64."""
        shape = tuple(frame.shape[2:])
        system = self.solver(shape)
        state = system.from_frame(resample(frame, system.shape))
        if system.shape != shape:
            # Modes beyond the 2/3 rule would not be advected, only stand still.
            state = state * system.space(state).mask
        return resample(system.frame(system.advance(state)), shape)

    def _system(self, shape: tuple[int, ...]) -> SpectralSystem:
        name, settings = self.options["system"], self.options["settings"]
        kind = SYSTEMS.get(name)
        if kind is None or not issubclass(kind, SpectralSystem):
            raise OvertoneError(
                f"system is {name!r}; the systems that can be restarted from a frame are "
                f"{', '.join(RESTARTED)}"
            )
        known = [field.name for field in dataclass_fields(kind)]  # pyright: ignore[reportArgumentType]
        known = [setting for setting in known if setting not in ("shape", "dt")]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise OvertoneError(
                f"{name} has no setting {', '.join(unknown)}; it has {', '.join(known)}"
            )
        make: Any = kind
        return make(shape=shape, dt=self.domain.dt, **settings)

    def _require_match(self, domain: Domain, system: SpectralSystem) -> None:
        own = system.domain
        near = [
            math.isclose(a, b, rel_tol=1e-6)
            for a, b in zip(domain.extent, own.extent, strict=False)
        ]
        alike = {
            "fields": domain.fields == own.fields,
            "boundaries": domain.boundaries == own.boundaries,
            "extent": domain.ndim == own.ndim and all(near),
        }
        for what in (name for name, same in alike.items() if not same):
            raise DomainError(
                f"{what} of the domain: {getattr(domain, what)}, of {system.name}: "
                f"{getattr(own, what)}; a coarse solver needs the very system that made the frames"
            )
