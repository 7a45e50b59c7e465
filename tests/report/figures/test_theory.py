"""What is told about a schedule is what the theory says."""

import math
from fractions import Fraction

import pytest

import overtone as ot
from overtone.report.figures.theory import draw, harmonics, verdict
from overtone.theory import ErrorModel, growth


def by_label(schedule, steps=96, **options):
    found = harmonics(ot.parse_schedule(schedule), steps, **options)
    return {harmonic.label: harmonic for harmonic in found}


def test_one_axis_of_two_is_the_theory_in_one():
    found = by_label("4-8-16", ndim=2)
    alone = growth(ot.parse_schedule("4-8-16"), 96)
    assert list(found) == ["0", "1/16", "1/8", "3/16", "1/4", "5/16", "3/8", "7/16", "1/2"]
    for i, frequency in enumerate(alone.frequencies):
        harmonic = found[str(frequency[0])]
        assert harmonic.frequency == (*frequency, Fraction(0))
        assert harmonic.energy == pytest.approx(alone.energy[i])
        assert harmonic.exponent == pytest.approx(alone.exponent[i])
    assert found["1/16"].patches == (16,)
    assert found["1/4"].excited_by == "4, 8, 16"
    assert found["1/16"].peak == 32**2


def test_how_things_grow():
    assert {h.kind for h in by_label("4-8-16").values()} == {"coherent"}
    assert {h.kind for h in by_label("16+shift").values()} == {"coherent", "bounded"}
    assert by_label("16+shift")["0"].kind == "coherent"
    forgetting = by_label("16", model=ErrorModel(persistence=0.5))
    assert {h.kind for h in forgetting.values()} == {"random walk"}
    assert by_label("16", steps=1)["1/2"].kind == "bounded"


def test_axes_that_differ_are_both_there():
    found = by_label("4x8")
    assert list(found) == ["0", "1/4", "1/2", "1/8, axis 1", "1/4, axis 1", "3/8, axis 1",
                           "1/2, axis 1"]  # fmt: skip
    assert found["1/8, axis 1"].frequency == (0, Fraction(1, 8))
    assert found["1/8, axis 1"].excited_by == "4x8"


def test_a_sentence():
    def say(schedule, **options):
        return verdict(harmonics(ot.parse_schedule(schedule), 96, **options))

    assert say("4-8-16") == "All harmonics stay coherent."
    assert say("16+shift") == "No harmonic but the mean stays coherent."
    assert say("1") == "The schedule excites the mean and nothing else."
    # A grid that moves by 4 cells is where it was for the harmonics of 4.
    assert say("16+shift:at:0x0-4x4-8x8-12x12").endswith("steps: 1/4, 1/2.")


def test_a_picture(tmp_path):
    schedule = ot.parse_schedule("4-8+shift")
    found = harmonics(schedule, 12)
    path = draw(found, schedule, tmp_path / "deep" / "theory.png")
    assert path.stat().st_size > 10_000
    for few in ("1", "2"):
        schedule = ot.parse_schedule(few)
        draw(harmonics(schedule, 1), schedule, tmp_path / f"{few}.svg")
    assert math.isnan(harmonics(schedule, 1)[0].exponent)
