"""`overtone train` as it is typed, and `overtone info` on what it left."""

import errno
import re
import shlex

import pytest

from overtone.solvers.datasets import build_system, generate
from overtone.train.journal import read_journal
from overtone.train.recipes import recipe
from overtone.train.settings import load_config


def test_the_recipes_are_listed_and_shown(overtone):
    code, text = overtone("train", "list")
    assert (code, "shear-flow-mini" in text.splitlines()) == (0, True)
    code, text = overtone("train", "shear-flow-7m", "train.max_minutes=30", "--show")
    assert (code, "max_minutes: 30.0" in text) == (0, True)


def test_mistakes_are_one_message_and_code_2(overtone, tmp_path):
    for arguments, message in (
        (["shear-flo-mini"], "did you mean 'shear-flow-mini'"),
        (["shear-flow-mini", "train.bach=3"], "did you mean 'train.batch'"),
        (["shear-flow-7m", f"data.path={tmp_path}/none"], "none"),
    ):
        code, text = overtone("train", *arguments, "--out", tmp_path / "run")
        assert code == 2, text
        assert message in text
        assert "Traceback" not in text


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    """Somebody's own data: 4 trajectories of 20 frames on 64 cells."""
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = tmp_path_factory.mktemp("own") / "my waves"
    return generate(system, folder, trajectories=4, steps=20, splits=(0.5, 0.25, 0.25))


TINY = ("model.width=16", "model.heads=2", "model.blocks=1", "model.mlp_dim=16", "train.threads=1",
        "valid.windows=2", "valid.rollouts=1", "log.tensorboard=false")  # fmt: skip


def test_a_recipe_for_any_data(overtone, waves, tmp_path, monkeypatch):
    """Five lines first, ten validations, and at the end a command that works as it stands."""
    monkeypatch.chdir(tmp_path)
    code, text = overtone("train", "mine", "--data", waves, "train.updates=20", *TINY)
    assert code == 0, text
    words = ("data ", "patches ", "model ", "updates ", "budget ")
    assert all(map(str.startswith, text[text.index("data ") :].splitlines(), words))
    assert text.index("budget ") < text.index("update 2  valid VRMSE")
    valid = [x for x in read_journal(tmp_path / "runs/mine/metrics.jsonl") if x["kind"] == "valid"]
    assert [line["update"] for line in valid] == list(range(2, 21, 2))
    (command,) = re.findall(r"^next: overtone (.*)$", text, flags=re.M)
    words = shlex.split(command)
    assert words[:3] == ["evaluate", "runs/mine", str(waves)]
    code, text = overtone(*words, "--no-report", "--windows", 2)
    assert code == 0, text


def test_ten_validations_in_a_budget_of_minutes_too(overtone, waves, tmp_path):
    options = ("--minutes", 0.01, "--out", tmp_path / "run", "model.patches=[4]")
    code, text = overtone("train", "mine", "--data", waves, *options, *TINY)
    assert code == 0, text
    assert "budget   0.01 min of training, validated at 10 points of it" in text
    assert "patches  4: as set" in text
    assert re.search(r"^0\.0/0\.01 min ETA 0:00:00 loss", text, flags=re.M)
    valid = [x for x in read_journal(tmp_path / "run/metrics.jsonl") if x["kind"] == "valid"]
    assert 2 <= len(valid) <= 10


def test_it_goes_on_as_it_began_wherever_it_is_resumed(overtone, waves, tmp_path, monkeypatch):
    """Another machine would choose otherwise, and the data need not be named again."""
    out = ("--out", tmp_path / "run")
    assert overtone("train", "mine", "--data", waves, "train.updates=4", *TINY, *out)[0] == 0
    monkeypatch.setattr("overtone.train.suit.torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("overtone.train.parallel.torch.cuda.is_available", lambda: False)
    code, text = overtone("train", "mine", "--resume", "train.updates=6", *out)
    assert code == 0, text
    assert "resuming from update 4" in text
    assert load_config(tmp_path / "run/config.json").train.batch == 4


def test_data_and_minutes_are_settings_of_every_recipe(overtone, waves):
    code, text = overtone("train", "shear-flow-mini", "--data", waves, "--minutes", 3, "--show")
    assert (code, "max_minutes: 3.0" in text, f"path: {waves}" in text) == (0, True, True)
    code, text = overtone("train", "mine", "--data", waves, "train.updates_per_patch=7", "--show")
    assert (code, "updates_per_patch: 7\n  updates: null\n  max_minutes: null" in text) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine"], "give --data FOLDER"),
        (["mine", "--data", "nowhere"], "nowhere"),
        (["mine", "--data", "DATA", "data.fields=[vorticity]"], "has no field 'vorticity'"),
        (["mine", "--data", "DATA", "train.batch=64"], "train.batch is 64; there are 24 windows"),
        (["mine", "--data", "DATA", "model.patches=[128]"], "patch 128 does not fit axis 0"),
        (["mine", "--data", "DATA", "log.wandb=true"], "wandb is not installed"),
        (["mine", "--data", "DATA", "valid.rollout_steps=50"], "20 frames"),
    ],
    ids=lambda part: part[-1] if isinstance(part, list) else "",
)
def test_a_start_that_fails_leaves_no_folder(
    overtone, waves, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    code, text = overtone("train", *(str(waves) if a == "DATA" else a for a in arguments), *TINY)
    assert code == 2, text
    assert message in text
    assert "update 1" not in text
    assert list(tmp_path.iterdir()) == []


def damaged_run(folder, lines):
    folder.mkdir()
    (folder / "config.json").write_text(recipe("shear-flow-mini").model_dump_json())
    (folder / "metrics.jsonl").write_text(lines)
    return folder


@pytest.mark.filterwarnings("default")
def test_info_on_a_damaged_run(overtone, tmp_path):
    run = damaged_run(tmp_path / "[bold]run", '{"kind": "tr\n[]\n')
    code, text = overtone("info", run)
    assert code == 0, text
    assert text.count("warning: ") == 1
    assert "2 of 2 lines can't be read and are left out (line 1: " in text
    assert ["curves", "none", "yet"] in [line.split() for line in text.splitlines()]


def test_info_where_nothing_can_be_drawn(overtone, tmp_path, monkeypatch):
    line = '{"kind": "train", "update": 1, "loss": 1, "losses": {"4": 1}, "lr": 1, "seconds": 1, '
    run = damaged_run(tmp_path / "[bold]run", line + '"flops": 1}\n')
    code, text = overtone("info", run)
    assert (code, "[bold]run/curves.png" in text) == (0, True)

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system", "curves.png")

    monkeypatch.setattr("overtone.report.style.save", refuse)
    code, text = overtone("info", run)
    assert (code, "not drawn: Read-only file system: 'curves.png'" in text) == (0, True)
