"""The models that come with the package do what their cards say."""

import json
from pathlib import Path

import pytest
import torch

import overtone as ot
from overtone.models import storage
from overtone.models.storage import PACKAGED, pretrained_folder, pretrained_names
from overtone.train.recipes import recipe
from studies.package import prove

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "results" / "models.json"


def proofs():
    return json.loads(PROOFS.read_text())["models"]


def test_a_name_finds_its_folder_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()
    monkeypatch.setattr(storage, "PACKAGED", tmp_path)
    assert pretrained_names() == ["tiny"]
    assert pretrained_folder("tiny") == tmp_path / "tiny"
    assert pretrained_folder("../tiny") is None
    assert pretrained_folder("") is None


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(ot.CheckpointError, match="did you mean 'shear-flow-mini-csm'"):
        ot.Emulator.from_pretrained("shear-flow-mini-cms")


def test_every_model_has_a_card_a_log_and_a_proof():
    assert set(pretrained_names()) == set(proofs())
    for name in pretrained_names():
        assert (PACKAGED / name / "metrics.jsonl").read_text().count('"valid"') >= 1
        text = (PACKAGED / name / "README.md").read_text()
        for word in ("license:", "fields", "units", "boundaries", "FLOPs", "VRMSE is", "Limits"):
            assert word in text


def test_all_models_together_stay_small():
    total = sum(path.stat().st_size for path in PACKAGED.rglob("*") if path.is_file())
    assert total < 12e6


@pytest.mark.parametrize("name", pretrained_names())
def test_every_model_loads_by_its_name_and_steps(name):
    model = ot.Emulator.from_pretrained(name)
    domain = model.domain
    fields = torch.randn(1, model.context, len(domain.fields), *domain.shape)
    for patch in model.patches:
        frame = model(ot.Window(fields, domain), patch)
        assert frame.shape == fields[:, -1].shape
        assert frame.dtype == torch.float32
        assert bool(frame.isfinite().all())


QUICK = "shear-flow-mini-csm"  # of several patches, under the cycle of all
OTHERS = [pytest.param(n, marks=pytest.mark.slow) for n in pretrained_names() if n != QUICK]


@pytest.mark.parametrize("name", [QUICK, *OTHERS])
def test_a_model_does_on_fresh_data_what_was_stored(name, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERTONE_CACHE", str(tmp_path))
    stored = proofs()[name]
    config = json.loads((PACKAGED / name / "config.json").read_text())
    found = prove(name, recipe(config["training"]["recipe"]))
    if name == QUICK:
        assert {"next step, 4", "next step, 8", "next step, 16", "rollout, 4-8-16"} == {
            *found["vrmse"]
        }
    assert found["data"] == stored["data"]
    assert found["vrmse"] == pytest.approx(stored["vrmse"], rel=0.02)
