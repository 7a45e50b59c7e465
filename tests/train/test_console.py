"""What a run says."""

import io
import sys
from types import ModuleType

import pytest
from rich.console import Console

from overtone.train.console import Display, duration


def test_plain_lines_elsewhere_than_on_a_terminal():
    text = io.StringIO()
    with Display(Console(file=text), quiet=False) as display:
        display.show(0.3, "3/10", "loss 0.5", left=7.0)  # too soon after the start
        display.show(1.0, "10/10", "loss 0.25", left=0.0)
        display.say("update [4] done")
    assert text.getvalue() == "10/10 ETA 0:00:00 loss 0.25\nupdate [4] done\n"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_names_are_text_and_numbers_stay_whole_on_any_terminal(width):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    with Display(console, quiet=False) as display:
        text_of = "[/x] \x1b[2Jgone  loss 0.1234  lr 0.00012"
        display.show(0.5, "500/1000", text_of, left=1.0)
        display.say("[/x] \x1b[2Jgone")
    display.table("[/x]", [("folder", "[/x]\x1b[2Jgone"), ("best validation score", "0.1234")])
    said = text.getvalue()
    assert "\x1b[2Jgone" not in said
    assert said.count(r"\x1b[2Jgone") == 3
    for words in ("500/1000", "0.1234", "0.00012"):
        assert words in said
    assert "…" not in said


def test_quiet_ranks_say_nothing():
    text = io.StringIO()
    with Display(Console(file=text, force_terminal=True), quiet=True) as display:
        display.show(1.0, "10/10", "loss", left=0.0)
        display.say("hello")
        display.table("title", [("a", "b")])
    assert text.getvalue() == ""


def test_names_in_a_table_are_shown_as_they_are():
    text = io.StringIO()
    with Display(Console(file=text, width=60), quiet=False) as display:
        display.table("[/x] title", [("folder", "runs/[red]a\x1b[2J")])
    assert "[/x] title" in text.getvalue()
    assert "runs/[red]a\\x1b[2J" in text.getvalue()


def test_durations():
    assert duration(3723.4) == "1:02:03"
    assert duration(0) == "0:00:00"


@pytest.mark.parametrize("used", ["14.9/15 min", "12345/60000"])
def test_a_line_of_progress_fits_into_80_columns(used):
    """The longest numbers that occur, on one line and whole."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80, color_system=None)
    with Display(console, quiet=False) as display:
        words = "loss 0.001234  lr 0.00012  patch 16  123 updates/s"
        display.show(0.99, used, words, left=754.0)
    (line,) = {part.strip() for part in text.getvalue().split("\n") if "loss" in part}
    for part in (used, "ETA 0:12:3", words):  # it may have counted down to 0:12:33
        assert part in line


def test_the_time_left_counts_down_between_two_estimates(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("overtone.train.console.time.monotonic", lambda: clock[0])
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80, color_system=None)
    with Display(console, quiet=False) as display:
        display.show(0.5, "1/2", "", left=60.0)
        clock[0] = 130.0
    assert "ETA 0:00:30" in text.getvalue()


def test_a_notebook_without_widgets_gets_plain_lines(monkeypatch):
    """Where rich has no widgets it would warn and show nothing."""
    shown = []
    ipython = ModuleType("IPython.display")
    ipython.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", ipython)
    monkeypatch.setattr("overtone.train.console.find_spec", lambda name: None)
    console = Console(force_jupyter=True)
    with Display(console, quiet=False) as display:
        assert display._live is None
        display.show(1.0, "3.0/3 min", "loss 0.25", left=0.0)
    assert shown


def test_a_notebook_with_widgets_gets_a_bar(monkeypatch):
    monkeypatch.setattr("overtone.train.console.find_spec", lambda name: name)
    assert Display(Console(force_jupyter=True), quiet=False)._live is not None
