"""A plan against brute force, where the best schedule can be computed."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import overtone as ot
from overtone.assess.plan import plan
from overtone.domain import Domain
from overtone.errors import DataError, OvertoneError

STEPS = 6
TOKENS = {2: 8, 4: 4, 8: 2}
CASES = {
    "errors stay": ((0.1, 0.2, 0.4), 1.0),
    "errors fade": ((0.1, 0.2, 0.4), 0.5),
    "errors grow": ((0.1, 0.2, 0.4), 1.3),
    "errors turn round": ((0.1, 0.2, 0.4), -0.9),
    "patches cancel": ((0.1, -0.2, 0.3), 1.0),
    "coarse is best": ((0.3, 0.2, 0.1), 1.0),
}


def brute_force(model, budget):
    """The lowest error that any sequence within a budget of tokens has."""
    return min(
        model.errors(sequence)
        for sequence in itertools.product(TOKENS, repeat=STEPS)
        if sum(TOKENS[patch] for patch in sequence) <= budget
    )


def error_of(model, made):
    schedule = ot.parse_schedule(made.schedule)
    return model.errors([schedule(step).patch for step in range(made.steps)])


@pytest.mark.parametrize("budget", [12, 20, 33])
@pytest.mark.parametrize("case", CASES)
def test_it_finds_what_brute_force_finds(case, budget, linear, still):
    added, propagation = CASES[case]
    model = linear(*added, propagation=propagation)
    made = plan(model, still, steps=STEPS, tokens=budget)
    assert made.cost.tokens <= budget
    assert error_of(model, made) <= 1.011 * brute_force(model, budget)
    # What it says is what it is: the trajectories are alike, so no choice is luck.
    assert made.error.value == pytest.approx(error_of(model, made), rel=1e-3)
    assert made.worst == pytest.approx(made.error.value, rel=1e-3)


@settings(max_examples=5)
@given(
    budget=st.integers(12, 60),
    added=st.tuples(*[st.floats(-0.5, 0.5).filter(lambda a: abs(a) > 0.01)] * 3),
)
def test_no_option_exceeds_the_budget(budget, added, linear, still):
    model = linear(*added)
    made = plan(model, still, steps=STEPS, tokens=budget)
    assert made.fits
    for option in (*made.options, made):
        schedule = ot.parse_schedule(option.schedule)
        assert schedule.tokens(model.domain, STEPS) == option.cost.tokens <= budget
    front = made.front
    for a, b in itertools.product(front, made.options):
        assert not (b.cost.tokens <= a.cost.tokens and b.error.value < a.error.value)
    assert [o.cost.tokens for o in front] == sorted(o.cost.tokens for o in front)


def test_the_same_seed_gives_the_same_plan(linear, still):
    model = linear(0.1, 0.15, 0.4, propagation=0.8)
    first, second = (
        plan(model, still, steps=8, tokens=40, command="as typed").model_dump() for _ in range(2)
    )
    for made in (first, second):
        made["cost"].pop("seconds")
        for option in made["options"]:
            option["cost"].pop("seconds")
    assert first == second


def test_an_error_that_is_good_enough_is_bought_as_cheaply_as_possible(linear, still):
    model = linear(0.1, 0.2, 0.4, propagation=0.5)
    target = 1.001 * model.errors([4] * STEPS)
    made = plan(model, still, steps=STEPS, error=target)
    cheapest = min(
        sum(map(TOKENS.get, sequence))  # pyright: ignore[reportCallIssue]
        for sequence in itertools.product(TOKENS, repeat=STEPS)
        if model.errors(sequence) <= target
    )
    assert (made.fits, made.target, made.price) == (True, target, "tokens")
    assert error_of(model, made) <= target
    assert made.cost.tokens <= 1.2 * cheapest
    assert not any(
        option.cost.tokens < made.cost.tokens and option.error.value < 0.999 * target
        for option in made.options
    )


def test_an_error_out_of_reach_gives_the_best_there_is(linear, still):
    model = linear(0.1, 0.2, 0.4)
    made = plan(model, still, steps=STEPS, error=1e-3)
    assert not made.fits
    assert made.schedule == "2"
    assert "no schedule reaches 0.001; the best is 2" in str(made)


def test_a_budget_below_the_cheapest_is_refused_before_anything_is_tried(linear, still):
    model = linear(0.1, 0.2, 0.4)
    with pytest.raises(OvertoneError, match=r"fits into 11 tokens.*'8', takes 12 tokens"):
        plan(model, still, steps=STEPS, tokens=11)
    assert model.calls <= 30  # the clock's
    assert plan(model, still, steps=STEPS, tokens=12).schedule == "8"
    with pytest.raises(OvertoneError, match="no schedule of 6 steps fits into 1e-12 seconds"):
        plan(model, still, steps=STEPS, seconds=1e-12)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "nothing is limited"),
        ({"tokens": -3}, "tokens is -3; expected a positive number"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"error": 0}, "error is 0"),
        ({"flops": 1e9}, "FLOPs of model 'model' can't be counted"),
        ({"tokens": 20, "split": "test"}, "made on the test split says nothing"),
        ({"tokens": 20, "starts": 0}, "starts 0; expected at least 1"),
        ({"tokens": 20, "steps": 0}, "steps is 0"),
        ({"tokens": 90, "steps": 13}, "13 steps were asked for"),
    ],
)
def test_bad_questions(asked, said, linear, still):
    with pytest.raises(OvertoneError, match=said):
        plan(linear(0.1, 0.2, 0.4), still, **({"steps": STEPS} | asked))


def test_a_schedule_that_blows_up_is_never_chosen(linear, still):
    model = linear(float("nan"), 0.2, 0.4)
    made = plan(model, still, steps=STEPS, tokens=48)
    assert "2" not in made.schedule.replace("+", "-").split("-")
    assert model.added[2] != model.added[2]
    with pytest.raises(OvertoneError, match="every schedule that was tried blows up"):
        plan(linear(*[float("nan")] * 3), still, steps=STEPS, tokens=48)


def test_one_patch_and_few_trajectories_are_said(linear, still):
    model = linear(0.1, 0.2, 0.4)
    said = []
    made = plan(model, still, steps=STEPS, tokens=30, trajectories=2, note=said.append)
    assert made.data.trajectories == 2
    assert "at least 3" in said[0]
    assert not any(option.searched for option in made.options)
    model.patches = (4,)
    made = plan(model, still, steps=STEPS, tokens=30)
    assert made.schedule == "4"
    assert any("one patch" in note for note in made.notes)


def test_a_model_without_patches_has_nothing_to_plan(still, linear):
    model = ot.baseline("persistence", domain=linear(1, 1, 1).domain, context=1)
    with pytest.raises(OvertoneError, match="has no patches"):
        plan(model, still, steps=2, tokens=100)


def test_a_plan_can_be_interrupted(linear, still):
    def stop(done, total, what):
        assert 0 <= done <= total
        if what.startswith("sequences"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(linear(0.1, 0.2, 0.4), still, steps=STEPS, tokens=30, progress=stop)


def test_only_the_validation_split_is_read(linear, still, tmp_path):
    import shutil

    folder = tmp_path / "only"
    shutil.copytree(still / "data/valid", folder / "data/valid")
    made = plan(linear(0.1, 0.2, 0.4), folder, steps=STEPS, tokens=30)
    assert (made.data.split, made.data.trajectories, made.starts) == ("valid", 6, 18)


def test_of_a_real_model_flops_and_seconds_are_limits_too(make_model, still, linear):
    model = make_model(linear(1, 1, 1).domain, patches=(2, 4, 8), context=2)
    steps = 4
    loose = plan(model, still, steps=steps, tokens=8 * steps, trajectories=3)
    dear = max(option.cost.flops for option in loose.options)
    assert dear > 0
    made = plan(model, still, steps=steps, flops=dear / 2, seconds=100, trajectories=3)
    assert made.price == "flops"
    assert all(option.cost.flops <= dear / 2 for option in made.options)
    assert made.model.patches == (2, 4, 8)
    assert isinstance(Domain(**made.data.domain), Domain)
    torch.testing.assert_close(made.cost.tokens, sum_tokens(made, model.domain, steps))


def sum_tokens(made, domain, steps):
    return ot.parse_schedule(made.schedule).tokens(domain, steps)


def test_data_that_is_not_there(linear, tmp_path):
    with pytest.raises(DataError):
        plan(linear(0.1, 0.2, 0.4), tmp_path, steps=2, tokens=100)
