"""Results and samples as an evaluation makes them, from formulas."""

import math

import numpy as np
import pytest
import torch

from overtone.domain import Domain
from overtone.evaluate.results import (
    AxisSpectrum,
    Data,
    Estimate,
    Harmonics,
    ModelResult,
    NextStep,
    ResidualSpectrum,
    Results,
    Run,
)
from overtone.evaluate.samples import Samples
from overtone.schedules import parse_schedule

SCHEDULES = ("16", "16+shift", "4-8-16", "4")
BANDS = {"low": 0.1, "mid": 1.0, "high": 9.0}
SHAPES = {1: (64,), 2: (64, 96), 3: (16, 16, 16)}
EXTENTS = {1: (2.0,), 2: (1.0, 1.5), 3: (1.0, 1.0, 1.0)}


def estimate(value, spread=0.1):
    return Estimate(value=value, low=value * (1 - spread), high=value * (1 + spread))


def domain(ndim, fields=("tracer", "pressure")):
    return Domain(SHAPES[ndim], EXTENTS[ndim], "periodic", fields, 0.1)


def cell(patch, ndim, strength):
    """A cell whose first layer along every axis stands out."""
    values = np.ones((patch,) * ndim)
    values[(0,) * ndim] += strength
    return values.tolist()


def spectrum(step, size):
    k = tuple(i / 64 for i in range(33))
    power = tuple(size * step * (i + 1) ** -2 for i in range(33))
    return ResidualSpectrum(
        step=step,
        wavenumber=k,
        power=power,
        low=tuple(p / 2 for p in power),
        high=tuple(p * 2 for p in power),
        truth=tuple(p * 9 for p in power),
    )


def axis_spectrum(step, field, axis, size):
    seen = spectrum(step, size / (axis + 1))
    numbers = {name: getattr(seen, name) for name in type(seen).model_fields}
    return AxisSpectrum(field=field, axis=axis, swell={16: estimate(3 * size)}, **numbers)


def harmonics(patch, ndim, steps, size):
    return Harmonics(
        patch=patch,
        excess=tuple(estimate(size * 20 + 0.1 * step) for step in range(steps)),
        exponent=2.0,
        overall=20 * size,
        p_value=1e-6 if size > 0.5 else 0.4,
        share=min(size / 2, 1.0),
        cell=cell(patch, ndim, size),
        worst_seams=tuple(estimate(size * 10 + 0.05 * step) for step in range(steps)),
    )


def run(schedule, size, *, ndim, steps, blow_up=None, spread=0.1):
    length = steps if blow_up is None else blow_up - 1
    errors = tuple(estimate(size * step / steps, spread) for step in range(1, length + 1))
    whole = estimate(size / 2, spread)
    tokens = parse_schedule(schedule).tokens(domain(ndim), steps)
    return Run(
        schedule=schedule,
        vrmse=errors,
        vrmse_10=estimate(size / 3, spread),
        vrmse_all=whole,
        fields={"tracer": whole, "pressure": whole},
        bsnmse={band: estimate(size * f, spread) for band, f in BANDS.items()},
        energy={
            band: tuple(estimate(1 + f * step) for step in range(length))
            for band, f in BANDS.items()
        },
        harmonics=tuple(harmonics(p, ndim, length, size) for p in (4, 8, 16)),
        seams=tuple(estimate(size * 8 + 0.05 * step) for step in range(length)),
        spectra=tuple(spectrum(step, size) for step in (1, 5, steps) if step <= length),
        axis_spectra=tuple(
            axis_spectrum(5, field, axis, size)
            for axis in range(ndim)
            for field in ("tracer", "pressure")
            if length >= 5
        ),
        physics={"divergence": tuple(estimate(size * step) for step in range(1, length + 1))},
        tokens=tokens,
        flops=1000 * tokens,
        seconds=0.01 * tokens,
        blow_up=blow_up,
    )  # fmt: skip


def model(name="csm", seed=None, schedules=SCHEDULES, *, ndim=2, steps=12, factor=1.0, **options):
    """The first schedule is the worst, the others are better in turn."""
    runs = tuple(
        run(s, factor * 0.9 / (i + 1), ndim=ndim, steps=steps, **options)
        for i, s in enumerate(schedules)
    )
    next_step = tuple(
        NextStep(
            patch=p, vrmse=estimate(0.01 * p), fields={}, tokens=4096 // p**2, flops=10**6 // p,
            seconds=0.1 / p, bsnmse={band: estimate(0.01 * p * f) for band, f in BANDS.items()},
        )
        for p in (4, 8, 16)
    )  # fmt: skip
    return ModelResult(
        name=name, seed=seed, num_parameters=1234, config={}, training={}, next_step=next_step,
        runs=runs,
    )  # fmt: skip


@pytest.fixture(scope="session")
def make_model():
    return model


@pytest.fixture(scope="session")
def alter_run():
    """A model whose only run is its first one with some values changed."""

    def alter(model, **values):
        return model.model_copy(update={"runs": (model.runs[0].model_copy(update=values),)})

    return alter


@pytest.fixture(scope="session")
def make_results():
    def make(models=None, *, ndim=2, steps=12, trajectories=12, name="flows", **options):
        models = [model(ndim=ndim, steps=steps, **options)] if models is None else models
        data = Data(
            name=name, split="test", fingerprint="0" * 64, trajectories=trajectories, start=3,
            domain=domain(ndim).to_dict(),
        )  # fmt: skip
        return Results(
            command="overtone evaluate model flows", seed=0, machine={"cpu": "one"}, data=data,
            steps=steps, models=tuple(models),
        )  # fmt: skip

    return make


def bare(name, run):
    """A model without patches, of one run."""
    config = {"kind": "baseline", "name": name}
    values = {"name": name, "num_parameters": 0, "config": config, "runs": (run,)}
    step = model().next_step[0].model_copy(update={"patch": 1, "tokens": 4096})
    return model().model_copy(update=values | {"next_step": (step,)})


@pytest.fixture(scope="session")
def make_bare():
    """A model without patches whose error is `size` at the last step."""

    def make(name="unet", size=0.5, steps=12):
        return bare(name, run("1", size, ndim=2, steps=steps))

    return make


@pytest.fixture(scope="session")
def with_yardsticks(make_bare):
    """The same results with persistence and extrapolation, far above all models by default."""

    def add(results, sizes=(50.0, 80.0)):
        names = ("persistence", "extrapolation")
        made = [make_bare(n, s, results.steps) for n, s in zip(names, sizes, strict=True)]
        return results.model_copy(update={"yardsticks": tuple(made)})

    return add


@pytest.fixture(scope="session")
def make_samples():
    """Waves that travel, and predictions with a comb of period 16 that grows."""

    def make(ndim=2, keys=None, steps=(1, 4, 8, 12), fields=("tracer", "pressure")):
        keys = [("csm", s) for s in SCHEDULES] if keys is None else keys
        shape = SHAPES[ndim]
        place = sum(torch.arange(n).reshape([-1 if a == b else 1 for b in range(ndim)]) / n
                    for a, n in enumerate(shape))  # fmt: skip
        wave = torch.linspace(0, 2 * math.pi, shape[0]).cos().reshape(-1, *(1,) * (ndim - 1))
        frames = [wave + torch.sin(2 * math.pi * (place - 0.03 * step)) for step in steps]
        scales = 1.0 + torch.arange(len(fields)).reshape(-1, *(1,) * ndim)
        truth = torch.stack([scales * frame for frame in frames])
        comb = (torch.arange(shape[-1]) % 16 == 0).float()
        growth = torch.tensor(steps).float().reshape(-1, *(1,) * (ndim + 1))
        predictions = {key: truth + 0.05 / (i + 1) * growth * comb for i, key in enumerate(keys)}
        return Samples(domain(ndim, fields), tuple(steps), truth, predictions)

    return make


@pytest.fixture(scope="session")
def check_labels():
    """Every panel's axes have labels, at the panel or at the end of its row or column."""

    def check(figure):
        panels = [axes for axes in figure.axes if axes.get_subplotspec() and axes.axison]
        for axes in panels:
            place = axes.get_subplotspec()
            column = [a for a in panels if a.get_subplotspec().colspan == place.colspan]
            row = [a for a in panels if a.get_subplotspec().rowspan == place.rowspan]
            # Where a column ends early, the lowest row speaks for it.
            assert any(a.get_xlabel() for a in [*column, panels[-1]])
            assert figure.get_supylabel() or any(a.get_ylabel() for a in row)
            if axes.get_xlabel().startswith("rollout step"):
                assert all(tick == round(tick) for tick in axes.get_xticks())
        for axes in figure.axes:
            if not axes.get_subplotspec():  # a colour bar
                assert axes.get_xlabel() or axes.get_ylabel()

    return check


@pytest.fixture(scope="session")
def legend_names():
    def names(figure):
        (legend,) = figure.legends
        return [entry.get_text() for entry in legend.get_texts()]

    return names
