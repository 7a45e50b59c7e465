"""A solver's output as a dataset: repeatable, resumable, complete or absent."""

import importlib
import json
from dataclasses import dataclass
from types import SimpleNamespace

import h5py
import pytest
import torch

import overtone as ot
from overtone.data import Storage, WellFolder, check
from overtone.errors import DataError
from overtone.guard.folders import MARKER
from overtone.guard.locks import locked
from overtone.solvers import Field, ShearFlow, System
from overtone.solvers.datasets import RECIPE, build_system, generate


@dataclass(frozen=True)
class Decay(System):
    """A field that decays at a rate, from random values; it may blow up on request."""

    shape: tuple[int, ...] = (4, 6)
    dt: float = 0.5
    rate: float = 1.0
    blow_up: int = 1000
    cells: int = 3

    name = "decay"
    fields = (Field("a"), Field("u", 1))
    axes = ("x", "z")
    boundaries = ("periodic", "wall")
    parameters = ("rate",)
    extent = (1.0, 2.0)

    def initial(self, num, *, seed):
        random = torch.Generator().manual_seed(seed)
        values = torch.randn(num, 3, *self.shape, generator=random, dtype=torch.float64)
        return torch.stack([values, torch.zeros_like(values)])

    def advance(self, state):
        values = state[0] * torch.exp(torch.tensor(-self.rate * self.dt))
        if state[1].max() + 1 >= self.blow_up:
            values = values / 0
        return torch.stack([values, state[1] + 1])

    def frame(self, state):
        return state[0]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(out, system=None, **options):
    options = {"trajectories": 10, "steps": 6, "per_file": 3} | options
    return generate(system or Decay(), out, **options)


def test_files_splits_and_parameters(tmp_path):
    out = run(tmp_path / "a")
    assert check(out) == []
    counts = {s: WellFolder(out, s, 2).num_trajectories for s in ("train", "valid", "test")}
    assert counts == {"train": 8, "valid": 1, "test": 1}
    assert [p.name for p in sorted((out / "data/train").iterdir())] == [
        f"decay_rate_1_{n:03d}.hdf5" for n in range(3)
    ]
    data = WellFolder(out, context=2)
    assert data.parameters(0) == {"rate": 1.0}
    assert data.domain == Decay().domain
    assert data.stats is not None
    frames = torch.cat([*[x.fields for x, _ in [data[0]]], data[0][1]])
    assert torch.allclose(frames[2], frames[0] * torch.exp(torch.tensor(-1.0)), atol=1e-6)


def test_initial_conditions_differ_everywhere(tmp_path):
    out = run(tmp_path / "a")
    firsts = [
        window.fields[0]
        for split in ("train", "valid", "test")
        for window, _ in WellFolder(out, split, 2, whole=True)
    ]
    distances = [(a - b).abs().max() for i, a in enumerate(firsts) for b in firsts[:i]]
    assert len(firsts) == 10
    assert min(distances) > 0.5


def test_a_seed_repeats_to_the_byte(tmp_path):
    a, b, c = run(tmp_path / "a"), run(tmp_path / "b"), run(tmp_path / "c", seed=1)
    assert contents(a) == contents(b)
    assert contents(a).keys() == contents(c).keys()
    assert contents(a) != contents(c)


def test_an_interrupted_run_continues(tmp_path):
    out = run(tmp_path / "a")
    before = contents(out)
    times = {p: p.stat().st_mtime_ns for p in out.rglob("*.hdf5")}
    lost = out / "data/train/decay_rate_1_001.hdf5"
    lost.unlink()
    (out / "stats.yaml").unlink()
    damaged = out / "data/valid/decay_rate_1_000.hdf5"
    damaged.write_bytes(damaged.read_bytes()[:5000])
    seen = []
    run(out, progress=lambda n, m, what: seen.append((n, m, what)))
    assert contents(out) == before
    assert {p for p, t in times.items() if p.stat().st_mtime_ns != t} == {lost, damaged}
    assert seen[0] == (19, 30, "train/decay_rate_1_001.hdf5")
    assert seen[-1] == (30, 30, "stats.yaml")


def test_another_recipe_is_not_mixed_in(tmp_path):
    out = run(tmp_path / "a")
    with h5py.File(out / "data/test/decay_rate_1_000.hdf5") as file:
        assert '"rate": 1.0' in file.attrs[RECIPE]
    for options in ({"seed": 2}, {"steps": 7}, {"system": Decay(dt=0.25)}):
        with pytest.raises(ot.DataError, match="made with other settings"):
            run(out, **options)


def test_more_trajectories_keep_the_files_there_are(tmp_path):
    out = run(tmp_path / "a", trajectories=9, splits=(1, 0, 0))
    before = contents(out)
    run(out, trajectories=12, splits=(1, 0, 0))
    after = contents(out)
    assert len(after) == len(before) + 1
    assert all(after[name] == before[name] for name in before.keys() - {"stats.yaml", MARKER})
    assert after["stats.yaml"] != before["stats.yaml"]
    with pytest.raises(ot.DataError, match="not of this dataset, e.g. 'data/train/decay"):
        run(out, trajectories=9, splits=(1, 0, 0))


def test_variants_have_their_own_files(tmp_path):
    out = run(tmp_path / "a", [Decay(rate=r) for r in (0.5, 2.0)], trajectories=3)
    data = WellFolder(out, context=2)
    assert [data.parameters(i)["rate"] for i in (0, len(data) - 1)] == [0.5, 2.0]
    with pytest.raises(ot.DataError, match="the same parameters"):
        run(tmp_path / "b", [Decay(), Decay()])


def test_an_unstable_solver_leaves_no_half_written_file(tmp_path):
    with pytest.raises(ot.OvertoneError, match="is not written: decay became unstable at frame 4"):
        run(tmp_path / "a", Decay(blow_up=4))
    assert contents(tmp_path / "a").keys() == {MARKER}


def test_storage(tmp_path):
    out = run(tmp_path / "a", storage=Storage(compression="gzip"))
    with h5py.File(out / "data/test/decay_rate_1_000.hdf5") as file:
        assert file["t0_fields/a"].compression == "gzip"


def test_shear_flow_is_the_solvers_own(tmp_path):
    system = ShearFlow(shape=(16, 32), reynolds=1e3)
    out = generate(system, tmp_path / "a", trajectories=3, steps=4)
    window, rest = WellFolder(out, "test", 2, whole=True)[0]
    assert window.domain == system.domain
    with h5py.File(out / "data/test/shear_flow_reynolds_1000_schmidt_1_000.hdf5") as file:
        seed = json.loads(file.attrs[RECIPE])["seed"]
        assert file["dimensions/z"][0] == pytest.approx(-1 + 1 / 32)
    expected = torch.stack([*system.trajectory(1, 4, seed=seed)], dim=1)[0]
    assert torch.equal(torch.cat([window.fields, rest]), expected)


def test_build_system(monkeypatch):
    # The package's function of that name hides the module from a dotted path.
    module = importlib.import_module("overtone.solvers.datasets")
    monkeypatch.setattr(module, "SYSTEMS", {"Shear_Flow": ShearFlow, "decay": Decay})
    assert build_system("shear_flow", grid=(16, 32), reynolds=5.0).reynolds == 5.0
    assert build_system("DECAY", cells=5.0).cells == 5
    for arguments, options, message in (
        (("shear_flo",), {}, "no system 'shear_flo'.*did you mean 'Shear_Flow'"),
        (("decay",), {"rat": 1.0}, "no setting 'rat'.*did you mean 'rate'"),
        (("decay",), {"grid": (4,)}, "has the axes x, z"),
        (("decay",), {"grid": (16.9, 16)}, "grid is 16.9; expected a whole number"),
        (("decay",), {"cells": 2.5}, "cells is 2.5; expected a whole number"),
        (("decay",), {"cells": float("inf")}, "cells is inf; expected a whole number"),
    ):
        with pytest.raises(ot.DataError, match=message):
            build_system(*arguments, **options)


@pytest.mark.parametrize(
    "options", [{"steps": 0}, {"steps": 10**400}, {"per_file": 0}, {"seed": -1}]
)
def test_bad_numbers(tmp_path, options):
    with pytest.raises(ot.DataError, match="expected positive numbers"):
        run(tmp_path / "a", **options)


def test_a_device_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="device 'abacus' can't be used here"):
        generate(ShearFlow(shape=(8, 8)), tmp_path, trajectories=1, steps=1, device="abacus")


def test_a_folder_of_the_users_own_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"not of this dataset, e\.g\. 'notes\.txt'; they are left"):
        run(tmp_path)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_notes_beside_a_dataset_do_not_keep_it_from_being_continued(tmp_path):
    out = run(tmp_path / "a")
    (out / "notes.txt").write_text("mine")
    made = out / "data/test/decay_rate_1_000.hdf5"
    made.unlink()
    run(out)
    assert made.exists()
    assert (out / "notes.txt").read_text() == "mine"


def test_two_at_once_in_one_folder(tmp_path):
    with locked(tmp_path / "a"):
        with pytest.raises(DataError, match="is in use by process"):
            run(tmp_path / "a")
        with pytest.raises(DataError, match="is in use by process"):
            run(tmp_path / "a", seed=1)


def test_whoever_waits_finds_the_dataset_complete(tmp_path):
    """The second waits for the first instead of making the same files beside it."""
    said = []
    lock = locked(tmp_path / "a")
    lock.__enter__()

    def progress(done, total, what):
        if "waiting" in what and not said:
            lock.__exit__(None, None, None)
        said.append(what)

    run(tmp_path / "a", wait=True, progress=progress)
    assert said[0].startswith("waiting for process")
    said.clear()
    with locked(tmp_path / "a"):
        run(tmp_path / "a", wait=True, progress=progress)  # complete: nothing to wait for
    assert said == []


def test_a_split_that_is_a_link_leads_nowhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a" / "data").mkdir(parents=True)
    (tmp_path / "a" / "data" / "train").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError):
        run(tmp_path / "a")
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.fixture
def nothing_is_made(monkeypatch):
    """Neither a plan nor a state: both would take hours or all memory."""
    module = importlib.import_module("overtone.solvers.datasets")
    monkeypatch.setattr(module, "_plan", lambda *_: pytest.fail("planned"))
    monkeypatch.setattr(Decay, "initial", lambda *_, **__: pytest.fail("allocated"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system": Decay(shape=(10**5, 10**5))}, r"3 trajectories on 100000x100000.* TB.* only"),
        ({"system": Decay(shape=(10**300, 10**300))}, "inf PB"),
        ({"steps": 10**9}, r"10 trajectories of 1000000000 frames takes 2.9 TB, but only .* free"),
        ({"steps": 10**9, "storage": Storage(compression="gzip")}, "takes 144.0 GB, but only"),
        ({"trajectories": 10**9, "per_file": 10**5}, "takes 1.7 TB, but only"),
        ({"trajectories": 10**9}, "more than 100000 files; .*per_file"),
        ({"trajectories": 10**400, "per_file": 10**400}, "more than 100000 files"),
    ],
)
def test_what_can_not_fit_is_refused_by_its_numbers(
    nothing_is_made, tmp_path, monkeypatch, options, message
):
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "1TB")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10**11))
    with pytest.raises(ot.DataError, match=message):
        run(tmp_path / "a", **options)
    assert [*tmp_path.iterdir()] == []


def test_what_is_there_already_needs_no_further_room(tmp_path, monkeypatch):
    out = run(tmp_path / "a", Decay(shape=(32, 32)))
    (out / "data/train/decay_rate_1_001.hdf5").unlink()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=3 * 6 * 3 * 32**2 * 4))
    run(out, Decay(shape=(32, 32)))
    with pytest.raises(ot.DataError, match="a dataset of 10 trajectories of 6 frames takes"):
        run(tmp_path / "b", Decay(shape=(32, 32)))


def test_seeds_of_any_size(tmp_path):
    out = run(tmp_path / "a", seed=10**30, trajectories=3, steps=2)
    assert contents(out) == contents(run(tmp_path / "b", seed=10**30, trajectories=3, steps=2))
    assert contents(out) != contents(run(tmp_path / "c", seed=10**30 + 1, trajectories=3, steps=2))


def test_a_system_s_name_can_not_lead_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(Decay, "name", "../../decay")
    with pytest.raises(ot.DataError, match="the system's name is '../../decay', which has"):
        run(tmp_path / "a/b/c")
    assert [*tmp_path.iterdir()] == []
