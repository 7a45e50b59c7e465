import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import overtone as ot
from overtone.schedules.forms import MAX_TEXT

patch = st.integers(1, 64) | st.tuples(st.integers(1, 64), st.integers(1, 64))
patches = st.lists(patch, min_size=1, max_size=5).map(tuple)
seed = st.integers(0, 1000)
plain = st.one_of(
    st.builds(ot.Constant, patch),
    patches.filter(lambda p: len(p) > 1).map(lambda p: ot.Cycle(*p)),
    st.builds(ot.Dwell, patches, each=st.integers(1, 4)),
    st.builds(ot.Warmup, patches, then=patch),
    st.builds(ot.ReverseWarmup, patch, patches, steps=st.integers(5, 20)),
    st.builds(ot.Bursts, coarse=patch, fine=patch, every=st.integers(1, 6)),
    st.builds(ot.RandomChoice, patches, seed=seed),
    st.builds(ot.Explicit, patches),
)
offsets = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4)
shifted = st.one_of(
    st.builds(ot.Shifted, plain, kind=st.sampled_from(["stratified", "random"]), seed=seed),
    st.builds(ot.Shifted, plain, offsets=offsets),
)
GRID = ot.Domain((64, 64), (1.0, 1.0), "periodic", ("u",))
WORDS = ["dwell", "warmup", "reverse", "bursts", "random", "explicit", "+shift", "at", "stratified",
         ":", ":", "-", "-", "x", "4", "8", "16", "0", "1000000000", "9" * 4400, " ", "_", "é",
         "\uff14", "\x00", "\x1b[2J", "4.0", "-1", "+"]  # fmt: skip


@given(plain | shifted)
def test_string_form_reads_back(schedule):
    assert ot.parse_schedule(str(schedule)) == schedule


@given(plain | shifted)
def test_a_schedule_is_a_pure_function(schedule):
    last = 0 if "explicit" in str(schedule) else 7
    backwards = [schedule(step) for step in reversed(range(last + 1))]
    assert backwards[::-1] == [ot.parse_schedule(str(schedule))(step) for step in range(last + 1)]


@pytest.mark.parametrize(
    "text",
    ["", "a", "4-", "4--8", "dwell", "warmup:4", "bursts:16:4", "16+shift:odd", "16+shiftx",
     "reverse:16:4-4-4:2", "0", "4-0", "16+shift:at:", "16+shift:random:x"],
)  # fmt: skip
def test_unreadable_strings_are_refused_with_the_text(text):
    with pytest.raises(ot.PatchError, match=f"schedule '{text}'".replace("+", r"\+")):
        ot.parse_schedule(text)


def parsed(text):
    """The schedule of a text, or the error."""
    try:
        return ot.parse_schedule(text)
    except ot.PatchError as error:
        return error


@pytest.mark.fuzz
@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
@example("4-1000000000+shift")
@example("dwell:4-8:1000000000000")
@example("bursts:16:4:" + "9" * 6000)
@example("reverse:16:4:1000000000000+shift")
@example("+shift")
@example("16+shift:at:3x5x7x9")
def test_any_text_is_a_schedule_that_reads_back_or_an_error(text):
    found = parsed(text)
    if isinstance(found, ot.PatchError):
        assert len(str(found)) < 600
        assert str(found).isprintable()
        return
    assert ot.parse_schedule(str(found)) == found
    with contextlib.suppress(ot.OvertoneError):  # patches that the grid can't hold
        assert found.tokens(GRID, 1) >= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9" * 6000, "can't be read"),
        ("9" * 4000, "a number of more than 30 digits"),
        ("4-10000000000000", "patch is 10000000000000; expected 1 to"),
        ("dwell:4-8:-1", "each is -1; expected 1 to"),
        ("random:4:" + "9" * 40, "seed is a number of more than 30 digits"),
        ("4x4x4x4", "one for each of up to 3 axes"),
        ("16+shift:at:1x2x3x4", "an offset is"),
        ("explicit:" + "4-" * MAX_TEXT + "4", f"expected at most {MAX_TEXT}"),
    ],
)
def test_numbers_and_texts_have_limits(text, message):
    with pytest.raises(ot.PatchError, match=message) as error:
        ot.parse_schedule(text)
    assert len(str(error.value)) < 500
