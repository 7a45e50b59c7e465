"""Each panel of a diagnosis shows what was found, for every kind of finding."""

from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from overtone.evaluate.diagnose import Case
from overtone.evaluate.diagnosis import Artifact, AxisPower, Diagnosis
from overtone.report.figures.diagnosis import LATTICE, diagnosis_figure, draw


def case(shape, period, statistic="lines", steps=5):
    axes = tuple(
        AxisPower(axis=name, wavenumber=(0.0, 0.1, 0.2), power=(1.0, 0.5, 0.1))
        for name, _ in zip("xyz", shape, strict=False)
    )
    values = tuple(0.1 * (n + 1) for n in range(steps))
    artifact = period and Artifact(
        period=period, statistic=statistic, excess=9.0, p_value=1e-9, share=0.1, contrast=1.0,
        exponent=1.0 if steps > 3 else float("nan"), excess_by_step=values, power_by_step=values,
        cell=torch.rand(period).tolist(),
    )  # fmt: skip
    diagnosis = Diagnosis(
        sentence="A finding.", found=bool(period), artifact=artifact or None, tested=(8,),
        prediction="p", truth="t", fields=("a",), grid=shape, periodic=(True,) * len(shape),
        samples=1, steps=steps, error_by_step=values, spectrum=axes, blow_up=None, notes=(),
        machine={},
    )  # fmt: skip
    return Case(diagnosis, "a", steps, torch.randn(shape, dtype=torch.float64))


def panels(figure):
    """The four panels, without colour bars."""
    return [axes for axes in figure.axes if axes.get_subplotspec()]


def test_panels_are_labelled_and_the_lattice_is_marked():
    given = case((32, 48), (8, 16))
    figure = diagnosis_figure(given)
    assert figure.get_suptitle() == "A finding."
    residual, spectrum, cell, growth = panels(figure)
    assert all(axes.get_title() and axes.get_xlabel() and axes.get_ylabel()
               for axes in panels(figure))  # fmt: skip
    np.testing.assert_array_equal(residual.images[0].get_array(), given.residual.T)
    low, high = residual.images[0].get_clim()
    assert low == -high
    grey = [line for line in spectrum.lines if line.get_color() == LATTICE]
    marked = {round(line.get_xdata()[0], 4) for line in grey}  # pyright: ignore[reportCallIssue]
    assert marked == {round(m / 16, 4) for m in range(1, 9)}
    along = [line for line in spectrum.lines if line.get_color() != LATTICE]
    assert [line.get_label() for line in along] == ["along x", "along y"]
    for line in along:
        np.testing.assert_allclose(line.get_ydata(), [0.5, 0.1])  # without the mean  # pyright: ignore[reportCallIssue]
    power = np.array(given.diagnosis.artifact.cell)
    np.testing.assert_allclose(cell.images[0].get_array() ** 2, power.T)
    whole, artifact, fit = growth.lines
    np.testing.assert_allclose(whole.get_ydata(), given.diagnosis.error_by_step)  # pyright: ignore[reportCallIssue]
    np.testing.assert_allclose(artifact.get_ydata(), given.diagnosis.artifact.power_by_step)  # pyright: ignore[reportCallIssue]
    slope = np.polyfit(np.log(fit.get_xdata()), np.log(fit.get_ydata()), 1)[0]
    assert slope == pytest.approx(1.0)


def test_random_signs_are_drawn_as_sizes():
    residual, spectrum, *_ = panels(diagnosis_figure(case((32, 48), (8, 1), "energy")))
    assert residual.images[0].get_clim()[0] == 0
    assert residual.images[0].get_array().min() >= 0
    assert "energy" in spectrum.get_title()


def test_seams_are_named():
    *_, spectrum, _, growth = panels(diagnosis_figure(case((32, 48), (8, 4), "seams")))
    assert "squared jumps" in spectrum.get_ylabel()
    assert any("seams" in entry.get_text() for entry in growth.get_legend().get_texts())


def test_without_an_artifact_there_is_nothing_to_fold():
    _, spectrum, cell, growth = panels(diagnosis_figure(case((32, 48), None, steps=1)))
    assert [entry.get_text() for entry in cell.texts] == ["no period to fold onto"]
    assert LATTICE not in {line.get_color() for line in spectrum.lines}
    assert len(growth.lines) == 1


def test_one_axis_is_lines():
    given = case((64,), (8,), steps=2)
    residual, _, cell, growth = panels(diagnosis_figure(given))
    np.testing.assert_array_equal(residual.lines[0].get_ydata(), given.residual)
    np.testing.assert_allclose(cell.lines[0].get_ydata() ** 2, given.diagnosis.artifact.cell)
    assert len(growth.lines) == 2, "too few steps to fit an exponent"


@pytest.mark.parametrize(("period", "shown"), [((4, 4, 8), (4, 4)), ((4, 1, 8), (8, 4))])
def test_three_axes_show_the_middle_slice_and_a_mean_cell(period, shown):
    given = case((16, 16, 16), period)
    residual, _, cell, _ = panels(diagnosis_figure(given))
    np.testing.assert_array_equal(residual.images[0].get_array(), given.residual[..., 8].T)
    drawn = cell.images[0].get_array()
    assert drawn.shape == shown
    power = np.array(given.diagnosis.artifact.cell)
    expected = power.mean(axis=2) if period[1] > 1 else power[:, 0]
    np.testing.assert_allclose(drawn**2, expected.T)


def test_two_files_that_are_equal_for_equal_findings(tmp_path):
    torch.manual_seed(0)
    given = case((16, 16), (8, 8))
    png, svg = draw(given, tmp_path / "deep")
    with Image.open(png) as picture:
        # A height between two numbers of pixels is rounded in other ways by other versions.
        assert (picture.format, picture.width) == ("PNG", 1320)
        assert picture.height in (983, 984)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    again, _ = draw(given, tmp_path / "other")
    assert png.read_bytes() == again.read_bytes()


def test_names_are_text(tmp_path):
    given = case((16, 16), (8, 8))
    diagnosis = given.diagnosis.model_copy(update={"sentence": "$\\oops$\x1b[2J in 模🙂"})
    given = Case(diagnosis, "$\\oops$\x1b[2J模🙂", given.step, given.residual)
    figure = diagnosis_figure(given)
    assert figure.get_suptitle() == r"\$\oops\$\x1b[2J in 模🙂"
    assert panels(figure)[0].get_title() == r"Residual of \$\oops\$\x1b[2J模🙂, step 5"
    _, drawing = draw(given, tmp_path)
    ElementTree.parse(drawing)
