"""The page's pictures."""

import pytest
from matplotlib.text import Text
from PIL import Image

from overtone.report.style import NothingToDraw
from studies.catalogue import STUDIES
from studies.page.figures import PICTURES, draw_pictures, end_spectra, narrowed

MAX_BYTES = 150_000


@pytest.mark.slow
def test_pictures_are_drawn_and_small(tmp_path, make_comparison, store_results):
    drawn = make_comparison(steps=40)
    store_results(tmp_path, shear_flow_mini=drawn, shear_flow_mini_seams=drawn)
    files = draw_pictures(tmp_path, tmp_path / "images")
    assert [path.stem for path in files] == [picture.name for picture in PICTURES]
    for path in files:
        assert path.stat().st_size < MAX_BYTES
        with Image.open(path) as image:
            assert image.format == "PNG"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_has_the_models_and_schedules_that_it_says(picture, make_comparison):
    shown = narrowed(make_comparison(steps=40), picture.shown)
    drawn = {model.name: {run.schedule for run in model.runs} for model in shown.models}
    figure = picture.draw(shown)
    words = {text.get_text() for text in figure.findobj(Text)}
    assert figure.get_size_inches()[0] > 6
    assert set(drawn) == set(picture.shown)
    for model, schedules in drawn.items():
        assert any(model in word for word in words), model
        for schedule in schedules:
            assert any(schedule in word for word in words), schedule


def test_nothing_is_drawn_of_what_was_not_run(tmp_path):
    assert draw_pictures(tmp_path, tmp_path) == []


def test_few_rollouts_are_kept_in_the_order_asked_for(make_comparison):
    kept = narrowed(make_comparison(), {"fixed16": ("16",), "csm": ("4", "4-8-16", "9")})
    assert [(m.name, [run.schedule for run in m.runs]) for m in kept.models] == [
        ("fixed16", ["16"]),
        ("csm", ["4", "4-8-16"]),
    ]
    with pytest.raises(NothingToDraw, match="no rollouts of nobody"):
        narrowed(make_comparison(), {"nobody": ("4",)})


def test_spectra_of_the_first_and_the_last_step(make_comparison, make_trained):
    figure = end_spectra(make_comparison([make_trained("csm", 0, ["16"])]))
    assert [axes.get_title() for axes in figure.axes] == ["csm, step 1", "csm, step 12"]
    blown = end_spectra(make_comparison([make_trained("csm", 0, ["16"], blow_up=3)]))
    assert [axes.get_title() for axes in blown.axes] == ["csm, step 1"]


def test_pictures_show_what_their_study_evaluates():
    comparisons = {c.name: c for study in STUDIES.values() for c in study.comparisons}
    for picture in PICTURES:
        shown = {schedule for own in picture.shown.values() for schedule in own}
        assert shown <= set(comparisons[picture.comparison].schedules)
