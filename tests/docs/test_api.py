"""What the API pages are made of."""

import inspect
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("sphinx")

import overtone as ot
from docs.builder.api import all_listed, barred, kind, listed, listing, sign, skip
from overtone.rollout import Stepper
from tests.test_repository import ROOT


def test_names_are_read_from_the_blocks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n\n```{api} a.b\nOne\ntwo\n```\n\n```python\nx\n```\n\n```{api} c\nd\n```\n"
    )
    assert listed(page) == [("a.b", "One"), ("a.b", "two"), ("c", "d")]


@pytest.mark.parametrize(
    ("thing", "what"),
    [(ot.Domain, "class"), (ot.build, "function"), (ot.DataError, "exception"), ({}, "data"),
     (ot.Boundary, "class")],
)  # fmt: skip
def test_kinds(thing, what):
    assert kind(thing) == what


def test_a_listing_has_a_line_in_the_table_and_an_entry_for_each():
    lines = listing("overtone", ["build", "Domain"])
    assert lines.count("   ~overtone.build") == 1
    assert ".. autofunction:: overtone.build" in lines
    assert ".. autoclass:: overtone.Domain" in lines


def test_bars_are_absolute_values():
    assert "".join(barred("shells of |k|, `a | b`, |e|²")) == r"shells of \|k\|, `a | b`, \|e\|²"


def test_members_that_refer_to_a_private_base_are_left_out():
    def hook():
        """See `Model.change`."""

    def own():
        """Change it."""

    assert skip(None, "method", "hook", hook, False, None)
    assert not skip(None, "method", "own", own, False, None)
    assert skip(None, "method", "own", own, True, None)


def test_how_an_object_is_called_is_shown_where_it_is_said():
    """Of a class of one's own that is what has to be written."""
    for role in (ot.Controller, ot.Schedule, Stepper):
        assert not skip(None, "class", "__call__", role.__call__, True, None)
    assert skip(None, "class", "__call__", ot.Constant.__call__, True, None)  # as any schedule
    assert skip(None, "class", "__call__", object.__init__, True, None)


@pytest.mark.parametrize(
    ("thing", "signature", "shown"),
    [
        (Stepper, "(*args, **kwargs)", ""),
        (ot.Domain, "(shape: ~a.B, dt: float = 1.0)", "(shape: ~a.B, dt: float = 1.0)"),
        (ot.Domain, "(a=<factory>, b=<function join_frames>)", "(a=..., b=join_frames)"),
    ],
)
def test_signatures_are_python(thing, signature, shown):
    """Otherwise types would be shown with all their modules."""
    assert sign(None, "class", "a.B", thing, None, signature, "")[0] == shown
    assert sign(None, "data", "a.B", {}, None, None, None) is None


def test_everything_public_is_documented():
    """An entry without a docstring would be left out of the page without a warning."""
    for module, name in all_listed():
        thing = getattr(__import__(module, fromlist=[name]), name)
        if kind(thing) != "data":
            assert inspect.getdoc(thing), f"{module}.{name}"


def test_modules_of_all_listed_names_are_type_checked_strictly():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    strict = {ROOT / path for path in project["tool"]["pyright"]["strict"]}
    homes = set()
    for module, name in all_listed():
        own = getattr(getattr(import_module(module), name), "__module__", None) or module
        # A plain dict or tuple has no module, and a type's own is not ours.
        homes.add(import_module(own if own.startswith("overtone") else module).__file__)
    assert not {Path(home) for home in homes} - strict
