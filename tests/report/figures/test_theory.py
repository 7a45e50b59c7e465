"""What is told about a schedule is what the theory says."""

import math
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import overtone as ot
from overtone.report.figures.theory import FLOOR, draw, growth_figure, harmonics, verdict
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


def test_a_line_and_a_bar_for_each_harmonic():
    schedule = ot.parse_schedule("4-8+shift")
    found = harmonics(schedule, 12)
    waves = [harmonic for harmonic in found if any(harmonic.frequency)]
    figure = growth_figure(found, schedule)
    assert str(schedule) in figure.get_suptitle()
    left, right = figure.axes
    drawn, guides = left.lines[: len(waves)], left.lines[len(waves) :]
    for line, harmonic in zip(drawn, waves, strict=True):
        energy = np.array(harmonic.energy)
        shown = np.array(line.get_ydata())
        np.testing.assert_allclose(shown[energy > FLOOR], energy[energy > FLOOR])
        assert np.isnan(shown[energy <= FLOOR]).all()
    np.testing.assert_allclose(guides[1].get_ydata(), np.array(guides[0].get_ydata()) ** 2)  # pyright: ignore[reportCallIssue]
    named = [line.get_label() for line in drawn if line.get_label().startswith("patch")]
    assert named == ["patch 8", "patch 4, 8"]
    assert [bar.get_height() for bar in right.patches] == [harmonic.peak for harmonic in waves]
    ticks = [entry.get_text() for entry in right.get_xticklabels()]
    assert ticks == [harmonic.label for harmonic in waves]
    exponents = [entry.get_text() for entry in right.texts]
    assert exponents == [f"{harmonic.exponent:.1f}" for harmonic in waves]
    assert left.get_ylim() == right.get_ylim()
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in (left, right))


def test_one_step_and_one_cell_are_drawn_too():
    for few, bars in (("1", 1), ("2", 1)):  # of patch 1 there is nothing but the mean
        schedule = ot.parse_schedule(few)
        found = harmonics(schedule, 1)
        assert math.isnan(found[0].exponent)
        assert len(growth_figure(found, schedule).axes[1].patches) == bars


def test_the_file_is_what_its_name_says(tmp_path):
    schedule = ot.parse_schedule("4")
    path = draw(harmonics(schedule, 4), schedule, tmp_path / "deep" / "theory.png")
    with Image.open(path) as picture:
        assert (picture.format, picture.size) == ("PNG", (1430, 572))
    path = draw(harmonics(schedule, 4), schedule, tmp_path / "theory.svg")
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
