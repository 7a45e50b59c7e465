"""One function for every saved model."""

import pytest
import torch

import overtone as ot


def test_an_emulator_comes_back(tmp_path, make_model, make_window):
    model = make_model()
    model.save(tmp_path / "model")
    again = ot.load(tmp_path / "model")
    assert isinstance(again, ot.Emulator)
    window = make_window(model.domain)
    assert torch.equal(again(window, 8), model(window, 8))


def test_a_baseline_comes_back_also_from_the_folder_of_a_run(tmp_path, make_domain):
    ot.baseline("unet", domain=make_domain(), size="mini", width=4).save(tmp_path / "run" / "best")
    for path in (tmp_path / "run" / "best", str(tmp_path / "run")):
        again = ot.load(path)
        assert isinstance(again, ot.Baseline)
        assert again.name == "unet"


def test_an_emulators_reader_refuses_a_baseline_and_the_other_way_round(
    tmp_path, make_domain, make_model
):
    ot.baseline("persistence", domain=make_domain()).save(tmp_path / "baseline")
    make_model().save(tmp_path / "emulator")
    with pytest.raises(ot.CheckpointError, match="does not fit"):
        ot.Emulator.from_pretrained(tmp_path / "baseline")
    with pytest.raises(ot.CheckpointError, match="does not hold a baseline"):
        ot.Baseline.from_pretrained(tmp_path / "emulator")


def test_what_is_no_model(tmp_path):
    with pytest.raises(ot.CheckpointError, match="does not exist"):
        ot.load(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("[1")
    with pytest.raises(ot.CheckpointError, match=r"has no model\.safetensors"):
        ot.load(tmp_path)
