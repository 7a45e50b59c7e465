"""Several evaluations of the same data side by side."""

import pytest
import torch

from overtone.errors import DataError
from overtone.report.combine import Part, part_names, side_by_side
from overtone.report.tables import tables


@pytest.fixture
def parts(make_model, make_results, with_yardsticks):
    """Two evaluations: csm and a rival, each with persistence and extrapolation."""

    def make(first="csm", second="rival", **changes):
        made = [
            with_yardsticks(make_results([make_model(name, factor=factor)]), (0.5, 0.8))
            for name, factor in ((first, 1.0), (second, 0.7))
        ]
        return [Part("one", made[0]), Part("two", made[1].model_copy(update=changes))]

    return make


def rows_of(results):
    return {table.title: table.rows for table in tables(results)}


def test_tables_are_those_of_the_parts(parts):
    given = parts()
    both, _ = side_by_side(given)
    first, second = (rows_of(part.results) for part in given)
    for title, rows in rows_of(both).items():
        bare = 0 if title == "Grid artifacts" else 2
        models = len(first[title]) - bare
        assert rows[:models] == first[title][:models]
        assert rows[models : 2 * models] == second[title][:models]
        assert rows[2 * models :] == first[title][models:]  # what needs no training, once


def test_one_evaluation_is_what_it_is(parts):
    (one, _) = parts()
    assert side_by_side([one]) == (one.results, None)


def test_the_same_name_twice_is_told_apart_by_the_evaluations(parts, make_samples):
    given = [Part(p.name, p.results, make_samples()) for p in parts("csm", "csm")]
    both, samples = side_by_side(given)
    assert [model.name for model in both.models] == ["csm (one)", "csm (two)"]
    assert {model for model, _ in samples.predictions} == {"csm (one)", "csm (two)"}
    assert len(samples.predictions) == 8
    assert [row[0] for row in rows_of(both)["Rollouts"][:8]] == ["csm (one)"] * 4 + [
        "csm (two)"
    ] * 4


def test_seeds_of_one_evaluation_stay_together(make_model, make_results):
    seeds = make_results([make_model(seed=0), make_model(seed=1)])
    both, _ = side_by_side([Part("a", seeds), Part("b", make_results([make_model("other")]))])
    assert [model.name for model in both.models] == ["csm", "csm", "other"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fingerprint": "1" * 64}, "fingerprint: 000000000000… and 111111111111…"),
        ({"split": "valid"}, "split: test and valid"),
        ({"trajectories": 3}, "trajectories: 12 and 3"),
        ({"start": 9}, "start: 3 and 9"),
        ({"name": "waves"}, "data: flows and waves"),
    ],
)
def test_other_data_is_refused_with_both_sides(parts, change, said):
    one, two = parts()
    data = two.results.data.model_copy(update=change)
    two = Part("two", two.results.model_copy(update={"data": data}))
    with pytest.raises(DataError, match="'one' and 'two' are not evaluations of the same") as found:
        side_by_side([one, two])
    assert said in str(found.value)


def test_other_grids_and_lengths_are_refused(parts, make_results):
    one, two = parts()
    with pytest.raises(DataError, match="steps: 12 and 7"):
        side_by_side([one, Part("two", two.results.model_copy(update={"steps": 7}))])
    other = Part("three", make_results(ndim=1))
    with pytest.raises(DataError, match=r"shape: \[64, 96\] and \[64\]"):
        side_by_side([one, two, other])


def test_other_frames_of_the_same_data_are_refused(parts, make_results, make_bare):
    """Another longest context: persistence errs otherwise."""
    one, two = parts()
    shifted = tuple(make_bare(m.name, 0.55) for m in two.results.yardsticks)
    two = Part("two", two.results.model_copy(update={"yardsticks": shifted}))
    with pytest.raises(DataError, match="--start"):
        side_by_side([one, two])


def test_other_true_frames_are_refused(parts, make_samples):
    one, two = parts()
    samples = make_samples()
    moved = type(samples)(samples.domain, samples.steps, samples.truth + 0.1, samples.predictions)
    with pytest.raises(DataError, match="other frames"):
        side_by_side([Part("one", one.results, samples), Part("two", two.results, moved)])


def test_other_windows_are_refused(parts):
    one, two = parts()
    bare = two.results.yardsticks[0]
    step = bare.next_step[0]
    vrmse = step.vrmse.model_copy(update={"value": 2 * step.vrmse.value})
    bare = bare.model_copy(update={"next_step": (step.model_copy(update={"vrmse": vrmse}),)})
    two = Part("two", two.results.model_copy(update={"yardsticks": (bare,)}))
    with pytest.raises(DataError, match="--windows"):
        side_by_side([one, two])


def test_rounding_on_another_machine_is_no_difference(parts):
    one, two = parts()
    bare = two.results.yardsticks[0]
    run = bare.runs[0]
    near = tuple(e.model_copy(update={"value": e.value * (1 + 1e-6)}) for e in run.vrmse)
    bare = bare.model_copy(update={"runs": (run.model_copy(update={"vrmse": near}),)})
    changes = {"yardsticks": (bare,), "machine": {"cpu": "another"}}
    both, _ = side_by_side([one, Part("two", two.results.model_copy(update=changes))])
    assert both.machine == {"one, cpu": "one", "two, cpu": "another"}


def test_frames_are_there_as_far_as_they_were_kept(parts, make_samples):
    one, two = parts()
    samples = make_samples(keys=[("rival", "16")])
    _, found = side_by_side([one, Part("two", two.results, samples)])
    assert torch.equal(found.truth, samples.truth)
    assert list(found.predictions) == [("rival", "16")]


def test_two_evaluations_of_one_name_are_refused(parts):
    one, two = parts()
    with pytest.raises(DataError, match="NAME=FOLDER"):
        side_by_side([one, Part("one", two.results)])


def test_names_are_the_shortest_ends_that_differ(tmp_path):
    a, b, c = tmp_path / "x" / "results", tmp_path / "y" / "results", tmp_path / "z"
    assert part_names([a, c]) == ["results", "z"]
    assert part_names([a, b]) == ["x/results", "y/results"]
