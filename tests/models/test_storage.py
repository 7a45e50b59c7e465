"""One function for every saved model."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import overtone as ot
from overtone.models import storage
from overtone.models.processors import PROCESSORS


@pytest.fixture
def folder(tmp_path, make_model):
    make_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("tokenizer", ["csm", "ckm", "fixed"])
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("time", ["fold", "attend"])
def test_save_and_load_are_bit_exact(tmp_path, make_model, make_window, tokenizer, processor, time):
    patches = (8,) if tokenizer == "fixed" else (4, 8)
    model = make_model(processor=processor, tokenizer=tokenizer, patches=patches, time=time)
    model.save(tmp_path / "a" / "model")
    again = ot.Emulator.from_pretrained(tmp_path / "a" / "model")
    assert again.architecture == model.architecture
    window = make_window(model.domain)
    assert torch.equal(model(window, patch=8), again(window, patch=8))
    assert not again.training


def test_the_folder_holds_nothing_else_and_no_code(folder):
    assert sorted(file.name for file in folder.iterdir()) == [
        ".overtone.json",
        "config.json",
        "model.safetensors",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_saving_again_replaces(folder, make_model):
    model = make_model()
    model.save(folder)
    loaded = ot.Emulator.from_pretrained(folder)
    assert torch.equal(loaded.processor.norm.weight, model.processor.norm.weight)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_failed_save_leaves_the_old_model(folder, make_model, monkeypatch):
    before = (folder / "model.safetensors").read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(storage, "sha256", fail)
    with pytest.raises(OSError, match="no space"):
        make_model().save(folder)
    monkeypatch.undo()
    assert (folder / "model.safetensors").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_model_that_was_put_aside_by_a_killed_process_is_found(folder):
    """The moment between two renames, on systems that can't exchange names in one step."""
    folder.rename(folder.parent / ".model-replaced.tmp")
    assert storage.find_model(folder) == folder
    best = folder.rename(folder.parent / "best")
    best.rename(folder.parent / ".best-replaced.tmp")
    assert storage.find_model(folder.parent) == best
    assert [path.name for path in folder.parent.iterdir()] == ["best"]


def test_other_folders_are_not_overwritten(tmp_path, make_model):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ot.CheckpointError, match="not one that Overtone marked"):
        make_model().save(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("name", ["model.pt", "weights.pth", "x.ckpt", "y.pkl"])
def test_pickle_file_is_refused_unopened(tmp_path, name):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was executed",))

    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    for path in (tmp_path / name, tmp_path):
        with pytest.raises(ot.CheckpointError, match="is a pickle file.*expected a folder"):
            ot.Emulator.from_pretrained(path)


def test_missing_folder_and_file_instead_of_folder(tmp_path, folder):
    with pytest.raises(ot.CheckpointError, match="does not exist"):
        ot.Emulator.from_pretrained(tmp_path / "nothing")
    with pytest.raises(ot.CheckpointError, match="is a file; expected the folder"):
        ot.Emulator.from_pretrained(folder / "model.safetensors")
    with pytest.raises(ot.CheckpointError, match=r"has no config\.json"):
        (tmp_path / "empty").mkdir()
        ot.Emulator.from_pretrained(tmp_path / "empty")


def edit(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["architecture"].update(width=48), "do not match its configuration.*other sha"),
        (lambda c: c["architecture"].update(blocks=3), "missing .*blocks.2"),
        (lambda c: c["architecture"].update(colour="red"), r"unknown keys \['colour'\]"),
        (lambda c: c["architecture"].pop("width"), r"lacks \['width'\]"),
        (lambda c: c["architecture"].update(processor="swim"), "processor is 'swim'"),
        (lambda c: c.pop("architecture"), "does not fit"),
        (lambda c: c.update(format="overtone-emulator-9"), "this version reads"),
        (lambda c: c.pop("format"), "can't be read"),
    ],
)
def test_configuration_that_does_not_match(folder, change, message):
    edit(folder, change)
    with pytest.raises(ot.CheckpointError, match=message):
        ot.Emulator.from_pretrained(folder)


def test_damaged_files(folder):
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["processor.norm.bias"] += 1
    save_file(weights, path)
    with pytest.raises(ot.CheckpointError, match="SHA-256 differs"):
        ot.Emulator.from_pretrained(folder)
    path.write_bytes(path.read_bytes()[:100])
    edit(folder, lambda c: c.update(sha256=storage.sha256(path)))
    with pytest.raises(ot.CheckpointError, match=r"model\.safetensors' can't be read"):
        ot.Emulator.from_pretrained(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ot.CheckpointError, match=r"config\.json' can't be read"):
        ot.Emulator.from_pretrained(folder)


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


def test_saving_replaces_a_model_and_nothing_else(folder, make_model, tmp_path, monkeypatch):
    model = make_model()
    model.save(folder)  # its own: replaced
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(ot.CheckpointError, match="did not write: 'thesis.tex'"):
        model.save(folder)
    own = tmp_path / "own"
    own.mkdir()
    (own / "config.json").write_text("{}")
    with pytest.raises(ot.CheckpointError, match="not one that Overtone marked"):
        model.save(own)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(ot.CheckpointError, match="the working directory"):
        model.save(".")
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert (own / "config.json").read_text() == "{}"


def test_a_fingerprint_knows_the_model_again_and_no_other(make_model, tmp_path):
    model = make_model()
    own = storage.fingerprint(model)
    model.save(tmp_path / "m")
    assert storage.fingerprint(ot.load(tmp_path / "m")) == own
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] += 1e-3
    assert storage.fingerprint(model) != own
    model.load_state_dict(ot.load(tmp_path / "m").state_dict())
    assert storage.fingerprint(model) == own
    model.pace[0] += 1  # buffers change predictions, too
    assert storage.fingerprint(model) != own
    assert storage.fingerprint(object()) == storage.fingerprint(object()) != storage.fingerprint([])


def test_a_name_is_a_packaged_model_then_a_folder(make_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(storage, "PACKAGED", tmp_path / "packaged")
    make_model(tokenizer="ckm").save(tmp_path / "packaged" / "tiny")
    make_model().save(tmp_path / "tiny")
    with pytest.warns(UserWarning, match="'tiny' is the packaged model .* write './tiny'"):
        assert ot.load("tiny").config["tokenizer"] == "ckm"
    assert ot.load("./tiny").config["tokenizer"] == "csm"
    assert ot.load(Path("tiny")).config["tokenizer"] == "csm"
    assert ot.Emulator.from_pretrained("./tiny").config["tokenizer"] == "csm"
    assert storage.locate_model("./tiny").said == "a folder"
    (tmp_path / "tiny").rename(tmp_path / "other")
    assert storage.locate_model("tiny").said == "a packaged model"


def test_only_a_text_can_be_a_repository(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(storage, "download", None)
    with pytest.raises(ot.CheckpointError, match="'runs/mine' does not exist"):
        ot.load(Path("runs/mine"))


def test_revisions_are_of_repositories(folder):
    with pytest.raises(ot.CheckpointError, match="a folder, which has no revisions"):
        ot.load(folder, revision="v1")
    with pytest.raises(ot.CheckpointError, match="a packaged model, which has no revisions"):
        ot.load("shear-flow-mini-csm", revision="v1")


def test_a_missing_folder_suggests_its_neighbour(make_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_model().save(tmp_path / "runs" / "shear")
    for name in ("runs/shaer", Path("runs/shaer")):
        with pytest.raises(ot.CheckpointError, match="did you mean 'runs/shear'"):
            ot.load(name)


def test_a_model_knows_the_folder_that_it_was_read_from(folder, make_model):
    assert make_model().source is None
    assert ot.load(folder).source == ot.Emulator.from_pretrained(folder).source == folder


def test_a_card_is_a_part_of_the_folder(make_model, tmp_path):
    make_model().save(tmp_path / "it", card="# it\n")
    assert (tmp_path / "it" / "README.md").read_text() == "# it\n"
    make_model().save(tmp_path / "it")  # it is ours, and goes with the model that it told of
    assert not (tmp_path / "it" / "README.md").exists()
