"""The picture has its parts, labels and a lattice; it is drawn for every kind of finding."""

import pytest
import torch

from overtone.evaluate.diagnose import Case
from overtone.evaluate.diagnosis import Artifact, AxisPower, Diagnosis
from overtone.report.figures.diagnosis import draw


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


@pytest.mark.parametrize(
    ("shape", "period", "statistic", "steps"),
    [
        ((32, 48), (8, 8), "lines", 5),
        ((32, 48), (8, 1), "energy", 5),
        ((32, 48), (8, 4), "seams", 5),
        ((32, 48), None, "lines", 1),
        ((64,), (8,), "lines", 2),
        ((16, 16, 16), (4, 4, 8), "lines", 5),
        ((16, 16, 16), (4, 1, 8), "lines", 5),
    ],
)
def test_every_kind_of_finding_is_drawn(tmp_path, shape, period, statistic, steps):
    png, svg = draw(case(shape, period, statistic, steps), tmp_path / "deep")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size > 20_000
    assert "<svg" in svg.read_text()[:1000]


def test_panels_are_labelled_and_the_lattice_is_marked(tmp_path, monkeypatch):
    from matplotlib import pyplot as plt

    kept = []
    monkeypatch.setattr(plt, "close", kept.append)
    draw(case((32, 48), (8, 16)), tmp_path)
    (figure,) = kept
    monkeypatch.undo()
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert len(panels) == 4
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in panels)
    spectrum = panels[1]
    marked = {
        round(line.get_xdata()[0], 4) for line in spectrum.lines if line.get_color() == "#777777"
    }
    assert marked == {round(m / 16, 4) for m in range(1, 9)}
    plt.close(figure)
