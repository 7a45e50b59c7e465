"""What the first lines claim, and what they leave unsaid."""

import math

import pytest

from overtone.evaluate.results import Estimate
from overtone.report.verdict import headline, verdict

STEPS = 12


def curve(signs):
    """Estimates below, above or across 0 at each step: `-`, `+` or `?`."""
    bounds = {"-": (-0.2, -0.1), "+": (0.1, 0.2), "?": (-0.1, 0.1), "=": (math.nan, math.nan)}
    return tuple(Estimate(value=sum(bounds[s]) / 2, low=bounds[s][0], high=bounds[s][1])
                 for s in signs)  # fmt: skip


def above(signs, limit=1.0):
    """The same around another limit."""
    return tuple(
        Estimate(value=e.value + limit, low=e.low + limit, high=e.high + limit)
        for e in curve(signs)
    )


@pytest.fixture
def judge(make_model, make_results, with_yardsticks, alter_run):
    """The verdict on a model of one run, by its margins and its errors."""

    def lines(persistence="?" * STEPS, extrapolation="?" * STEPS, mean="?" * STEPS, **options):
        margins = {"persistence": curve(persistence), "extrapolation": curve(extrapolation)}
        values = {"margins": margins, "vrmse": above(mean)} | options.pop("run", {})
        model = alter_run(make_model(schedules=["16"]), **values)
        model = model.model_copy(update={"training": options.pop("training", {})})
        results = make_results([model], steps=STEPS, **options)
        return verdict(with_yardsticks(results))

    return lines


WHO = "csm with schedule 16: "


@pytest.mark.parametrize(
    ("signs", "said"),
    [
        ("-" * 12, "beats persistence at all 12 steps"),
        ("-" * 7 + "?" * 5, "beats persistence up to step 7 of 12"),
        ("-" * 7 + "?----", "beats persistence up to step 7 of 12"),
        ("?" * 2 + "-" * 10, "beats persistence from step 3 to the last of 12"),
        ("??---" + "?" * 7, "beats persistence from step 3 to step 5 of 12"),
        ("+" * 12, "worse than persistence at all 12 steps"),
        ("+?" + "-" * 10, "worse than persistence at step 1 of 12; beats persistence from step "
                          "3 to the last of 12"),
        ("-----??+++++", "beats persistence up to step 5 of 12; worse than persistence from step 8 "
                         "to the last of 12"),
    ],
)  # fmt: skip
def test_stretches_of_steps_in_words(judge, signs, said):
    assert judge(signs) == [f"{WHO}{said}."]


@pytest.mark.parametrize("signs", ["?" * 12, "=" * 12, ""])
def test_silent_where_the_intervals_do_not_allow_it(judge, signs):
    assert judge(signs) == []


def test_the_mean_and_both_yardsticks(judge):
    assert judge("-" * 12, "-" * 12, "-" * 9 + "???") == [
        f"{WHO}beats persistence and extrapolation at all 12 steps; better than the mean (VRMSE 1) "
        "up to step 9 of 12."
    ]
    assert judge("-" * 3 + "?" * 9, "-" * 12, "+" * 12) == [
        f"{WHO}beats persistence up to step 3 of 12; beats extrapolation at all 12 steps; worse "
        "than the mean (VRMSE 1) at all 12 steps."
    ]


def test_a_limit_that_is_touched_is_not_beaten(judge):
    touching = (Estimate(value=-0.1, low=-0.2, high=0.0),) * STEPS
    assert judge(run={"margins": {"persistence": touching}}) == []


def test_after_a_blow_up_nothing_is_better_than_the_mean(judge):
    lines = judge(mean="-" * 12, run={"blow_up": 5})
    assert lines == [f"{WHO}turns non-finite at step 5 of 12; better than the mean (VRMSE 1) up to "
                     "step 4 of 12."]  # fmt: skip


def test_one_trajectory_allows_no_verdict_and_few_a_rough_one(judge):
    assert judge("-" * 12, trajectories=1) == [
        "No verdict on errors: one trajectory leaves no intervals. Evaluate on more of them."
    ]
    (_, caution) = judge("-" * 12, trajectories=3)
    assert caution == "With 3 trajectories the intervals behind this are rough guesses."


def test_the_best_schedule_of_each_model_speaks(make_model, make_results):
    lines = verdict(make_results([make_model(), make_model("other", schedules=["16", "8"])]))
    assert [line.partition(":")[0] for line in lines] == [
        "csm with schedule 4",
        "other with schedule 8",
    ]


def test_seeds_must_agree(make_model, make_results, alter_run, with_yardsticks):
    models = [
        alter_run(make_model(seed=i, schedules=["16"]), margins={"persistence": curve(signs)},
                  vrmse=above("?" * 12))
        for i, signs in enumerate(["-" * 12, "-----???????"])
    ]  # fmt: skip
    assert verdict(with_yardsticks(make_results(models))) == [
        f"{WHO}beats persistence up to step 5 of 12."
    ]


FALLING = [0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.38, 0.36, 0.35]


@pytest.mark.parametrize(
    ("scores", "falling"),
    [
        (FALLING, True),
        ([None, *FALLING[1:]], True),
        (FALLING[:3], False),  # too few to tell from chance
        ([*FALLING[:5], 0.36, 0.355, 0.35, 0.345, 0.34], False),  # by less than a tenth
        ([*FALLING[:5], 0.5, 0.4, 0.45, 0.38, 0.42], False),
        ([*FALLING[:9], None], False),  # it blew up
        (FALLING[::-1], False),
        ([], False),
        ("no numbers", False),
    ],
)
def test_a_training_that_ended_too_early(judge, scores, falling):
    training = {"history": {"updates": [*range(len(scores))], "scores": scores}}
    said = [f"{WHO}the validation error was still falling: train longer."] if falling else []
    assert judge(training=training) == said


def test_the_next_command_is_named(judge):
    training = {"history": {"scores": FALLING}, "longer": "overtone train x --out 'my run'"}
    (line,) = judge(training=training)
    assert line.endswith("train longer (next: overtone train x --out 'my run').")


def test_older_results_have_a_verdict_on_the_mean(make_results):
    (line,) = verdict(make_results(schedules=["16"]))
    assert line == f"{WHO}better than the mean (VRMSE 1) at all 12 steps."


def test_a_model_without_patches_has_no_schedule(make_bare, make_results):
    (line,) = verdict(make_results([make_bare()]))
    assert line == "unet: better than the mean (VRMSE 1) at all 12 steps."


def test_the_headline_names_the_lowest_and_how_sure_it_is(make_model, make_results):
    first, second = headline(make_results())
    assert first == (
        "csm with schedule 4 has the lowest error of 4 rollouts, VRMSE 0.113 [0.101, 0.124] over "
        "12 steps; no other interval reaches it."
    )
    assert second == "It is better than the mean (VRMSE 1) at all 12 steps."
    (wide, _) = headline(make_results(spread=0.2))
    assert wide.endswith("; the interval of csm with schedule 4-8-16 overlaps it.")
    (wider, _) = headline(make_results(spread=0.6))
    assert wider.endswith("; the intervals of 3 others overlap it.")
    models = [make_model(schedules=["16", "4"]), make_model("other", schedules=["8"], blow_up=3)]
    assert headline(make_results(models))[0].endswith("; no other interval reaches it; 1 blew up.")
    alone = [make_model(schedules=["16"]), make_model("other", schedules=["8"], blow_up=3)]
    assert headline(make_results(alone))[0].endswith("; all others blew up.")


def test_the_headline_says_what_the_best_beats(judge, make_model, make_results, alter_run):
    margins = {"persistence": curve("-" * STEPS), "extrapolation": curve("+" * STEPS)}
    model = alter_run(make_model(schedules=["16"]), margins=margins)
    results = make_results([model], steps=STEPS)
    bare = [make_model(name, schedules=()) for name in margins]
    results = results.model_copy(update={"yardsticks": tuple(bare)})
    assert headline(results)[1].startswith(
        "It beats persistence at all 12 steps; is worse than extrapolation at all 12 steps; is "
    )


def test_the_headline_of_what_went_wrong(make_model, make_results):
    assert headline(make_results([make_model(schedules=())])) == ["No rollouts were evaluated."]
    assert headline(make_results(blow_up=6)) == [
        "All 4 rollouts turn non-finite, the last of them, csm with schedule 16, at step 6 of 12."
    ]
    assert headline(make_results(schedules=["16"], blow_up=6)) == [
        "csm with schedule 16 turns non-finite at step 6 of 12."
    ]
    said = headline(make_results(spread=0.0, trajectories=1))
    assert said[1].startswith("One trajectory leaves no intervals")
    assert "overlap" not in said[0]


@pytest.mark.parametrize(
    "options", [{}, {"blow_up": 6}, {"schedules": ["16"]}, {"trajectories": 1}]
)
def test_a_headline_is_one_or_two_sentences(make_results, options):
    said = headline(make_results(**options))
    assert len(said) in (1, 2)
    assert all(line.endswith(".") and line.count(". ") == 0 for line in said)
