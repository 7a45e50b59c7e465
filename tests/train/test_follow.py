"""The page of a run while it trains: seldom, and never to its harm."""

import io
import itertools
import json
import re
from functools import partial

import pytest
from rich.console import Console

from overtone.train import follow
from overtone.train.follow import SHARE, Follower, draw_page
from overtone.train.journal import METRICS
from overtone.train.parallel import ranks
from overtone.train.run import _prepare
from overtone.train.run import train as train_by_name
from overtone.train.session import Way, conduct

real = draw_page


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def watch():
    """Runs a training with something that draws it; returns how it ended and what it said."""

    def run(config, folder, draw=None, **options):
        console = Console(file=io.StringIO(), width=200)
        way = Way(folder, draw=draw, **options)
        with ranks("cpu") as own:
            prepare = partial(_prepare, config, folder, console)
            outcome = conduct(config, own, prepare, way, console)
        return outcome, console.file.getvalue()

    return run


def test_drawing_takes_no_more_than_its_share(tmp_path):
    clock, drawn = Clock(), []

    def draw(folder, glimpse, running):
        drawn.append((clock.now, running))
        clock.now += 3.0

    follower = Follower(draw, tmp_path, clock)
    for _ in range(400):
        clock.now += 1.0
        assert follower.validated(None) == ""
    assert drawn[0] == (1.0, True), "the first page is there at once"
    times = [time for time, _ in drawn]
    assert len(times) > 2
    for before, after in itertools.pairwise(times):
        assert 3.0 / (after - before) <= SHARE * (1 + 1e-9)
    follower.ended()
    assert drawn[-1][1] is False, "the last page is drawn in any case"


def test_the_last_page_has_the_frames_of_the_last_validation(tmp_path):
    clock, seen = Clock(), []

    def draw(folder, glimpse, running):
        seen.append(glimpse)
        clock.now += 10.0

    follower = Follower(draw, tmp_path, clock)
    for glimpse in ("first", "second", "third"):
        follower.validated(glimpse)
    follower.ended()
    assert seen == ["first", "third"]


def test_what_goes_wrong_is_said_once(tmp_path):
    def draw(*_):
        clock.now += 1.0
        raise OSError(28, "No space left on device")

    clock = Clock()
    follower = Follower(draw, tmp_path, clock)
    assert "No space left" in follower.validated(None)
    clock.now += 1e6
    assert follower.validated(None) == ""
    assert follower.ended() == ""


def test_ctrl_c_is_not_swallowed(tmp_path):
    def draw(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Follower(draw, tmp_path).validated(None)


def test_a_run_is_drawn_after_validations_and_at_its_end(small, tmp_path, watch, monkeypatch):
    calls = []

    def draw(folder, glimpse, running):
        lines = [json.loads(line) for line in (folder / METRICS).read_text().splitlines()]
        valid = [line for line in lines if line["kind"] == "valid"]
        calls.append((len(valid), glimpse.steps, running, (folder / "summary.json").exists()))

    monkeypatch.setattr(follow, "SHARE", 1.0)  # as often as there is something new
    outcome, _ = watch(small(log__report=True), tmp_path / "run", draw)
    assert outcome.status == "finished"
    steps = (1, 2, 3)
    assert calls == [(1, steps, True, False), (2, steps, True, False), (2, steps, False, True)]


@pytest.mark.parametrize("error", [ValueError("boom"), OSError(28, "No space left on device")])
def test_training_goes_on_when_drawing_fails(small, tmp_path, watch, monkeypatch, error):
    def draw(*_):
        raise error

    monkeypatch.setattr(follow, "SHARE", 1.0)
    config = small(log__report=True)
    outcome, said = watch(config, tmp_path / "bad", draw)
    assert outcome.status == "finished"
    assert len(re.findall("the page of the run was not drawn", said)) == 1
    undrawn, _ = watch(small(), tmp_path / "good", draw)
    for one, other in zip(outcome.history.train, undrawn.history.train, strict=True):
        assert one["loss"] == other["loss"], "drawing changed the training"


def test_without_the_switch_nothing_is_drawn(small, tmp_path, watch):
    def draw(*_):
        raise AssertionError("drawn")

    outcome, said = watch(small(), tmp_path / "run", draw)
    assert outcome.status == "finished"
    assert "not drawn" not in said
    assert not (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize("on", [True, False])
def test_a_real_run_has_its_page_or_not(small, tmp_path, monkeypatch, on):
    monkeypatch.setattr(follow, "draw_page", real)
    console = Console(file=io.StringIO())
    train_by_name(small(log__report=on), tmp_path / "run", console=console)
    page = tmp_path / "run" / "report.html"
    assert page.exists() == on
    assert (tmp_path / "run" / "frames.safetensors").exists() == on
    if on:
        assert "Finished: 12 updates" in page.read_text()
        assert 'http-equiv="refresh"' not in page.read_text()
    # A second run replaces the first, its page included.
    train_by_name(small(), tmp_path / "run", overwrite=True, console=console)
    assert not page.exists()
