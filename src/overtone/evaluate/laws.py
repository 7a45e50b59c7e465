"""Which laws the fields of a dataset let us check, measured along a rollout.

A law turns the last three frames into one number for each sample, of the prediction and of the
truth. What counts is how far the former is from the latter, relative to it:

    deviation = |measure(prediction) - measure(truth)| / |measure(truth)|.

Divergence and momentum residual of a good solution are next to nothing, and a deviation relative to
them says more of the solver than of the model. So each has a *balance* beside it, the same gap
relative to what has to cancel: the mean over space of the truth's `Σ|∂u_i/∂x_i|` (mass balance) and
`|∂u/∂t| + |ν∇²u| + |u·∇u| + |∇p - f|` (momentum balance).

| law            | needs                                    | measure                          |
|----------------|------------------------------------------|----------------------------------|
| kinetic energy | velocity (and density, if there is one)  | ∫ ½ ρ |u|²                       |
| enstrophy      | velocity, two or three axes              | ∫ ½ |∇×u|²                       |
| mass           | density                                  | ∫ ρ                              |
| total energy   | a known gas: density, pressure, velocity | ∫ ½ ρ |u|² + p / (γ - 1)         |
| divergence     | a known incompressible flow              | mean of |∇·u|                    |
| momentum       | such a flow, its pressure and parameters | mean of the residual's length    |

The momentum residual is ∂u/∂t - ν∇²u + u·∇u + ∇p - f, f being buoyancy, drag and the like. That of
step n is centred on the frame before it; at the first steps its frames are partly those of the
context. Names of datasets are The Well's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from overtone.domain import Domain
from overtone.metrics import physics

Parameters = Mapping[str, float | str]
Measure = Callable[[Tensor], Tensor]
"""Frames `(B, 3, C, *space)` to one number for each sample, `(B,)`."""

INCOMPRESSIBLE = ("shear_flow", "rayleigh_benard", "kolmogorov_flow", "active_matter")
GASES = ("turbulent_radiative_layer_2d", "supernova_explosion", "turbulence_gravity_cooling")
BALANCES = {"divergence": "mass balance", "momentum": "momentum balance"}
"""Law -> name of its deviation relative to its terms."""
UNEVEN = 1e-3
"""Relative differences between cells from which on they are not taken for equal."""


@dataclass(frozen=True)
class Setting:
    """What the frames of some samples are.

    Attributes:
        dataset: its name.
        domain: what they live on.
        axes: names of the spatial axes.
        parameters: of each sample.
        coordinates: positions of the cells along each axis.
    """

    dataset: str
    domain: Domain
    axes: tuple[str, ...]
    parameters: tuple[Parameters, ...]
    coordinates: tuple[np.ndarray, ...]

    def keep(self, rows: Sequence[int]) -> Setting:
        """The setting of some of the samples."""
        chosen = tuple(self.parameters[row] for row in rows)
        return Setting(self.dataset, self.domain, self.axes, chosen, self.coordinates)


def laws(setting: Setting) -> dict[str, Measure]:
    """The laws that can be checked, by name."""
    return _Fields(setting).measures()


def deviation(prediction: Tensor, truth: Tensor, size: Tensor | None = None) -> Tensor:
    """|prediction - truth| / |size|; 0 where they are equal, infinite where only size is 0.

    Args:
        prediction, truth: a law's measure of both, `(B,)`.
        size: what their gap is relative to, `(B,)`; the truth's measure if it is not given.
    """
    gap = (prediction - truth).abs()
    return torch.where(gap == 0, 0.0, gap / (truth if size is None else size).abs())


def deviations(setting: Setting, prediction: Tensor, truth: Tensor) -> dict[str, Tensor]:
    """All deviations that can be told, by name.

    Args:
        setting: of the samples.
        prediction, truth: the latest three frames, `(B, 3, C, *space)`.

    Returns:
        `(B,)` each.
    """
    fields, found = _Fields(setting), {}
    terms = fields.terms()
    for name, measure in fields.measures().items():
        own, true = measure(prediction), measure(truth)
        found[name] = deviation(own, true)
        if name in BALANCES:
            found[BALANCES[name]] = deviation(own, true, terms[name](truth))
    return found


class _Fields:
    """Picks the physical fields out of the channels."""

    def __init__(self, setting: Setting):
        self.setting, self.domain = setting, setting.domain
        names = list(self.domain.fields)
        wanted = [f"velocity_{axis}" for axis in setting.axes]
        has_velocity = all(name in names for name in wanted)
        self.velocity = [names.index(name) for name in wanted] if has_velocity else None
        self.index = {name: names.index(name) for name in names}
        self.uneven = _uneven(setting)
        self.weights = self._weights()

    def measures(self) -> dict[str, Measure]:
        dataset = self.setting.dataset.lower()
        found: dict[str, Measure] = {}
        if self.velocity:
            found["kinetic energy"] = self.kinetic_energy
        if self.velocity and self._smooth():
            if self.domain.ndim > 1:
                found["enstrophy"] = self.enstrophy
            if any(dataset.startswith(name) for name in INCOMPRESSIBLE):
                found["divergence"] = partial(self.divergence, physics.mass_residual)
            if flow := self._flow():
                found["momentum"] = partial(self.momentum, flow, physics.momentum_residual)
        if "density" in self.index:
            found["mass"] = self.mass
            gas = any(dataset.startswith(name) for name in GASES)
            if gas and self.velocity and "pressure" in self.index:
                found["total energy"] = self.total_energy
        return found

    def terms(self) -> dict[str, Measure]:
        """Mean size of what cancels in a law, for those that are about a residual."""
        found: dict[str, Measure] = {"divergence": partial(self.divergence, physics.mass_terms)}
        if flow := self._flow():
            found["momentum"] = partial(self.momentum, flow, physics.momentum_terms)
        return found

    def _flow(self) -> Flow | None:
        """The momentum equation, if all of it is known."""
        flow = FLOWS.get(self.setting.dataset.lower())
        known = flow and "pressure" in self.index and flow.fits(self) and self.domain.has_one_dt
        return flow if known else None

    def kinetic_energy(self, frames: Tensor) -> Tensor:
        return physics.kinetic_energy(
            self._vector(frames)[:, -1], self.domain, density=self._density(frames)
        )

    def enstrophy(self, frames: Tensor) -> Tensor:
        velocity = self._vector(frames)[:, -1]
        spin = physics.vorticity(velocity, self.domain, coordinates=self.uneven)
        density = spin.square().sum(dim=-self.domain.ndim - 1) / 2
        return physics.total(density * self.weights, self.domain)

    def divergence(self, mass: Callable[..., Tensor], frames: Tensor) -> Tensor:
        velocity = self._vector(frames)[:, -1]
        found = mass(velocity, self.domain, coordinates=self.uneven)
        return found.flatten(1).mean(dim=1)

    def mass(self, frames: Tensor) -> Tensor:
        return physics.total(self._density(frames), self.domain)

    def total_energy(self, frames: Tensor) -> Tensor:
        pressure = frames[:, -1, self.index["pressure"]].double() * self.weights
        velocity = self._vector(frames)[:, -1]
        return physics.total_energy(velocity, self._density(frames), pressure, self.domain)

    def momentum(self, flow: Flow, balance: Callable[..., Tensor], frames: Tensor) -> Tensor:
        values = []
        for sample, parameters in zip(frames, self.setting.parameters, strict=True):
            velocity = sample[:, self.velocity]
            found = balance(
                velocity,
                sample[:, self.index["pressure"]],
                self.domain,
                viscosity=flow.viscosity(parameters),
                force=flow.force(self, sample, parameters),
                coordinates=self.uneven,
            )
            values.append(found.mean())
        return torch.stack(values)

    def _smooth(self) -> bool:
        """Whether the grid is large enough for derivatives."""
        return all(
            n >= physics.STENCIL or wraps
            for n, wraps in zip(self.domain.shape, self.domain.periodic, strict=True)
        )

    def _vector(self, frames: Tensor) -> Tensor:
        return frames[:, :, self.velocity]

    def _density(self, frames: Tensor) -> Tensor:
        """ρ, or 1, in units in which all cells are equally large."""
        if "density" not in self.index:
            return self.weights
        return frames[:, -1, self.index["density"]].double() * self.weights

    def _weights(self) -> Tensor:
        """Volume of each cell in units of the mean, `(*space)`, float64."""
        weights = torch.ones(self.domain.shape, dtype=torch.float64)
        for axis, x in self.uneven.items():
            width = torch.gradient(x)[0].abs()
            shape = [-1 if a == axis else 1 for a in range(self.domain.ndim)]
            weights = weights * (width / width.mean()).reshape(shape)
        return weights


@dataclass(frozen=True)
class Flow:
    """The momentum equation of a known incompressible flow.

    Attributes:
        needs: names of parameters, lower case; alternatives with `|` between them.
        fields: further channels that it needs.
        nu: viscosity from these parameters, in their order.
        push: force `(T, d, *space)` from fields, frames `(T, C, *space)` and parameters; or None.
    """

    needs: tuple[str, ...]
    nu: Callable[..., float]
    fields: tuple[str, ...] = ()
    push: Callable[[_Fields, Tensor, list[float]], Tensor] | None = None

    def fits(self, fields: _Fields) -> bool:
        """Whether all that it needs is there, for all samples."""
        values = [self._values(parameters) for parameters in fields.setting.parameters]
        known = all(math.isfinite(value) for row in values for value in row)
        return known and all(name in fields.index for name in self.fields)

    def viscosity(self, parameters: Parameters) -> float:
        """ν of a sample."""
        return self.nu(*self._values(parameters))

    def force(self, fields: _Fields, frames: Tensor, parameters: Parameters) -> Tensor | None:
        """What pushes a sample apart from pressure and viscosity."""
        return self.push(fields, frames, self._values(parameters)) if self.push else None

    def _values(self, parameters: Parameters) -> list[float]:
        lowered = {k.lower(): v for k, v in parameters.items() if not isinstance(v, str)}
        return [
            next((lowered[name] for name in need.split("|") if name in lowered), math.nan)
            for need in self.needs
        ]


def _buoyancy(fields: _Fields, frames: Tensor, values: list[float]) -> Tensor:
    """Upwards is the last axis."""
    assert fields.velocity
    force = torch.zeros_like(frames[:, fields.velocity])
    force[:, -1] = frames[:, fields.index["buoyancy"]]
    return force


def _kolmogorov(fields: _Fields, frames: Tensor, values: list[float]) -> Tensor:
    """Waves along y push along x; the drag brakes both."""
    assert fields.velocity
    _, drag, waves = values
    force = -drag * frames[:, fields.velocity].double()
    y = torch.from_numpy(fields.setting.coordinates[1])
    force[:, 0] += torch.sin(waves * 2 * math.pi / fields.domain.extent[1] * y)
    return force


# The Well's shear_flow calls its Reynolds number Rayleigh.
FLOWS: dict[str, Flow] = {
    "shear_flow": Flow(("reynolds|rayleigh",), lambda reynolds: 1 / reynolds),
    "rayleigh_benard": Flow(
        ("rayleigh", "prandtl"), lambda ra, pr: math.sqrt(pr / ra), ("buoyancy",), _buoyancy
    ),
    "kolmogorov_flow": Flow(
        ("reynolds", "drag", "forcing"), lambda reynolds, *_: 1 / reynolds, push=_kolmogorov
    ),
}


def _uneven(setting: Setting) -> dict[int, Tensor]:
    """Coordinates of the axes whose cells are not equal and that are not periodic."""
    found = {}
    for axis, x in enumerate(setting.coordinates):
        steps = np.diff(x)
        equal = len(x) < 2 or np.ptp(steps) <= UNEVEN * np.abs(steps).mean()
        if not equal and not setting.domain.periodic[axis]:
            found[axis] = torch.from_numpy(x)
    return found
