"""Folders as earlier versions wrote them."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import overtone as ot
from overtone.files import sha256
from overtone.models.compat import modern_config


def rewrite(folder, *, config=lambda content: content, drop=()):
    """Make a folder what another version, or somebody's hand, would have written."""
    weights = folder / "model.safetensors"
    save_file({k: v for k, v in load_file(weights).items() if k not in drop}, weights)
    content = json.loads((folder / "config.json").read_text()) | {"sha256": sha256(weights)}
    (folder / "config.json").write_text(json.dumps(config(content)))


def first_version(content):
    numbers = ("window", "mode_blocks", "refine", "time", "skip", "mlp")
    older = {k: v for k, v in content["architecture"].items() if k not in numbers}
    return {k: v for k, v in content.items() if k != "kind"} | {"architecture": older}


def test_the_first_folders_had_no_kind_no_pace_and_fewer_numbers(make_model, make_window, tmp_path):
    model = make_model(mode_blocks=8, time="attend")
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", config=first_version, drop=("pace",))
    loaded, window = ot.load(tmp_path / "m"), make_window(model.domain)
    assert loaded.architecture == model.architecture
    assert torch.equal(loaded.pace, torch.zeros(2))
    assert torch.equal(loaded(window, 8), model(window, 8))


def test_folders_of_version_0_1_had_no_scale(make_model, make_window, tmp_path):
    model = make_model()
    model.pace.fill_(0.1)
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", config=lambda content: content | {"overtone": "0.1.0"}, drop=("scale",))
    loaded, window = ot.load(tmp_path / "m"), make_window(model.domain)
    assert torch.equal(loaded.scale, torch.zeros(2))
    assert torch.equal(loaded(window, 8), model(window, 8))


def test_a_baseline_of_its_old_name_loads(make_domain, tmp_path):
    model = ot.baseline("afno_net", domain=make_domain(), context=2, size="mini")
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", config=lambda content: content | {"name": "afno"})
    assert ot.load(tmp_path / "m").name == "afno_net"


@pytest.mark.parametrize("time", ["fold", "attend"])
def test_what_is_modern_stays_as_it_is(make_model, time):
    content = make_model(window=4, mode_blocks=4, refine=3, time=time).blueprint()
    assert modern_config(content) == content


@pytest.mark.parametrize("kind", ["emulatr", "diffusion", None])
def test_an_unknown_kind_is_no_emulator(make_model, tmp_path, kind):
    make_model().save(tmp_path / "m")
    rewrite(tmp_path / "m", config=lambda content: content | {"kind": kind})
    with pytest.raises(
        ot.CheckpointError, match=f"holds a model of kind {kind!r}.*this version kn"
    ):
        ot.load(tmp_path / "m")
