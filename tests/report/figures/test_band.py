from dataclasses import replace

import pytest

from overtone.report.figures.band import Banded, error_band
from overtone.report.style import NothingToDraw

ROLLOUT = Banded(
    "flow, adaptive:0.02",
    error=(0.1, 0.2, 0.3, 0.4),
    value=(0.12, 0.18, 0.33, 0.35),
    bounds={0.9: ((0.05, 0.1, 0.15, 0.2), (0.2, 0.4, 0.6, float("inf")))},
    patches=(16, 16, 4, 8),
    horizon=2,
)


def test_the_true_error_is_drawn_in_its_band_and_patches_below():
    figure = error_band([ROLLOUT])
    above, below = figure.axes
    lines = {line.get_gid(): list(line.get_ydata()) for line in above.lines}
    assert lines["truth"] == [0.1, 0.2, 0.3, 0.4]
    assert lines["estimate"] == [0.12, 0.18, 0.33, 0.35]
    assert [area.get_gid() for area in above.collections] == ["interval 0.9"]
    assert above.get_ylim()[1] < 1.3  # what nothing bounds moves no axis
    assert [tick.get_text() for tick in below.get_yticklabels()] == ["4", "8", "16"]
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_y() + 0.5 for bar in below.patches}
    assert bars == {1: 2, 2: 2, 3: 0, 4: 1}
    assert above.get_title() == "flow, adaptive:0.02"
    assert not below.get_title()


def test_a_note_stands_above_the_patches():
    _, below = error_band([replace(ROLLOUT, note="of 9 rollouts 7 stay")]).axes
    assert below.get_title() == "of 9 rollouts 7 stay"


def test_several_stand_side_by_side():
    assert len(error_band([ROLLOUT] * 2).axes) == 4


def test_nothing_to_draw():
    with pytest.raises(NothingToDraw, match="no rollout with estimates"):
        error_band([])
