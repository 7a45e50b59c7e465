"""The evaluation commands, as a user types them."""

import errno
import html
import json
import re
import shlex
import shutil
from importlib import import_module

import h5py
import numpy as np
import pytest
import torch

from overtone.evaluate.results import KIND, Results
from overtone.evaluate.samples import Samples
from overtone.guard.folders import MARKER, claim

pytest.importorskip("h5py")

import overtone as ot
from overtone.data import Header, WellFolder, write_well
from overtone.report.verdict import verdict


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with two models and a dataset."""
    folder = tmp_path_factory.mktemp("prepared")
    random = np.random.default_rng(0)
    values = random.standard_normal((3, 12, 16, 16), np.float32).cumsum(axis=1)
    header = Header("walk", (16, 16), (1.0, 1.0), "periodic", 0.1)
    write_well(folder / "walk/data/test/a.hdf5", {"u": values}, header)
    domain = WellFolder(folder / "walk", "test").domain
    torch.manual_seed(0)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2, "domain": domain}
    ot.build("axial", patches=(4, 8), **small).save(folder / "flex/best", training={"seed": 5})
    ot.build("axial", tokenizer="fixed", patches=8, **small).save(folder / "fixed")
    return folder


@pytest.fixture
def overtone(overtone, monkeypatch, tmp_path, prepared):
    """Run a command in a copy of the folder."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return overtone


def test_a_patch_that_was_left_out_of_training(overtone, tmp_path):
    words = ("flex", "walk", "--schedule", "2", "--steps", 3)
    few = ("--windows", 3, "--no-report")
    code, text = overtone("evaluate", *words, *few)
    assert (code, "can follow none of the schedules 2" in text) == (2, True)
    code, text = overtone("rollout", *words, "--out", "made")
    assert (code, "allow_untrained" in text) == (2, True)
    assert not (tmp_path / "made").exists()
    code, text = overtone("evaluate", *words, *few, "--allow-untrained")
    assert code == 0, text
    assert "note: model 'flex' was not trained for patch 2" in text
    found = Results.load("evaluation/results.json")
    assert [step.patch for step in found.models[0].next_step] == [4, 8, 2]
    assert "--allow-untrained" in found.command
    code, text = overtone("rollout", *words, "--out", "made", "--allow-untrained")
    assert code == 0, text
    assert WellFolder("made", "test", context=2).num_frames(0) == 5


def test_evaluate_two_models(overtone, tmp_path):
    schedules = ("--schedule", "8", "--schedule", "4-8")
    more = ("--model", "plain=fixed", *schedules, "--steps", 4, "--windows", 6, "--no-report")
    code, text = overtone("evaluate", tmp_path / "flex", tmp_path / "walk", *more)
    assert code == 0, text
    assert "note: schedule 4-8 is left out for model 'plain'" in text
    for word in ("next", "excess", "tokens", "seams", "worst", "flex", "plain", "3 trajectories"):
        assert word in text
    results = Results.load("evaluation/results.json")
    assert f"{results.models[0].runs[1].vrmse_all.value:.4f}" in text
    assert [(m.name, m.seed) for m in results.models] == [("flex", 5), ("plain", None)]
    assert results.command == (
        "overtone evaluate flex walk --model plain=fixed --schedule 8 --schedule 4-8 --split test "
        "--stride 1 --coarsen 1 --start 0 --steps 4 --windows 6 --seed 0 --out evaluation"
    )
    assert str(tmp_path) not in (tmp_path / "evaluation/results.json").read_text()
    samples = Samples.load("evaluation/samples.safetensors")
    assert samples.steps == (1, 2, 3, 4)
    # Again: its own results may be replaced, others not.
    code, _ = overtone("evaluate", "fixed", "walk", "--steps", 2, "--no-report")
    assert (code, Results.load("evaluation/results.json").steps) == (0, 2)
    (tmp_path / "evaluation/results.json").write_text("mine")
    code, text = overtone("evaluate", "fixed", "walk", "--steps", 2, "--no-report")
    assert code == 2
    assert "is not from `overtone evaluate`; it is left alone" in text
    assert (tmp_path / "evaluation/results.json").read_text() == "mine"


def test_the_command_of_a_report_gives_the_same_results(overtone, tmp_path, monkeypatch):
    """Pasted as it is, with spaces and quotes in the names, from the same folder."""
    place = tmp_path / "o'clock [slurm]"
    (tmp_path / "flex").rename(tmp_path / "my model")
    place.mkdir()
    monkeypatch.chdir(place)
    options = ("--schedule", "4-8", "--steps", 3, "--windows", 3, "--no-report", "--seed", 4)
    code, text = overtone("evaluate", "it's=../my model", "../walk", *options, "--out", "first one")
    assert code == 0, text
    assert "it's with schedule 4-8" in text
    assert "wrote first one/results.json" in text
    first = Results.load("first one/results.json")
    assert str(tmp_path) not in first.command
    program, *words = shlex.split(first.command)
    assert program == "overtone"
    code, text = overtone(*words, "--no-report")
    assert code == 0, text
    second = Results.load("first one/results.json")
    assert second.command == first.command
    assert second.models[0].runs[0].vrmse == first.models[0].runs[0].vrmse
    assert second.models[0].runs[0].margins == first.models[0].runs[0].margins


@pytest.mark.usefixtures("undrawn")
def test_the_verdict_comes_first_and_the_animation_is_announced(overtone):
    code, text = overtone("evaluate", "flex", "walk", "--steps", 3, "--windows", 3)
    assert code == 0, text
    said = verdict(Results.load("evaluation/results.json"))
    assert said
    assert text.index(said[0]) < text.index("3 trajectories, 3 steps")
    assert "and the animation evaluation/rollout.gif, which is in the report, too" in text
    code, text = overtone("report", "evaluation", "--animate", "none")
    assert (code, "animation" in text, said[0] in text) == (0, False, True)
    code, text = overtone("report", "evaluation")
    assert (code, "and the animation evaluation/rollout.gif" in text) == (0, True)


def test_what_needs_no_training_is_a_model_by_its_name(overtone, tmp_path):
    options = ("--steps", 3, "--windows", 3, "--no-report")
    code, text = overtone("evaluate", "flex", "walk", "--model", "persistence", *options)
    assert code == 0, text
    asked = Results.load("evaluation/results.json")
    assert [model.name for model in asked.models] == ["flex", "persistence"]
    assert asked.models[1].runs[0].vrmse == asked.yardsticks[0].runs[0].vrmse
    assert asked.models[1].config["name"] == "persistence"
    code, text = overtone("evaluate", "lazy=persistence", "walk", "--model", "extrapolation",
                          *options)  # fmt: skip
    assert code == 0, text
    alone = Results.load("evaluation/results.json")
    assert [model.name for model in alone.models] == ["lazy", "extrapolation"]
    assert alone.models[1].runs[0].vrmse == alone.yardsticks[1].runs[0].vrmse
    code, text = overtone("rollout", "persistence", "walk", "--schedule", "1", "--steps", 2,
                          "--out", "still life")  # fmt: skip
    assert (code, "next: overtone data check 'still life'" in text) == (0, True)
    fields = WellFolder("still life", "test", 1).frames(0, 0, 3).fields
    assert torch.equal(fields[0], fields[2])
    # A folder of that name is what it was before: a model's.
    (tmp_path / "fixed").rename(tmp_path / "persistence")
    code, text = overtone("evaluate", "persistence", "walk", *options)
    assert Results.load("evaluation/results.json").models[0].num_parameters > 0


@pytest.mark.parametrize("name", ["report.html", "results.json", "samples.safetensors"])
def test_files_of_the_users_own_are_left_alone(overtone, tmp_path, name, monkeypatch):
    """Said before anything is computed."""
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / name).write_text("mine")
    monkeypatch.setattr(import_module("overtone.evaluate"), "evaluate", None)
    code, text = overtone("evaluate", "fixed", "walk", "--steps", 2)
    assert (code, "left alone" in text) == (2, True)
    assert files_of(tmp_path / "evaluation") == {tmp_path / "evaluation" / name: b"mine"}


def test_a_picture_of_the_users_own_is_left_alone(overtone, tmp_path, monkeypatch):
    """Which pictures there are is known at the end: the numbers are kept, and nothing else."""
    mine = tmp_path / "evaluation" / "figures" / "rollout_errors.png"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    every, only = import_module("overtone.report.html").drawings, (mine.stem,)
    few = lambda *given: (d for d in every(*given) if d.name in only)  # noqa: E731
    monkeypatch.setattr("overtone.report.html.drawings", few)  # all of them take long
    options = ("--steps", 2, "--windows", 2)
    code, text = overtone("evaluate", "fixed", "walk", *options)
    names = {path.name for path in (tmp_path / "evaluation").iterdir()}
    assert (code, "left alone" in text) == (2, True)
    assert names == {MARKER, "figures", "results.json", "samples.safetensors"}
    assert mine.read_text() == "mine"


def test_a_rollout_that_blows_up_keeps_its_valid_frames(overtone, tmp_path):
    model = ot.load("flex")
    with torch.no_grad():
        for weight in model.tokenizer.parameters():
            weight.mul_(1e4)
    model.save("wild")
    command = ("rollout", "wild", "walk", "--schedule", "8", "--steps", 5000, "--out", "pred")
    code, text = overtone(*command)
    assert code == 3
    found = re.findall(
        r"note: trajectory (\d) blew up at step (\d+) of 5000; the (\d+) frames", text
    )
    assert [row for row, *_ in found] == ["0", "1", "2"]
    assert "wrote pred" in text
    data = WellFolder("pred", "test", 1)
    assert [data.num_frames(row) - 2 for row in range(3)] == [int(n) for *_, n in found]
    assert all(int(step) == int(n) + 1 for _, step, n in found)
    for row in range(3):
        assert bool(data.frames(row, 0, data.num_frames(row)).fields.isfinite().all())
    data.close()
    assert overtone("data", "check", "pred")[0] == 0


HOSTILE = "[/x]$\\oops$[bold]\x1b[2J\u202e<script>alert(1)<\\script>\udcff"
SAID = "[/x]$\\oops$[bold]\\x1b[2J\\u202e<script>alert(1)<\\script>\\xff"


def test_hostile_names_from_the_command_to_the_page(overtone, tmp_path):
    """Those of a model, a dataset, a field and a parameter."""
    field = HOSTILE.replace("\udcff", "").replace("[/x]", "[x]")  # no path to another field
    with h5py.File("walk/data/test/a.hdf5", "r+") as file:
        file.attrs["dataset_name"] = field
        file.attrs[field] = 1.0
        file.attrs["simulation_parameters"] = [field]
        file.move("t0_fields/u", f"t0_fields/{field}")
        file["t0_fields"].attrs["field_names"] = [field]
    domain = WellFolder("walk", "test").domain
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2, "domain": domain}
    ot.build("axial", tokenizer="fixed", patches=8, **small).save("model")
    options = ("--steps", 2, "--windows", 2)
    code, text = overtone("evaluate", f"{HOSTILE}=model", "walk", *options)
    assert code == 0, text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert SAID in text
    page = (tmp_path / "evaluation/report.html").read_text()
    assert html.escape(SAID) in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert len(list((tmp_path / "evaluation/figures").iterdir())) > 10


OUTPUTS = [
    ("evaluate", "flex", "walk", "--steps", 2, "--out", "{}"),
    ("rollout", "flex", "walk", "--schedule", "8", "--steps", 2, "--out", "{}"),
    ("report", "old", "--out", "{}"),
    ("theory", "16", "--out", "{}/t.png"),
    ("diagnose", "walk", "walk", "--out", "{}"),
    ("diagnose", "walk", "walk", "--json", "{}/d.json"),
    ("demo", "--out", "{}"),
]


@pytest.mark.parametrize("arguments", OUTPUTS, ids=lambda a: f"{a[0]} {a[-2]}")
@pytest.mark.parametrize("place", ["mine.txt/below", "sealed/new"])
def test_places_that_cannot_be_written_are_told_before_anything_is_computed(
    overtone, tmp_path, monkeypatch, arguments, place
):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    def compute(*_, **__):
        pytest.fail("computed before the place was tried")

    for name in ("evaluate.evaluate", "evaluate.write_predictions", "evaluate.diagnose.diagnose",
                 "report.write_report", "report.figures.theory.harmonics",
                 "cli.demo.data_folder"):  # fmt: skip
        room, _, what = name.rpartition(".")
        monkeypatch.setattr(import_module(f"overtone.{room}"), what, compute)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "sealed").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "old/results.json").write_text("{}")
    if place.startswith("sealed"):
        monkeypatch.setattr("overtone.guard.limits.NamedTemporaryFile", refuse)
    before = sorted(tmp_path.rglob("*"))
    code, text = overtone(*(str(word).format(place) for word in arguments))
    assert code == 2, text
    assert "nothing can be written to" in text
    assert "Nothing was computed" in text
    assert sorted(tmp_path.rglob("*")) == before


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left")])
@pytest.mark.parametrize("old", [True, False])
def test_an_evaluation_that_ends_early_leaves_the_old_one_whole(
    overtone, tmp_path, monkeypatch, error, old
):
    """Where there is no old one, the numbers are kept: they took long, and mix with nothing."""

    def fail(*_, **__):
        raise error

    command = ("evaluate", "fixed", "walk", "--steps", 2, "--windows", 2)
    folder = tmp_path / "evaluation"
    if old:
        assert overtone(*command, "--no-report")[0] == 0
        claim(folder, KIND).file("report.html").write_text("the old page")
    before = files_of(folder)
    monkeypatch.setattr("overtone.report.html.page", fail)
    monkeypatch.setattr("overtone.report.html.drawings", lambda *_: ())
    code, text = overtone(*command, "--seed", 1)
    assert code != 0
    if old:
        assert files_of(folder) == before
    else:
        assert {path.name for path in folder.iterdir()} == {
            MARKER,
            "results.json",
            "samples.safetensors",
        }
    if isinstance(error, OSError):
        assert "No space left" in text


def test_a_full_disk_is_told_with_the_file_and_keeps_the_old_ones(overtone, tmp_path, full_disk):
    command = ("evaluate", "fixed", "walk", "--steps", 2, "--windows", 2, "--no-report")
    assert overtone(*command)[0] == 0
    before = files_of(tmp_path / "evaluation")
    with full_disk(1000):
        code, text = overtone(*command, "--seed", 1)
    assert code != 0
    assert "results.json" in text
    assert files_of(tmp_path / "evaluation") == before


def test_rollout_and_check(overtone, tmp_path):
    command = ("rollout", "flex", "walk", "--schedule", "4-8+shift", "--steps", 7, "--out", "pred")
    code, text = overtone(*command, "--start", 3, "--trajectories", 2)
    assert code == 0, text
    code, text = overtone("data", "check", "pred")
    assert code == 0
    assert "0 errors" in text
    data = WellFolder("pred", "test", 2, whole=True)
    window, predicted = data[1]
    truth = WellFolder("walk", "test").frames(1, 3, 2)
    assert torch.equal(window.fields, truth.fields)
    model = ot.Emulator.from_pretrained("flex")
    start = ot.Window(truth.fields[None], truth.domain)
    schedule = ot.parse_schedule("4-8+shift")
    frames = torch.cat([*ot.rollout(model, start, steps=7, schedule=schedule)])
    assert torch.allclose(predicted, frames, rtol=1e-4, atol=1e-5)
    code, text = overtone(*command)
    assert code == 2
    assert "'pred' exists" in text
    assert overtone(*command, "--overwrite")[0] == 0
    assert WellFolder("pred", "test").num_trajectories == 3


def test_theory(overtone, tmp_path):
    code, text = overtone("theory", "4-8-16", "--steps", 12, "--shape", "32x64", "--out", "t.png")
    assert code == 0, text
    assert "12 steps on 32x64: 672 tokens" in text
    assert "All harmonics stay coherent." in text
    assert (tmp_path / "t.png").stat().st_size > 10_000
    code, text = overtone("theory", "16", "--persistence", 0.5)
    assert (code, "random walk" in text) == (0, True)
    assert (tmp_path / "theory.png").stat().st_size > 10_000


def test_theory_at_forty_columns(overtone, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    code, text = overtone("theory", "4-8", "--steps", 6)
    assert code == 0
    assert "f: 1/8\nexcited by: 8\nsteps: 3\ncoherence: 1.000\n" in text
    assert "…" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "nothing", "walk"), "'nothing' does not exist"),
        (("evaluate", "a=nothing", "walk"), "'nothing' does not exist"),
        (("evaluate", "=", "walk"), "expected PATH or NAME=PATH"),
        (("evaluate", "flex", "nowhere"), "'nowhere' does not exist"),
        (("evaluate", "flex", "walk", "--split", "tset"), "did you mean 'test'"),
        (("evaluate", "flex", "walk", "--steps", "11"), "leaves 10 steps"),
        (("evaluate", "flex", "walk", "--schedule", "16", "--steps", "4"), "knows patch"),
        (("evaluate", "flex", "walk", "--schedule", "x", "--steps", "4"), "can't be read"),
        (("evaluate", "flex", "walk", "--coarsen", "two"), "coarsen is 'two'"),
        (("evaluate", "flex", "walk", "--out", "fixed/config.json"), "is a file; expected a"),
        (("evaluate", "fixed", "walk", "--model", "fixed"), "two models are called 'fixed'"),
        (("rollout", "flex", "walk", "--schedule", "16", "--out", "x"), "not trained for"),
        (("theory", "4-8-x"), "can't be read"),
        (("theory", "16", "--shape", "8x8"), "does not fit axis 0 of 8 cells"),
        (("theory", "16", "--shape", "big"), "shape is 'big'"),
    ],
)
def test_mistakes_are_one_message_and_exit_code_two(overtone, tmp_path, arguments, message):
    before = sorted(tmp_path.rglob("*"))
    code, text = overtone(*arguments)
    assert code == 2, text
    assert message in " ".join(text.split())
    assert "Traceback" not in text
    assert sorted(tmp_path.rglob("*")) == before


def test_results_are_plain_json(overtone):
    assert overtone("evaluate", "fixed", "walk", "--steps", 2, "--no-report", "--out", "e")[0] == 0
    with open("e/results.json") as file:
        assert json.load(file)["format"] == "overtone-results-1"
