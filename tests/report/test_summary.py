"""Sentences that claim no more than the intervals allow."""

import math

import pytest
import torch

from overtone.domain import Domain
from overtone.evaluate.results import Estimate
from overtone.evaluate.tally import Tally
from overtone.report.summary import interval, number, sentences
from overtone.schedules import Choice


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.01, "0.0100"),
        (205.4, "205"),
        (999.6, "1,000"),
        (12345.6, "12,346"),
        (8.73e9, "8.73e9"),
        (-2e20, "-2.00e20"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_numbers_have_three_digits(value, said):
    assert number(value) == said


def test_intervals_are_shown_where_there_are_any():
    assert interval(Estimate(value=1, low=0.5, high=2)) == "1.00 [0.500, 2.00]"
    assert interval(Estimate(value=1, low=1, high=1)) == "1.00"
    assert interval(Estimate(value=1, low=math.nan, high=math.nan)) == "1.00"
    assert interval(Estimate(value=math.nan, low=0, high=1)) == "–"


def test_the_best_schedule_and_what_it_costs(make_results):
    said = " ".join(sentences(make_results(schedules=("16", "4", "4-8-16"))))
    assert "over the first 10 steps, schedule 4-8-16 has the lowest VRMSE" in said
    assert "over all 12 steps, schedule 4-8-16 has the lowest VRMSE, 0.150 [0.135, 0.165]." in said
    assert "No other interval reaches that of the best" in said
    # A cycle of three spends (1 + 1/4 + 1/16) / 3 of the finest patch's tokens.
    assert "44 % of the" in said


def test_overlapping_intervals_are_said_to_overlap(make_results):
    said = " ".join(sentences(make_results(spread=0.6)))
    assert "The best's interval overlaps those of 16, 16+shift and 4-8-16" not in said
    assert "overlaps those of schedule" in said
    assert "may be chance" in said
    assert "times fewer tokens" in said


def test_one_trajectory_has_no_intervals(make_results):
    said = " ".join(sentences(make_results(spread=0.0, trajectories=1)))
    assert "One trajectory only" in said
    assert "Without intervals" in said
    assert "reaches" not in said


def test_few_trajectories_are_a_caution(make_results):
    assert any("rough guesses" in line for line in sentences(make_results(trajectories=4)))
    assert not any("rough guesses" in line for line in sentences(make_results()))


def test_a_blow_up_is_not_ranked(make_model, make_results):
    models = [make_model(schedules=["16"]), make_model("bad", None, ["4"], factor=0.1, blow_up=6)]
    said = " ".join(sentences(make_results(models)))
    assert "csm with schedule 16 has the lowest VRMSE" in said
    assert "bad with schedule 4 (step 6)" in said
    assert "1 of 2 rollouts turned non-finite" in said


def test_what_is_said_of_the_means_of_a_blow_up_is_how_they_are_computed(
    make_model, make_results, alter_run
):
    steps, early = 12, 10
    domain = Domain((8,), (1.0,), "periodic", ("a",), 0.1)
    tally = Tally(domain, 2, steps, (), seed=0)
    for step in range(1, steps + 1):
        rows = [0, 1] if step < 11 else [0]  # the second one blows up at step 11
        truth = torch.randn(len(rows), 1, 8)
        off = torch.tensor([1.0, 3.0])[rows, None, None] * truth.std(dim=-1, keepdim=True)
        tally.record(step, rows, truth + off, truth, Choice((1,), (0,)))
    tally.lose(11)
    numbers = {"vrmse_all": tally.vrmse_up_to(steps), "vrmse_10": tally.vrmse_up_to(early)}
    bad = alter_run(
        make_model("bad", None, ["4"]), vrmse=tally.vrmse, blow_up=tally.blow_up, **numbers
    )
    said = " ".join(sentences(make_results([make_model(), bad])))
    assert "means over steps are infinite, shown as –, where they include that step" in said
    assert interval(numbers["vrmse_all"]) == "–"
    assert number(numbers["vrmse_10"].value) == "2.00"
    assert "curves are, at each step, means over the trajectories that are left" in said
    assert [e.value for e in tally.vrmse[9:]] == pytest.approx([2.0, 1.0, 1.0], rel=1e-5)


def test_artifacts(make_results):
    said = " ".join(sentences(make_results()))
    assert "lines of a patch grid are those of csm with schedule 16 at period 4: 18.0 dB" in said
    assert "3 of 4 residuals have no such lines" in said
    assert any("No residual has" in line for line in sentences(make_results(factor=0.1)))


def test_seams(make_results):
    results = make_results()
    said = " ".join(sentences(results))
    runs = results.models[0].runs
    worst = max(runs, key=lambda run: run.seams[-1].value)
    assert f"of csm with schedule {worst.schedule} jumps" in said
    assert interval(worst.seams[-1]) in said


def test_one_schedule_seeds_and_nothing(make_model, make_results):
    assert any("the only one" in line for line in sentences(make_results(schedules=["16"])))
    seeds = make_results([make_model(seed=0), make_model(seed=1)])
    assert any("envelope" in line for line in sentences(seeds))
    assert sentences(make_results([make_model(schedules=())])) == ["No rollouts were evaluated."]
