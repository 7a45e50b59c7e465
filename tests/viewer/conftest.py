"""Small worlds of one to three axes: patterns that move, and models that nobody trained."""

import json

import numpy as np
import pytest
import torch

pytest.importorskip("h5py")

import overtone as ot
from overtone.data import Header, write_well
from overtone.evaluate import Candidate
from overtone.viewer.messages import read, unpack
from overtone.viewer.session import Session
from overtone.viewer.stage import Stage

SHAPES = {1: (32,), 2: (16, 32), 3: (8, 8, 16)}
FRAMES = 14
FIELDS = ("a", "b")


def moving(shape, num):
    """Two fields, `(num, FRAMES, *shape)` each: one of both signs, one positive."""
    random = np.random.default_rng(0)
    noise = random.standard_normal((num, *shape)).astype(np.float32)
    space = tuple(range(1, len(shape) + 1))
    frames = np.stack([np.roll(noise, n, axis=space) for n in range(FRAMES)], axis=1)
    smooth = sum(np.roll(frames, n, axis=-1) for n in range(4)) / 2
    return {"a": smooth, "b": np.exp(0.3 * smooth)}


@pytest.fixture(scope="session")
def make_data(tmp_path_factory):
    """The folder of a world of so many axes, which is periodic along all but the last."""
    made = {}

    def make(ndim):
        if ndim not in made:
            shape = SHAPES[ndim]
            folder = tmp_path_factory.mktemp(f"world{ndim}") / "toy"
            sides = ["periodic"] * (ndim - 1) + ["wall"] if ndim > 1 else "periodic"
            header = Header("toy", shape, (1.0,) * ndim, sides, 0.5)
            write_well(folder / "data/test/toy.hdf5", moving(shape, 2), header)
            made[ndim] = folder
        return made[ndim]

    return make


@pytest.fixture(scope="session")
def make_candidate(make_data):
    def make(ndim=2, name="net", **options):
        from overtone.data import WellFolder

        domain = WellFolder(make_data(ndim), "test", 3).domain
        torch.manual_seed(1)
        small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 3}
        patches = {"patches": (2, 4, 8) if ndim > 1 else (4, 8)}
        model = ot.build("axial", tokenizer="csm", domain=domain, **(small | patches | options))
        with torch.no_grad():  # an untrained one hardly moves anything
            for parameter in model.parameters():
                parameter += 0.05 * torch.randn_like(parameter)
        return Candidate(name, model.eval())

    return make


@pytest.fixture
def make_stage(make_data, make_candidate):
    stages = []

    def make(ndim=2, *models, start=1):
        stage = Stage(models or [make_candidate(ndim)], make_data(ndim), {"start": start})
        stages.append(stage)
        return stage

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def watch(make_stage, monkeypatch):
    """A session, and a function that asks it as a page would: header and planes come back."""
    monkeypatch.setattr("overtone.viewer.session.SLICE", 600.0)  # however busy the machine is

    def begin(ndim=2, *models, **options):
        session = Session(make_stage(ndim, *models), **options)

        def ask(kind, **message):
            return unpack(session.answer(read(json.dumps({"type": kind, **message}))))

        return session, ask

    return begin


@pytest.fixture
def lanes():
    """Lanes of an `open` message: a schedule each, of the first model."""
    return lambda *schedules: [{"model": 0, "schedule": text} for text in schedules]
