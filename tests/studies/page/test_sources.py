"""Results by comparison, and what is chosen of them."""

import pytest

from overtone.errors import DataError
from studies.catalogue import STUDIES
from studies.page.blocks import PageError
from studies.page.sources import Library, single, study_of


def keys(chosen):
    return [(s.model, s.schedule) for s in chosen]


def test_rollouts_come_in_the_order_asked_for(make_source):
    source = make_source()
    every = keys(source.chosen({}))
    assert every[0] == ("csm", "16")
    assert len(every) == 9
    options = {"models": ("fixed16", "csm"), "schedules": ("4-8-16", "16")}
    assert keys(source.chosen(options)) == [("fixed16", "16"), ("csm", "4-8-16"), ("csm", "16")]


def test_seeds_are_one_row(make_source, make_trained):
    source = make_source([make_trained("csm", 0), make_trained("csm", 1)])
    assert len(source.rollout("csm:4-8-16").runs) == 2
    assert [model.seed for model in source.seeds("csm")] == [0, 1]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: s.models(["cms"]), "(did you mean 'csm'?); there are csm; fixed4"),
        (lambda s: s.chosen({"schedules": ("5",)}), "followed schedule '5'; there are 16, "),
        (lambda s: s.rollout("fixed4:16"), "no rollout 'fixed4:16'; expected fixed4:SCHEDULE"),
        (lambda s: s.rollout("fixed4"), "with one of 4"),
        (lambda s: s.seeds("nobody"), "no model 'nobody'"),
    ],
)
def test_what_is_not_there_is_named(make_source, ask, said):
    with pytest.raises(PageError) as caught:
        ask(make_source())
    assert said in str(caught.value)


def test_every_comparison_has_a_study():
    for study in STUDIES.values():
        for comparison in study.comparisons:
            assert study_of(comparison.name) == study.name


def test_a_library_reads_what_is_there(tmp_path, make_comparison, store_results):
    library = Library(tmp_path)
    assert library.source("shear-flow-mini") is None
    store_results(tmp_path, shear_flow_mini_physics=make_comparison())
    found = library.source("shear-flow-mini-physics")
    assert found is not None
    assert found.results.data == make_comparison().data
    assert library.source("shear-flow-mini-physics") is found
    assert library.source("shear-flow-mini") is None  # of the same study, and not in its file
    with pytest.raises(PageError, match="did you mean 'shear-flow-mini'"):
        library.source("shear-flow-mni")
    (tmp_path / "shear-flow-mini-axial.json").write_text("{}")
    with pytest.raises(DataError, match="can't be read as the numbers of a study"):
        library.source("shear-flow-mini-axial")
    with pytest.raises(DataError, match="no folder of results"):
        Library(tmp_path / "none")


def test_options_of_one_item():
    assert single({"relative": ("a:4",)}, "relative") == "a:4"
    with pytest.raises(PageError, match="relative is a,b; expected one"):
        single({"relative": ("a", "b")}, "relative")


def test_a_baseline_without_patches(make_unpatched, make_trained):
    unet, csm = make_unpatched(), make_trained("csm")
    assert not unet.patched
    assert csm.patched
