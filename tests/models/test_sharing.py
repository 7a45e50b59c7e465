"""What of a model goes to the hub: its weights, and only what is true of them."""

import json
from dataclasses import replace

import pytest
import torch

import overtone as ot
from overtone.errors import CheckpointError
from overtone.models.calibration import Band, Calibration
from overtone.models.storage import save_calibration
from tests.hub_stand_in import TOKEN

NAME = "acme/waves"
CARD = '---\nlicense: unknown\nlibrary_name: overtone\n---\n# run\n\nmodel = ot.load("run")\n'


@pytest.fixture
def sent(hub, monkeypatch):
    """The files of the repository as they are now."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    def files(branch="main"):
        repo = hub.repos[NAME]
        held = dict(repo.commits[repo.refs[branch]])
        held.pop(".gitattributes", None)
        return held

    return files


@pytest.fixture
def run(make_model, tmp_path):
    """The folder of a run: a model with a card, and a log that names a folder of this machine."""
    make_model().save(tmp_path / "run" / "best", training={"seed": 3}, card=CARD)
    lines = [
        {"kind": "train", "update": 1, "loss": 1.0},
        {"kind": "resume", "update": 1, "changed": {"data.path": {"before": "/home/me/data"}}},
        {"kind": "valid", "update": 2},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "run" / "metrics.jsonl").write_text(text + "{damaged\n")
    return tmp_path / "run"


def test_a_model_comes_back_as_it_was(sent, make_model, make_window):
    model = make_model()
    model.pace.fill_(0.3)
    pinned = model.push_to_hub(NAME)
    assert {*sent()} == {"config.json", "model.safetensors", "README.md"}
    window = make_window(model.domain)
    for again in (ot.load(NAME), ot.Emulator.from_pretrained(pinned)):
        assert torch.equal(again(window, 8), model(window, 8))
    assert pinned.startswith(f"{NAME}@")
    assert b'ot.load("acme/waves")' in sent()["README.md"]
    assert b"Nothing is recorded of its training" in sent()["README.md"]


def test_the_card_and_the_log_of_a_run_go_along_and_no_folder_of_this_machine(sent, run):
    ot.load(run).push_to_hub(NAME, license="mit")
    files = sent()
    best = run / "best"
    for name in ("config.json", "model.safetensors"):
        assert files[name] == (best / name).read_bytes()
    card = CARD.replace("run", NAME).replace("unknown", "mit")
    assert files["README.md"].decode() == card
    kinds = [json.loads(line)["kind"] for line in files["metrics.jsonl"].splitlines()]
    assert kinds == ["train", "valid"]
    assert not any(b"/home/me" in content for content in files.values())


def test_what_was_calibrated_stays_so(sent, run):
    """That of the folder, and one that was measured since."""
    model = ot.load(run)
    band = Band.measure(torch.ones(20, 3, 2), torch.ones(20, 3, 2))
    found = Calibration(model.digest, (32, 48), ("a", "b"), {"8": 0.1}, {("8", "patch"): band}, {})
    save_calibration(run / "best", found)
    ot.load(run).push_to_hub(NAME)
    assert sent()["calibration.json"] == (run / "best" / "calibration.json").read_bytes()
    model.calibration = replace(found, errors={"8": 0.2})
    model.push_to_hub(NAME)
    assert ot.load(NAME).calibration.errors == {"8": 0.2}


def test_weights_that_changed_since_get_no_card_of_others(sent, run):
    model = ot.load(run)
    with torch.no_grad():
        next(iter(model.parameters())).add_(1.0)
    model.push_to_hub(NAME)
    assert {*sent()} == {"config.json", "model.safetensors", "README.md"}
    assert b"Nothing is recorded" in sent()["README.md"]
    assert json.loads(sent()["config.json"])["training"] == {}
    again = ot.load(NAME).state_dict()
    assert all(torch.equal(again[name], value) for name, value in model.state_dict().items())


def test_a_folder_that_is_gone_or_another_tells_nothing(sent, run, make_model):
    model = ot.load(run)
    torch.manual_seed(1)
    make_model().save(run / "best", card="# another\n")
    model.push_to_hub(NAME)
    assert b"Nothing is recorded" in sent()["README.md"]
    (run / "best" / "config.json").unlink()
    model.push_to_hub(NAME)
    assert b"Nothing is recorded" in sent()["README.md"]


def test_half_precision_stays_half_precision(sent, make_model, tmp_path):
    model = make_model()
    halves = {name: tensor.half() for name, tensor in model.state_dict().items()}
    model.save(tmp_path / "half", weights=halves, card=CARD)
    ot.load(tmp_path / "half").push_to_hub(NAME)
    assert sent()["model.safetensors"] == (tmp_path / "half" / "model.safetensors").read_bytes()


def test_a_card_may_be_given(sent, run):
    ot.load(run).push_to_hub(NAME, card="---\nlicense: mit\n---\n# Waves\n", message="Waves")
    assert sent()["README.md"] == b"---\nlicense: mit\n---\n# acme/waves\n"
    assert json.loads(sent()["config.json"])["training"] == {"seed": 3}


def test_a_branch_and_a_private_repository(sent, hub, make_model):
    model = make_model()
    model.push_to_hub(f"{NAME}@next", private=True)
    assert hub.repos[NAME].private
    assert "config.json" in sent("next")
    assert not sent()
    model.push_to_hub(NAME, revision="other")
    assert "config.json" in sent("other")


def test_a_name_that_is_none(sent, hub, make_model):
    for name in ("waves", "./acme/waves", "acme/waves/best"):
        with pytest.raises(CheckpointError, match="names no repository; expected org/name"):
            make_model().push_to_hub(name)
    assert not hub.asked


def test_pushing_what_came_from_the_hub(sent, hub, run):
    ot.load(run).push_to_hub(NAME)
    before = sent()
    ot.load(NAME).push_to_hub("acme/copies")
    repo = hub.repos["acme/copies"]
    after = repo.commits[repo.refs["main"]]
    assert after["model.safetensors"] == before["model.safetensors"]
    assert after["README.md"] == before["README.md"].replace(b"waves", b"copies")
