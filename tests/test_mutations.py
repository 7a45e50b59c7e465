"""The list of planted bugs fits the code, and what was counted is what there is."""

import ast
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mutations import MUTATIONS, Verdict, chosen, content, judge, plant, planted

ROOT = Path(__file__).parents[1]


def results():
    return json.loads((ROOT / "results" / "mutations.json").read_text())


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_mutation_changes_one_line_of_code_that_is_there(mutation):
    right = (ROOT / mutation.file).read_text()
    wrong = plant(right, mutation)
    pairs = zip(right.splitlines(), wrong.splitlines(), strict=True)
    assert sum(one != other for one, other in pairs) == 1
    assert ast.dump(ast.parse(right)) != ast.dump(ast.parse(wrong))
    assert mutation.tests
    for file, _, test in (name.partition("::") for name in mutation.tests):
        assert f"def {test or 'test_'}" in (ROOT / "tests" / file).read_text()


def test_what_is_not_there_just_once_can_not_be_changed():
    mutation = replace(MUTATIONS[0], old="a", new="b")
    assert plant("an", mutation) == "bn"
    for text, times in (("none of it", 0), ("banana", 3)):
        with pytest.raises(ValueError, match=f"its old text {times} times, expected once"):
            plant(text, mutation)


def test_some_are_chosen_by_how_their_names_begin():
    names = [mutation.name for mutation in MUTATIONS]
    assert max(Counter(names).values()) == 1
    assert [m.name for m in chosen([])] == names
    assert {m.name.partition(":")[0] for m in chosen(["train", "ops: PI"])} == {"train", "ops"}
    with pytest.raises(SystemExit, match="no mutation is called nonsense"):
        chosen(["nonsense"])


def test_what_is_run_again_takes_the_place_of_what_was_known():
    first, second, third = MUTATIONS[:3]
    stale = {**planted(third), "old": "other code", "noticed": True, "by": "x", "seconds": 1.0}
    before = [
        {**planted(first), "noticed": False, "by": "", "seconds": 1.0},
        {**planted(second), "noticed": True, "by": "y", "seconds": 1.0},
        stale,
    ]
    found = content({first: Verdict(True, "z", 2.0)}, before)
    assert [row["name"] for row in found["mutations"]] == [first.name, second.name]
    assert [row["by"] for row in found["mutations"]] == ["z", "y"]
    assert (found["planted"], found["noticed"]) == (2, 2)


@pytest.mark.parametrize(
    ("body", "noticed", "by"),
    [("assert x == 1", True, "tests/test_x.py::test_x"), ("assert x", False, "")],
)
def test_a_bug_is_noticed_if_a_test_fails_and_is_taken_back(tmp_path, body, noticed, by):
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "src/planted.py").write_text("x = 1\n")
    (tmp_path / "tests/test_x.py").write_text(
        f"from planted import x\n\n\ndef test_x():\n    {body}\n"
    )
    mutation = replace(
        MUTATIONS[0], file=Path("src/planted.py"), old="1", new="2", tests=("test_x.py",)
    )
    verdict = judge(tmp_path, mutation)
    assert (verdict.noticed, verdict.by) == (noticed, by)
    assert (tmp_path / "src/planted.py").read_text() == "x = 1\n"


def test_what_was_planted_was_nearly_always_noticed():
    """The page says how many of the list were planted since they were listed."""
    found, listed = results(), [m.name for m in MUTATIONS]
    names = [row["name"] for row in found["mutations"]]
    assert names == [name for name in listed if name in set(names)]
    assert found["planted"] == len(names) >= 110
    assert found["noticed"] == sum(row["noticed"] for row in found["mutations"])
    assert found["noticed"] >= 0.95 * found["planted"]
    said = f"{found['noticed']} of {found['planted']} are noticed; {len(listed)} are listed"
    assert said in (ROOT / "docs" / "faults.md").read_text()
