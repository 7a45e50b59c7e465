"""One look for all figures."""

import itertools

import matplotlib
import pytest
from matplotlib.colors import to_rgb

from overtone.errors import DataError, OvertoneError
from overtone.report import style
from overtone.report.figures import dial, steps
from overtone.report.style import assign, fit_scale, looks, new_figure, save, save_as, short, text


def test_a_shifted_schedule_has_its_own_line_and_its_schedules_colour():
    known = assign(["16", "16+shift", "16+shift:random:7", "dwell:4-8:2", "dwell:4-8:2+shift"])
    for base in ("16", "dwell:4-8:2"):
        assert known[base].colour == known[f"{base}+shift"].colour
        assert known[base].line == "-"
        assert known[f"{base}+shift"].line != "-"
        assert known[f"{base}+shift"].hollow
    assert known["16+shift"].line != known["16+shift:random:7"].line


def test_many_schedules_can_be_told_apart():
    names = [f"warmup:4:{n}" for n in range(4, 40)] + ["4", "8", "16", "4-8-16"]
    seen = [(look.colour, look.line, look.marker) for look in assign(names).values()]
    assert len(set(seen)) == len(names)


def test_without_colour_markers_tell_eleven_schedules_apart():
    known = assign([str(n) for n in range(1, 12)])
    assert len({look.marker for look in known.values()}) == 11


def test_frequent_schedules_always_have_the_same_colour():
    alone, among = assign(["4-8-16"]), assign(["5", "6", "7", "16", "4-8-16", "4"])
    assert alone["4-8-16"].colour == among["4-8-16"].colour
    assert len({look.colour for look in among.values()}) == 6


def test_neighbouring_colours_differ_in_greyscale_or_marker():
    for a, b in itertools.combinations(assign(["16", "8", "4", "4-8-16"]).values(), 2):
        grey = [0.3 * r + 0.59 * g + 0.11 * b for r, g, b in map(to_rgb, (a.colour, b.colour))]
        assert abs(grey[0] - grey[1]) > 0.1 or a.marker != b.marker


def test_a_schedule_has_one_colour_in_every_figure(make_results):
    results = make_results()
    known = looks(results)
    lines = [
        *steps.rollout_errors(results).axes[0].get_lines(),
        *steps.harmonic_growth(results).axes[0].get_lines(),
    ]
    for name in ("16", "16+shift", "4-8-16", "4"):
        same = [line for line in lines if line.get_color() == known[name].colour
                and line.get_marker() == known[name].marker
                and (line.get_markerfacecolor() == "white") == known[name].hollow]  # fmt: skip
        assert len(same) == 2, name
    points = [container.lines[0] for container in dial.rollout_dial(results).axes[0].containers]
    for name, point in zip(("16", "16+shift", "4-8-16", "4"), points, strict=True):
        assert point.get_color() == known[name].colour
    groups = [c for c in steps.band_errors(results).axes[0].containers if hasattr(c, "patches")]
    assert to_rgb(groups[0].patches[0].get_facecolor()[:3]) == to_rgb(known["16"].colour)
    assert to_rgb(groups[1].patches[0].get_edgecolor()[:3]) == to_rgb(known["16"].colour)


def test_settings_of_the_caller_stay(make_results):
    before = dict(matplotlib.rcParams)
    steps.rollout_errors(make_results())
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("value", "said"), [(0.05, "0.05"), (300, "300"), (20000, "20k"), (3e6, "3M"), (1.5e12, "1.5T")]
)
def test_short_numbers(value, said):
    assert short(value) == said


def test_names_are_text_and_not_mathematics():
    assert text("a$b$\nc") == r"a\$b\$ c"
    assert text("_hidden") == " _hidden"
    assert len(text("x" * 300)) == 40
    cut = [text(f"shear-flow-mini-csm ({letter})", 15) for letter in "AB"]
    assert cut == ["shear-flow… (A)", "shear-flow… (B)"]
    assert text("a\x1b[2J\udcff") == r"a\x1b[2J\xff"
    assert text(" ") == "(no name)"


def test_scales_are_logarithmic_where_values_span_enough():
    axes = new_figure(3, 3).subplots()
    fit_scale(axes, "y", [1.0, 2.0, float("nan"), 0.0])
    assert axes.get_yscale() == "linear"
    fit_scale(axes, "y", [0.01, 2.0])
    assert axes.get_yscale() == "log"


def test_the_same_figure_gives_the_same_files(make_results, tmp_path):
    for folder in ("a", "b"):
        save(steps.rollout_errors(make_results()), tmp_path / folder, "errors")
    for name in ("errors.png", "errors.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_names_in_scripts_that_the_font_lacks_are_drawn_anyway(make_model, make_results, tmp_path):
    figure = style.new_figure(3, 2)
    figure.subplots().set_title("模型 🙂")
    paths = save(figure, tmp_path, "x")  # matplotlib's warning would be an error here
    assert all(path.exists() for path in paths)
    dial.rollout_dial(make_results([make_model("模型 🙂")]))  # laid out before it is saved


@pytest.mark.parametrize("name", ["x.png", "x.svg", "x.pdf"])
def test_a_full_disk_keeps_the_old_picture_and_names_it(tmp_path, full_disk, name):
    figure = style.new_figure(3, 2)
    figure.subplots()
    path = tmp_path / name
    save_as(figure, path)
    before = path.read_bytes()
    with full_disk(1000), pytest.raises(OSError, match=name) as caught:
        save_as(figure, path)
    assert caught.value.filename == str(path)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (before, [path])


def test_formats_that_nobody_draws_are_refused(tmp_path):
    with pytest.raises(OvertoneError, match=r"format of '.*x\.xyz' is 'xyz'; expected one of"):
        save_as(style.new_figure(3, 2), tmp_path / "x.xyz")


def test_a_picture_that_somebody_else_drew_is_left_alone(tmp_path):
    from matplotlib.figure import Figure

    mine = tmp_path / "frames.png"
    Figure().savefig(mine)
    before = mine.read_bytes()
    with pytest.raises(DataError, match="not a picture that Overtone drew; it is left alone"):
        style.save_as(Figure(), mine)
    assert mine.read_bytes() == before
    for _ in range(2):  # our own may be replaced
        style.save_as(Figure(), tmp_path / "ours.png")
