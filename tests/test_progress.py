"""What commands show: names as they are, and tables that can be read on any terminal."""

import io

import pytest
from rich.console import Console

from overtone.progress import Listing, Terminal, one_bar

NAMES = {
    "[/x]": "[/x]",
    "[bold]b[/bold]": "[bold]b[/bold]",
    ":smile:": ":smile:",
    "\x1b[2Jgone": r"\x1b[2Jgone",
    "\u202eabc": r"\u202eabc",
    "a\udcff": r"a\xff",
    "two\nlines": r"two\x0alines",
}
"""Names from files, and how they are to be shown."""
HEADER = ("model", "schedule", "VRMSE\nall", "seams\ndB", "tokens")
ROWS = [(f"emulator {i}", "bursts:16:4:5+shift", "0.1234\n0.11–0.14", f"{i}.25", "123456")
        for i in range(3)]  # fmt: skip


def printed(*things, width=80, kind=Terminal, **options):
    text = io.StringIO()
    console = kind(file=text, width=width, **options)
    for thing in things:
        console.print(thing)
    return text.getvalue()


@pytest.mark.parametrize("kind", [Terminal, Console])
@pytest.mark.parametrize("width", [30, 200])
@pytest.mark.parametrize("name", NAMES)
def test_names_in_tables_are_text(name, width, kind):
    """Wherever they stand, whoever's console it is, in a table as in blocks."""
    table = Listing([[name, name, "1", "2"]], [name, "b", "c", "d"], title=name, caption=name)
    text = printed(table, Listing([(name, "1")]), width=width, kind=kind)
    assert "\x1b" not in text
    assert text.count(NAMES[name]) >= 4
    assert "\u202e" not in text


@pytest.mark.parametrize("name", NAMES)
def test_names_in_lines_are_text(name):
    said = NAMES[name] if "\n" not in name else name
    assert printed(f"wrote {name}") == f"wrote {said}\n"


@pytest.mark.parametrize("name", NAMES)
def test_names_in_bars_are_text(name):
    text = io.StringIO()
    with one_bar(name, Console(file=text, force_terminal=True, width=100)) as tick:
        tick(1, 2)
        tick(1, 2, f"{name} and more")
    assert NAMES[name] in text.getvalue()
    assert "\x1b[2Jgone" not in text.getvalue()


@pytest.mark.parametrize("width", [24, 40, 60, 61, 62, 63, 64, 70, 80, 120])
def test_no_width_tears_numbers_or_drops_anything(width):
    text = printed(Listing(ROWS, HEADER, "a title", "a caption"), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for row in ROWS:
        for number in ("0.1234", "0.11–0.14", *row[3:]):
            assert number in text
    if width < 50:  # elsewhere a long name is continued below, within its column
        assert "".join(text.split()).count("bursts:16:4:5+shift") == 3


def test_what_does_not_fit_is_a_block_for_each_row():
    text = printed(Listing(ROWS[:1], HEADER, "a title", "a caption"), width=40)
    assert [line.rstrip() for line in text.splitlines()] == [
        "a title", "", "model: emulator 0", "schedule: bursts:16:4:5+shift",
        "VRMSE all: 0.1234 0.11–0.14", "seams dB: 0.25", "tokens: 123456", "", "a caption",
    ]  # fmt: skip


def test_names_and_values_are_two_columns_or_lines():
    facts = Listing([("updates of each patch", "4: 12, 8: 13"), ("folder", "x" * 50)])
    wide, narrow = printed(facts, width=100).splitlines(), printed(facts, width=24).splitlines()
    assert wide[0].split("  ")[0] == "updates of each patch"
    assert wide[1].rstrip() == f"folder{' ' * 17}{'x' * 50}"
    assert narrow[-4:] == ["folder: ", "x" * 24, "x" * 24, "xx"]


def test_an_empty_table_has_no_rows():
    assert printed(Listing([], HEADER)).split()[0] == "VRMSE"


def test_terminals_that_know_ascii_alone():
    table = Listing([("a", "1–2"), ("b", "3 ± 4…")], ("name", "E|e|²"), texts=(0,))
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii", write_through=True) as file:
        console = Terminal(file=file, width=80, force_terminal=True)
        console.print(table)
        console.print("0.5 ± 0.1")
        with one_bar("reading", console) as tick:
            tick(1, 2)
        text = raw.getvalue().decode("ascii")
    assert "1-2" in text
    assert "E|e|^2" in text
    assert "0.5 +- 0.1" in text


@pytest.mark.parametrize("width", [40, 100])
def test_bars_leave_room_for_words(width):
    text = io.StringIO()
    with one_bar("x", Terminal(file=text, force_terminal=True, width=width)) as tick:
        tick(3, 77, "csm: bursts:16:4:5")
    assert "csm: bursts:16:4:5" in text.getvalue()
    assert "3/77" in text.getvalue()
    assert ("━" in text.getvalue()) == (width > 60)
