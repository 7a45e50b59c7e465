"""Names from files and users: as parts of paths, and as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.guard.names import drawn, file_name, shown, shown_lines


@pytest.mark.parametrize("text", ["shear_flow", "run 7", "a.b-c", "Rayleigh–Bénard", "x" * 120])
def test_good_names_stay(text):
    assert file_name(text) == text


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "C:x", "x\0", "x\n", "\x1b[2J",
     ".hidden", "-rf", "~", "~root", "x ", "x.", "nul", "NUL.hdf5", "com1", "x" * 121, "é" * 61,
     "\udcff", "\u202e"],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(text):
    with pytest.raises(ot.OvertoneError, match="the name is .*choose another name") as caught:
        file_name(text)
    assert str(caught.value).isprintable()


@pytest.mark.fuzz
@given(st.text())
def test_a_name_that_passes_stays_in_its_folder(text):
    from pathlib import Path

    try:
        name = file_name(text)
    except ot.OvertoneError:
        return
    inside = Path("/folder") / f"{name}.hdf5"
    assert inside.parent == Path("/folder")
    assert ".." not in inside.parts


@pytest.mark.fuzz
@given(st.text(alphabet=st.characters(codec=None)))
def test_what_is_shown_is_printable_and_plain_text_is_not_changed(text):
    assert shown(text).isprintable()
    if text.isprintable():
        assert shown(text) == text


def test_escapes():
    assert shown("a\x1b[31m\udcff\u202e\n") == r"a\x1b[31m\xff\u202e\x0a"
    assert shown_lines("a\nb\x07") == "a\nb\\x07"
    assert drawn(r"$\oops$") == r"\$\oops\$"
