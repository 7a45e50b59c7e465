"""The paper's six datasets, as The Well publishes them but for their size.

Its recipes train on them, and what comes out is evaluated and rolled out.

The files are written with h5py alone, by the published descriptions, so that nothing of our own
writer's idea of the format goes into them.
"""

from dataclasses import dataclass

import h5py
import numpy as np
import pytest

from overtone.data import WellFolder
from overtone.evaluate.results import Results
from overtone.train.recipes import recipe

TINY = {
    "data.workers": 0, "data.coarsen": 1, "model.width": 16, "model.heads": 2, "model.blocks": 1,
    "model.mlp_dim": 16, "model.context": 3, "train.batch": 4, "train.updates": 3,
    "train.device": "cpu", "train.threads": 1, "valid.every": 3, "valid.windows": 4,
    "valid.rollouts": 2, "valid.rollout_steps": 2, "log.tensorboard": False,
}  # fmt: skip
"""What makes a paper's recipe a matter of a second."""
FRAMES = 7
COUNTS = {"train": 2, "valid": 1, "test": 1}
"""Trajectories of a file of each split."""


@dataclass(frozen=True)
class Kind:
    """What a file of a dataset holds.

    Attributes:
        fields: names by tensor order.
        grid: cells.
        boundaries: of each axis.
        files: for each file of a split its parameters.
        dt, length: by parameters; time between frames, and length of each axis.
        times: of a trajectory, in units of dt; evenly spaced by default.
        constants: fields that vary neither with the sample nor with the time.
        chebyshev: whether the points of the last axis are.
        series: names of scalars that vary with sample and time.
    """

    fields: tuple[tuple[str, ...], ...]
    grid: tuple[int, ...]
    boundaries: tuple[str, ...]
    files: tuple[dict[str, float], ...]
    dt: tuple[float, ...]
    length: tuple[tuple[float, ...], ...]
    times: tuple[float, ...] | None = None
    constants: tuple[str, ...] = ()
    chebyshev: bool = False
    series: tuple[str, ...] = ()


GAS = (("pressure", "density", "temperature"), ("velocity",))
OPEN = ("OPEN",) * 3
TGC = [(44.5, 0.14, 60.0), (4.45, 0.44, 129.0), (0.445, 1.4, 278.0)]
"""Density, dt in Myr and box in pc: 1/50 of a free-fall time each."""
KINDS = {
    "shear-flow": Kind(
        (("tracer", "pressure"), ("velocity",)), (16, 32), ("PERIODIC",) * 2,
        # The first is the Reynolds number; the published files call it so.
        ({"Rayleigh": 1e4, "Schmidt": 0.1}, {"Rayleigh": 5e5, "Schmidt": 10.0}),
        (0.1, 0.1), ((1.0, 2.0),) * 2,
    ),
    "rayleigh-benard": Kind(
        (("buoyancy", "pressure"), ("velocity",)), (32, 8), ("PERIODIC", "WALL"),
        ({"Rayleigh": 1e6, "Prandtl": 0.1},), (0.25,), ((4.0, 1.0),), chebyshev=True,
    ),
    "active-matter": Kind(
        (("concentration",), ("velocity",), ("D", "E")), (16, 16), ("PERIODIC",) * 2,
        ({"L": 10.0, "alpha": -1.0, "beta": 0.8, "zeta": 1.0},), (0.25,), ((10.0, 10.0),),
    ),
    "turbulent-radiative-layer-2d": Kind(
        (("density", "pressure"), ("velocity",)), (8, 24), ("PERIODIC", "OPEN"),
        ({"tcool": 0.03}, {"tcool": 3.16}), (1.597, 1.597), ((1.0, 3.0),) * 2,
    ),
    "supernova-explosion": Kind(
        GAS, (8, 8, 8), OPEN, ({"T0": 100.0, "rho0": 44.5, "Z": 1.0},) * 2, (0.001, 0.0012),
        ((60.0,) * 3,) * 2, times=(0.0, 0.1, 0.4, 1.0, 3.0, 6.0, 12.0), series=("energy",),
    ),
    "turbulence-gravity-cooling": Kind(
        GAS, (8, 8, 8), OPEN, tuple({"T0": 10.0, "rho0": rho, "Z": 0.1} for rho, *_ in TGC),
        tuple(dt for _, dt, _ in TGC), tuple((box,) * 3 for *_, box in TGC),
    ),
    # Not one of the six: what others of The Well have, a field that never changes.
    "a constant field": Kind(
        (("tracer", "pressure"), ("velocity",)), (16, 32), ("PERIODIC",) * 2,
        ({"Rayleigh": 1e4},), (0.1,), ((1.0, 2.0),), constants=("depth",), series=("forcing",),
    ),
}  # fmt: skip


def write(path, kind, number, num, seed):
    """One file of a dataset."""
    random, ndim = np.random.default_rng(seed), len(kind.grid)
    axes = ("x", "y", "z")[:ndim]
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        parameters = kind.files[number]
        file.attrs.update(
            dataset_name=path.stem, grid_type="cartesian", n_spatial_dims=ndim, n_trajectories=num,
            simulation_parameters=[*parameters], **parameters,
        )  # fmt: skip
        _write_dimensions(file, kind, number, num, axes)
        boundaries = file.create_group("boundary_conditions")
        for axis, cells, boundary in zip(axes, kind.grid, kind.boundaries, strict=True):
            own = boundaries.create_group(f"{axis}_{boundary.lower()}")
            own.attrs.update(associated_dims=[axis], associated_fields=[], bc_type=boundary,
                             sample_varying=False, time_varying=False)  # fmt: skip
            mask = np.zeros(cells, bool)
            mask[[0, -1]] = True
            own["mask"] = mask
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = [*parameters, *kind.series]
        for name, value in parameters.items():
            scalars[name] = value
            scalars[name].attrs.update(sample_varying=False, time_varying=False)
        for name in kind.series:
            scalars[name] = random.standard_normal((num, FRAMES))
            scalars[name].attrs.update(sample_varying=True, time_varying=True)
        for order in range(3):
            names = kind.fields[order] if order < len(kind.fields) else ()
            steady = kind.constants if order == 0 else ()
            group = file.create_group(f"t{order}_fields")
            group.attrs["field_names"] = [*names, *steady]
            for name in names:
                walk = random.standard_normal((num, FRAMES, *kind.grid, *(ndim,) * order))
                _write_field(group, name, walk.cumsum(axis=1), kind, varying=True)
            for name in steady:
                _write_field(group, name, random.random(kind.grid), kind, varying=False)


def _write_dimensions(file, kind, number, num, axes):
    group = file.create_group("dimensions")
    group.attrs["spatial_dims"] = [*axes]
    times = np.array(kind.times or range(FRAMES), np.float32) * kind.dt[number]
    # Each explosion has its own times.
    own = np.stack([times * (1 + 0.1 * sample) for sample in range(num)])
    group["time"] = times if kind.times is None else own
    group["time"].attrs.update(sample_varying=kind.times is not None, time_varying=True)
    for axis, (cells, length) in enumerate(zip(kind.grid, kind.length[number], strict=True)):
        points = (np.arange(cells) + 0.5) / cells
        if kind.chebyshev and axis == len(kind.grid) - 1:
            points = (1 - np.cos(np.pi * points)) / 2
        group[axes[axis]] = (length * points).astype(np.float32)
        group[axes[axis]].attrs.update(sample_varying=False, time_varying=False)


def _write_field(group, name, values, kind, *, varying):
    group[name] = values.astype(np.float32)
    flags = {"sample_varying": varying, "time_varying": varying}
    group[name].attrs.update(dim_varying=[True] * len(kind.grid), **flags)
    if group.name == "/t2_fields":
        group[name].attrs.update(symmetric=name == "D", antisymmetric=False)


@pytest.fixture
def published(tmp_path):
    """Writes the folder of a dataset."""

    def make(name):
        kind = KINDS[name]
        for split, num in COUNTS.items():
            for number in range(len(kind.files)):
                path = (
                    tmp_path / "well" / "data" / split / f"{name.replace(' ', '_')}_{number}.hdf5"
                )
                write(path, kind, number, num, seed=10 * number + len(split))
        return tmp_path / "well"

    return make


@pytest.mark.parametrize("name", KINDS)
def test_a_dataset_is_trained_on_evaluated_and_rolled_out(name, published, overtone, tmp_path):
    folder, kind = published(name), KINDS[name]
    chosen = name if name in recipe_names() else "shear-flow"
    patches = "[2, 4]" if len(kind.grid) == 3 else "[4, 8]"
    settings = {**TINY, "data.path": folder, "model.patches": patches}
    pairs = [f"{key}={value}" for key, value in settings.items()]
    code, text = overtone("train", f"{chosen}-7m", *pairs, "--out", tmp_path / "run")
    assert code == 0, text
    words = ("--steps", 2, "--start", 1)
    code, text = overtone(
        "evaluate", tmp_path / "run", folder, *words, "--windows", 4, "--out", tmp_path / "found",
        "--no-report",
    )  # fmt: skip
    assert code == 0, text
    found = Results.load(tmp_path / "found" / "results.json")
    (model,) = found.models
    several = len(set(kind.dt)) > 1 or kind.times is not None
    assert ("dt_range" in found.data.domain) == several
    assert len(model.runs) == 4
    assert all(np.isfinite(run.vrmse_all.value) for run in model.runs)
    ndim = len(kind.grid)
    channels = sum(len(names) * ndim**order for order, names in enumerate(kind.fields))
    assert len(model.runs[0].fields) == channels + len(kind.constants)
    patch = "2-4" if ndim == 3 else "4-8"
    code, text = overtone(
        "rollout", tmp_path / "run", folder, "--schedule", patch, *words, "--out", tmp_path / "made"
    )
    assert code == 0, text
    truth, made = (WellFolder(path, "test", context=3) for path in (folder, tmp_path / "made"))
    assert made.num_trajectories == truth.num_trajectories == len(kind.files)
    for row in range(len(kind.files)):
        assert made.num_frames(row) == 5
        assert made.domain_of(row).dt == pytest.approx(truth.domain_of(row).dt)
        assert made.domain_of(row).extent == pytest.approx(truth.domain_of(row).extent)
        frames = made.frames(row, 0, 5)
        assert bool(frames.fields.isfinite().all())
        np.testing.assert_array_equal(frames.fields[:3], truth.frames(row, 1, 3).fields)


def recipe_names():
    return [name for name in KINDS if " " not in name]


def test_the_papers_numbers_of_fields():
    """The number of fields that the paper's table gives, but for the radiative layer: it says 5."""
    counts = {
        name: sum(len(names) * len(kind.grid) ** order for order, names in enumerate(kind.fields))
        for name, kind in KINDS.items()
    }
    assert counts["active-matter"] == 11
    assert counts["supernova-explosion"] == counts["turbulence-gravity-cooling"] == 6
    assert counts["turbulent-radiative-layer-2d"] == counts["shear-flow"] == 4
    assert all(recipe(f"{name}-7m") for name in recipe_names())


def test_a_model_of_three_dt_keeps_their_range_and_refuses_others(published, overtone, tmp_path):
    folder = published("turbulence-gravity-cooling")
    data = WellFolder(folder, context=3)
    assert (data.domain.dt, data.domain.dt_range) == (0.14, (0.14, 1.4))
    assert len({data.domain_of(row).extent for row in range(data.num_trajectories)}) == 3
    for path in (folder / "data" / "valid").glob("*_2.hdf5"):
        with h5py.File(path, "r+") as file:
            file["dimensions/time"][...] *= 3
    settings = [f"{key}={value}" for key, value in {**TINY, "data.path": folder}.items()]
    code, text = overtone(
        "train", "turbulence-gravity-cooling-7m", *settings, "--out", tmp_path / "run"
    )
    assert code == 2
    assert "dt is 4.2 in trajectory 2 of split 'valid', and 0.14 to 1.4 in the training" in text
