"""Marks in a page: what is found, what is refused, what is put back."""

import pytest

from studies.page.blocks import PageError, content, fill, find_blocks, framed

PAGE = """# Title

<!-- an ordinary comment -->
<!-- table: rollouts one two models="csm (keep, shifts),fixed16" schedules=4,4-8-16 -->
old
<!-- end -->

It is <!-- value: change one a:4 b:16 vrmse_10 -->−1 %<!-- end --> here.
"""


def test_blocks_have_kind_names_options_and_place():
    first, second = find_blocks(PAGE)
    assert (first.what, first.kind, first.names) == ("table", "rollouts", ("one", "two"))
    # A comma with a space behind it belongs to the item.
    assert first.options == {
        "models": ("csm (keep, shifts)", "fixed16"),
        "schedules": ("4", "4-8-16"),
    }
    assert (first.line, content(PAGE, first)) == (4, "\nold\n")
    assert (second.what, second.names) == ("value", ("one", "a:4", "b:16", "vrmse_10"))
    assert (second.line, content(PAGE, second)) == (8, "−1 %")


def test_filling_changes_contents_alone():
    blocks = find_blocks(PAGE)
    assert fill(PAGE, blocks, [content(PAGE, block) for block in blocks]) == PAGE
    new = fill(PAGE, blocks, [framed(blocks[0], "| a |"), framed(blocks[1], "2 %")])
    assert new == PAGE.replace("\nold\n", "\n\n| a |\n\n").replace("−1 %", "2 %")
    assert [content(new, block) for block in find_blocks(new)] == ["\n\n| a |\n\n", "2 %"]


def test_a_mark_may_span_lines():
    (block,) = find_blocks("<!-- table: rollouts\n  one\n  models=a\n--><!-- end -->")
    assert (block.names, block.options) == (("one",), {"models": ("a",)})


def test_code_is_left_alone():
    text = "`<!-- table: x -->` and\n```html\n<!-- table: y -->\n<!-- end -->\n```\n"
    assert find_blocks(text) == []
    (block,) = find_blocks(text + "`a` <!-- value: number x y z -->1<!-- end --> `b`")
    assert block.kind == "number"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n<!-- end -->", "line 2: <!-- end --> without"),
        ("<!-- table: rollouts a -->\n", "line 1: 'table: rollouts a' has no <!-- end -->"),
        (
            "<!-- table: a b -->\n<!-- value: c d --><!-- end -->",
            "line 1: 'table: a b' has no <!-- end --> before the next mark in line 2",
        ),
        ("<!-- table: --><!-- end -->", "line 1: 'table:' names no kind"),
        ("<!-- table: a 'b --><!-- end -->", "can't be read: No closing quotation"),
        ("<!-- table: a models=b models=c --><!-- end -->", "option 'models' is given twice"),
    ],
)
def test_malformed_pages_are_refused_with_a_line(text, said):
    with pytest.raises(PageError) as caught:
        find_blocks(text)
    assert said in str(caught.value)
