"""The page of a training run, from its folder alone."""

import io
import json
import re

import pytest
import torch
from rich.console import Console

import overtone as ot
from overtone.domain import Domain
from overtone.report import run as pages
from overtone.report.run import write_run_report
from overtone.train import follow
from overtone.train.journal import METRICS
from overtone.train.recipes import recipe
from overtone.train.validate import Glimpse


@pytest.fixture
def run(tmp_path):
    """The folder of a run of four validations, the third one the best."""
    folder = tmp_path / "a run"
    folder.mkdir()
    (folder / "config.json").write_text(recipe("shear-flow-mini").model_dump_json())
    lines = []
    for i, score in enumerate((0.5, 0.3, 0.2, 0.25), start=1):
        common = {"update": 10 * i}
        lines.append({"kind": "train", **common, "loss": 1 / i, "losses": {"4": 1 / i, "16": 2 / i},
                      "lr": 1e-3, "seconds": 60.0 * i, "flops": i * 10**14,
                      "updates_per_second": 5.0, "waiting_for_data": 0.25})  # fmt: skip
        lines.append({"kind": "valid", **common, "vrmse": {"4": score / 2, "16": score},
                      "rollout": score, "rollout_steps": 5, "patches": {"4": 5 * i, "16": 5 * i},
                      "yardsticks": {"persistence": {"vrmse": 0.4, "rollout": 0.6}}})  # fmt: skip
    (folder / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def make_glimpse():
    def make(ndim=2, fields=("tracer", "<b>pressure</b>"), schedule="4-8-16"):
        domain = Domain((16,) * ndim, (1.0,) * ndim, "periodic", fields, 0.1)
        frames = torch.rand(2, len(fields), *domain.shape)
        return Glimpse(domain, schedule, (1, 5), frames, frames + 0.1)

    return make


def test_the_page_has_curves_panels_and_cost(run, make_glimpse):
    page = write_run_report(run, make_glimpse(), running=True)
    assert page == run / "report.html"
    text = page.read_text()
    sections = re.findall(r'<section id="(\w+)"', text)
    assert sections == ["verdict", "curves", "panels", "cost", "run"]
    assert re.findall(r'<figure id="figure-(\w+)"', text) == [
        "curves", "panels_0", "panels_1", "cost"
    ]  # fmt: skip
    links = re.findall(r'href="#([^"]+)"', text)
    assert {*links} <= {*re.findall(r'id="([^"]+)"', text)}
    assert "Running: 40 updates" in text
    assert "cycle: 0.2000 at update 30" in text
    assert "persistence: 0.4000, rollout 0.6000" in text
    assert '<meta http-equiv="refresh"' in text
    assert "<b>pressure" not in text
    words = re.sub(r'base64,[^"]+', "", text)
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<link", words)


def test_a_schedule_is_named_where_there_are_patches(run, make_glimpse):
    text = write_run_report(run, make_glimpse(), running=True).read_text()
    assert "at steps 1, 5, by the schedule 4-8-16, of the weights" in text
    text = write_run_report(run, make_glimpse(schedule="1"), running=True).read_text()
    assert "at steps 1, 5, of the weights" in text


def test_frames_are_kept_for_the_next_time(run, make_glimpse):
    write_run_report(run, make_glimpse(fields=("tracer",)), running=True)
    (run / "summary.json").write_text('{"status": "finished"}')
    text = write_run_report(run).read_text()
    assert 'id="figure-panels_0"' in text
    assert "Finished: 40 updates" in text
    assert 'http-equiv="refresh"' not in text
    (run / "frames.safetensors").write_bytes(b"damaged")
    assert 'id="figure-panels_0"' not in write_run_report(run).read_text()


def test_a_resumed_run_is_running_whatever_its_last_end_was(run, monkeypatch):
    monkeypatch.setattr(pages, "_draw", lambda *_: ())  # it takes long
    (run / "summary.json").write_text('{"status": "interrupted"}')
    assert "Running: 40" in write_run_report(run, running=True).read_text()
    assert "Interrupted: 40" in write_run_report(run, running=False).read_text()


@pytest.mark.parametrize("ndim", [1, 3])
def test_fields_of_one_and_three_axes(run, make_glimpse, ndim):
    text = write_run_report(run, make_glimpse(ndim, ("density",))).read_text()
    assert 'id="figure-panels_0"' in text


def test_a_run_without_numbers_has_a_page_all_the_same(run):
    (run / METRICS).write_text("")
    text = write_run_report(run).read_text()
    assert "no updates yet" in text
    assert "<figure" not in text


def test_info_draws_it(run, overtone):
    code, text = overtone("info", run)
    assert code == 0
    assert "report.html" in text.replace("\n", "")
    assert (run / "report.html").exists()


def test_a_page_of_somebody_else_is_left_alone(run, overtone):
    (run / "report.html").write_text("mine")
    code, text = overtone("info", run)
    assert code == 0
    assert "not drawn" in text
    assert (run / "report.html").read_text() == "mine"


def test_fit_keeps_the_page_too(tmp_path, monkeypatch):
    """Loaded by its name: training knows nothing of what lies above it."""
    drawn = []
    monkeypatch.setattr(follow, "draw_page", lambda *given: drawn.append(given))
    domain = Domain((16, 16), (1.0, 1.0), "periodic", ("a",), 0.1)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 2}
    model = ot.build("vit", tokenizer="csm", patches=(4, 8), domain=domain, **small)
    frames = torch.randn(4, 8, 1, 16, 16)
    options = {"updates": 2, "console": Console(file=io.StringIO())}
    settings = {"train.batch": 2, "log.tensorboard": False}
    ot.fit(model, frames, out=tmp_path / "run", settings=settings, **options)
    assert drawn[-1][0] == tmp_path / "run"
    assert drawn[-1][2] is False
    count = len(drawn)
    off = settings | {"log.report": False}
    ot.fit(model, frames, out=tmp_path / "other", settings=off, **options)
    ot.fit(model, frames, settings=settings, **options)
    assert len(drawn) == count
