"""`overtone diagnose`, as a user types it, for every kind of input."""

import json
from functools import partial

import numpy as np
import pytest
import torch

pytest.importorskip("h5py")

from overtone.data import FieldSpec, Header, write_well
from overtone.evaluate.diagnosis import Diagnosis
from overtone.guard.folders import MARKER
from overtone.metrics.spectrum import wavenumber_norm

GRID = (48, 48)
FIELDS = (FieldSpec("rho"), FieldSpec("p"))


def arrays():
    """Truth, a prediction with a comb of period 8 and one without, `(1, 4, 2, *GRID)`."""
    random = torch.Generator().manual_seed(0)
    scale = wavenumber_norm(GRID).clamp(min=1 / 48) ** -1.5
    noise = torch.randn(2, 1, 4, 2, *GRID, generator=random, dtype=torch.float64)
    truth, error = torch.fft.ifft2(torch.fft.fft2(noise) * scale).real.numpy()
    line = np.arange(48) % 8 == 0
    comb = np.maximum(line[:, None], line)
    clean = truth + 0.1 * error
    return truth, clean + 0.2 * comb * truth.std(), clean


TRUTH, COMB, CLEAN = arrays()


def save(path, array):
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, rho=array[:, :, 0], p=array[:, :, 1])
    elif path.suffix == ".zarr":
        pytest.importorskip("zarr").save(str(path), array)
    else:
        file = path if path.suffix else path / "data" / "test" / "a.hdf5"
        header = Header("toy", GRID, (1.0, 1.0), "periodic", 0.1)
        values = {spec: array[:, :, i].astype(np.float32) for i, spec in enumerate(FIELDS)}
        write_well(file, values, header)
    return path


@pytest.fixture
def overtone(overtone):
    return partial(overtone, "diagnose")


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [("p.npy", "t.npy"), ("p.npz", "t.npz"), ("p.zarr", "t.npy"), ("p", "t"), ("p.hdf5", "t"),
     ("p.npy", "t"), ("p", "t.npz")],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning:zarr", "ignore::FutureWarning:zarr")
def test_every_kind_of_input(overtone, tmp_path, prediction, truth):
    files = save(tmp_path / prediction, COMB), save(tmp_path / truth, TRUTH)
    code, text = overtone(*files, "--patch", 8)
    assert code == 0, text
    assert "Grid artifact of period 8 cells on both axes: " in text


def test_auto_figure_json_and_exit_codes(overtone, tmp_path):
    files = save(tmp_path / "p.npy", COMB), save(tmp_path / "t.npy", TRUTH)
    out, record = tmp_path / "out", tmp_path / "d.json"
    code, text = overtone(*files, "--out", out, "--json", record, "--fail-on-artifact")
    assert code == 1, text
    assert {path.name for path in out.iterdir()} == {MARKER, "diagnosis.png", "diagnosis.svg"}
    diagnosis = Diagnosis.model_validate_json(record.read_text())
    assert diagnosis.artifact.period == (8, 8)
    assert diagnosis.sentence in text
    assert (diagnosis.prediction, diagnosis.truth) == ("p.npy", "t.npy")
    assert str(tmp_path) not in record.read_text()
    assert json.loads(record.read_text())["machine"]["overtone"]
    assert overtone(*files)[0] == 0
    clean = save(tmp_path / "clean.npy", CLEAN)
    code, text = overtone(clean, files[1], "--fail-on-artifact")
    assert (code, "No grid artifact found (periods 2 to 12, 16, 24 tested)." in text) == (0, True)


def test_layout_field_and_boundary(overtone, tmp_path):
    prediction = save(tmp_path / "p.npy", np.moveaxis(COMB[0], 1, -1))
    truth = save(tmp_path / "t.npy", TRUTH)
    options = ("--layout", "txyc", "--truth-layout", "btcxy", "--field", "channel_1")
    code, text = overtone(prediction, truth, *options, "--boundary", "open,periodic", "--patch", 8)
    assert code == 0, text
    assert "period 8 cells on both axes" in text


def test_blow_up_and_context_are_told(overtone, tmp_path):
    broken = COMB.copy()
    broken[:, 0] = TRUTH[:, 0]
    broken[:, 3] = np.nan
    files = save(tmp_path / "p.npy", broken), save(tmp_path / "t.npy", TRUTH)
    code, text = overtone(*files, "--patch", 8)
    assert code == 0, text
    assert "blows up (NaN or infinite) at step 3." in text
    assert "note: The first 1 frames equal the truth" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no.npy", "t.npy"), "'no.npy' does not exist"),
        (("nowhere", "t.npy"), "'nowhere' does not exist"),
        (("t.npy", "t.npy"), "'t.npy' equals 't.npy'"),
        (("p.npy", "t.npy", "--patch", "49"), "patch 49 does not fit a grid of (48, 48) cells"),
        (("p.npy", "t.npy", "--patch", "big"), "patch is 'big'"),
        (("p.npy", "t.npy", "--patch", "4x4x4"), "one for each of 2 axes"),
        (("p.npy", "t.npy", "--field", "u"), "there is no field 'u'"),
        (("p.npy", "t.npy", "--layout", "xy"), "2 axes for the layout 'xy'"),
        (("p.npy", "t.npy", "--boundary", "round"), "boundary is 'round'"),
        (("half.npy", "t.npy"), "a grid of (48, 24) cells, the truth 't.npy' on (48, 48)"),
        (("flat.npy", "flat2.npy"), "is constant in space"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_two(
    overtone, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "p.npy", COMB)
    save(tmp_path / "t.npy", TRUTH)
    save(tmp_path / "half.npy", COMB[..., :24])
    save(tmp_path / "flat.npy", np.zeros_like(TRUTH))
    save(tmp_path / "flat2.npy", np.ones_like(TRUTH))
    code, text = overtone(*arguments, "--out", "out")
    assert code == 2
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "out").exists()
