"""Pages as a whole, and the pages of this repository."""

from pathlib import Path

import pytest

from studies.archive import Archive, thinned
from studies.catalogue import STUDIES
from studies.page import assess_tables, assess_values, file_tables
from studies.page.blocks import PageError, find_blocks
from studies.page.render import TABLES, render_page, update_page
from studies.page.values import NAMES, OF_ONE, OF_TWO, PLACED

ROOT = Path(__file__).parents[3]
NAME = "shear-flow-mini"
MAX_COLUMNS = 9
PAGES = [ROOT / "docs" / "results.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]
"""The pages of results."""


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=lambda path: path.stem)
def test_the_pages_of_the_repository_are_up_to_date(path):
    """If this fails: `make page`."""
    page = update_page(path, ROOT / "results", write=False)
    assert [str(block) for block in page.stale] == []


def test_every_study_that_was_run_is_on_a_page_of_results():
    shown = {n for path in PAGES for block in find_blocks(path.read_text()) for n in block.names}
    run = [s for s in STUDIES.values() if (ROOT / "results" / f"{s.name}.json").exists()]
    assert {comparison.name for study in run for comparison in study.comparisons} <= shown


def test_the_page_of_results_fits_the_studies(tmp_path, make_planned, make_plans):
    """Every block can be rendered from what studies keep, and no table is too wide to read."""
    for study in STUDIES.values():
        kept = {c.name: thinned(make_planned(study, c), c.curves) for c in study.comparisons}
        Archive(kept, plans=make_plans(study, kept)).save(tmp_path / f"{study.name}.json")
    page = render_page("\n".join(path.read_text() for path in PAGES), tmp_path)
    # Estimates and costs are no studies with comparisons: their commands write files of their own.
    others = {*assess_tables.KINDS, *assess_values.KINDS, *file_tables.KINDS}
    assert [b for b in page.waiting if b.kind not in others] == []
    for line in page.text.splitlines():
        assert line.count(" | ") < MAX_COLUMNS, line


def test_every_kind_and_option_is_in_the_reference():
    text = (ROOT / "docs" / "reference" / "page.md").read_text()
    rows = {line.split("|")[1].strip(" `"): line for line in text.splitlines() if "|" in line}
    for name, kind in TABLES.items():
        assert ("| several |" in rows[name]) == kind.several, name
        for option in kind.options:
            assert f"`{option}`" in rows[name], (name, option)
    for name in (*OF_ONE, *OF_TWO):
        assert name in rows
    for name in (*NAMES, *PLACED):
        assert f"`{name}`" in text
    assert find_blocks(text) == []


def every_kind():
    marks = [f"<!-- table: {kind} {NAME} -->\nold\n<!-- end -->\n" for kind in TABLES]
    value = f"a <!-- value: number {NAME} csm:4 vrmse_10 -->1<!-- end --> b\n"
    return "# Title\n" + "\n".join([*marks, value])


def test_rendering_twice_changes_nothing(tmp_path, make_comparison, store_results):
    store_results(tmp_path, shear_flow_mini=make_comparison())
    first = render_page(every_kind(), tmp_path)
    assert len(first.stale) == first.blocks == len(TABLES) + 1
    second = render_page(first.text, tmp_path)
    assert (second.text, second.stale, second.waiting) == (first.text, (), ())
    assert first.text.startswith("# Title\n")
    assert first.text.endswith("<!-- end --> b\n")


def test_what_was_not_run_says_so_with_the_command(tmp_path):
    page = render_page(every_kind(), tmp_path)
    assert len(page.waiting) == page.blocks
    line = f"\n\nnot run yet: `make reproduce STUDY={NAME}`\n\n"
    assert page.text.count(line) == len(TABLES)
    study = render_page(f"<!-- table: physics {NAME}-physics --><!-- end -->", tmp_path)
    assert f"not run yet: `make reproduce STUDY={NAME}`" in study.text


def test_some_of_several_comparisons_were_run(render, make_comparison):
    text = render(f"rollouts {NAME} shear-flow-mini-axial", shear_flow_mini=make_comparison())
    assert text.startswith("| model")
    assert text.endswith(
        "shear-flow-mini-axial not run yet: `make reproduce STUDY=shear-flow-mini-axial`"
    )


def test_numbers_follow_the_file(tmp_path, make_comparison, make_trained, store_results):
    store_results(tmp_path, shear_flow_mini=make_comparison([make_trained("csm")]))
    text = render_page(f"<!-- table: rollouts {NAME} --><!-- end -->", tmp_path).text
    doubled = make_comparison([make_trained("csm", factor=2.0)])
    store_results(tmp_path, shear_flow_mini=doubled)
    page = render_page(text, tmp_path)
    assert [str(block) for block in page.stale] == [f"table: rollouts {NAME}"]
    assert page.text != text


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (f"rollout {NAME}", "no table 'rollout' (did you mean 'rollouts'?); there are next-step"),
        ("rollouts", "table 'rollouts' takes at least one comparison; given: none"),
        (f"schedules {NAME} shear-flow-mini-axial", "takes one comparison; given: shear-flow"),
        (f"rollouts {NAME} model=csm", "no option 'model' (did you mean 'models'?)"),
        (f"setting {NAME} models=csm", "no option 'models'; it has none"),
        (f"rollouts {NAME} models=nobody", f"'{NAME}' has no model 'nobody'"),
        ("rollouts nothing", "no study makes a comparison 'nothing'"),
    ],
)
def test_errors_name_the_page_the_line_and_the_block(
    tmp_path, make_comparison, store_results, said, message
):
    store_results(tmp_path, shear_flow_mini=make_comparison())
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n<!-- table: {said} -->\n<!-- end -->\n")
    with pytest.raises(PageError) as caught:
        update_page(page, tmp_path)
    text = str(caught.value)
    assert message in text
    assert text.startswith(f"'{page}', line 3, 'table: {said.split()[0]}")


def test_a_page_is_written_only_if_it_changes(tmp_path, make_comparison, store_results):
    store_results(tmp_path, shear_flow_mini=make_comparison())
    page = tmp_path / "page.md"
    page.write_text(every_kind(), encoding="utf-8")
    update_page(page, tmp_path, write=False)
    assert page.read_text(encoding="utf-8") == every_kind()
    made = update_page(page, tmp_path)
    assert page.read_text(encoding="utf-8") == made.text
    before = page.stat().st_mtime_ns
    assert update_page(page, tmp_path).stale == ()
    assert page.stat().st_mtime_ns == before
    with pytest.raises(PageError, match="can't be read"):
        update_page(tmp_path / "none.md", tmp_path)
