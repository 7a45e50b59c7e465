"""Which schedules there are to try, and that none is tried twice."""

import pytest

import overtone as ot
from overtone.assess.search_families import (
    complexity,
    distinct,
    families,
    sequence,
    shift_kinds,
    shifted,
)


def test_all_families_are_there():
    texts = {str(schedule) for schedule in families((4, 8, 16), 40, shares=[0.3])}
    assert {"4", "8", "16", "4-8-16", "16-4-8", "8-4", "dwell:4-8-16:2", "bursts:16:4:5"} <= texts
    assert "warmup:" + "-".join("4" * 12) + ":16" in texts  # what 0.3 of the steps pays for
    assert "bursts:16:4:4" in texts
    assert any(text.startswith("reverse:16:4-4-8-8") or "8-8-4-4:40" in text for text in texts)
    kinds = {type(schedule) for schedule in families((4, 8, 16), 40)}
    assert kinds == {ot.Constant, ot.Cycle, ot.Dwell, ot.Bursts, ot.Warmup, ot.ReverseWarmup}


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
@pytest.mark.parametrize("patches", [(4,), (4, 8), (2, 4, 8, 16, 32), ((2, 4), (4, 8))])
def test_every_schedule_has_a_string_form_and_lasts(patches, steps):
    for schedule in families(patches, steps, shares=[0.01, 0.5, 0.99]):
        read = ot.parse_schedule(str(schedule))
        assert [read(n) for n in range(steps)] == [schedule(n) for n in range(steps)]
        assert {schedule(n).patch for n in range(steps)} <= {*patches}


def test_of_equal_schedules_the_simplest_stays(make_domain):
    domain = make_domain((32, 32))
    texts = ("explicit:4-4-4", "warmup:4:4", "4", "4-8", "dwell:4-8:1", "4+shift:at:0x0")
    given = [ot.parse_schedule(text) for text in texts]
    assert [str(s) for s in distinct(given, domain, 3)] == ["4", "4-8"]


def test_shifts_along_joined_axes_cost_no_tokens(make_domain):
    domain = make_domain((64, 32), boundaries=("periodic", "wall"))
    assert shift_kinds(domain) == ("still", "shifted", "along")
    assert shift_kinds(make_domain((64, 32))) == ("still", "shifted")
    still = ot.Cycle(4, 8, 16)
    along = shifted(still, "along", domain, 16)
    assert along.tokens(domain, 50) == still.tokens(domain, 50)
    assert shifted(still, "shifted", domain, 16).tokens(domain, 50) > still.tokens(domain, 50)
    moves = [along(n).shift[:2] for n in range(16)]
    assert sorted(x for x, _ in moves) == list(range(16))
    assert {y for _, y in moves} == {0}
    assert str(ot.parse_schedule(str(along))) == str(along)


@pytest.mark.parametrize(
    ("patches", "text"),
    [
        ((4,), "4"),
        ((4, 4, 4), "4"),
        ((4, 8, 4, 8), "4-8"),
        ((4, 8, 4, 8, 4), "4-8"),
        ((4, 4, 8, 8), "warmup:4-4:8"),
        ((4, 4, 8), "explicit:4-4-8"),
        ((4, 8, 8, 4), "explicit:4-8-8-4"),
    ],
)
def test_a_sequence_in_the_shortest_words(patches, text):
    made = sequence(patches)
    assert str(made) == text
    assert tuple(made(n).patch for n in range(len(patches))) == patches


def test_simple_before_intricate():
    texts = ["16", "16+shift", "4-8-16", "4-8-16+shift", "bursts:16:4:5", "dwell:4-8:2",
             "warmup:4-4:16", "warmup:4-8-4:16", "reverse:16:4-4:40", "explicit:4-8-4"]  # fmt: skip
    found = sorted(texts, key=lambda text: complexity(ot.parse_schedule(text)))
    assert found == texts
