import json

import pytest

from studies.study import Training
from studies.tune import FORMS, RATES, best_form, score, trials


@pytest.fixture
def training():
    return Training("csm", "shear-flow-mini", {"train.updates_per_patch": 200})


def write_summaries(folder, training, scores):
    for trial, best in zip(trials(training).values(), scores, strict=True):
        (folder / trial.name).mkdir()
        (folder / trial.name / "summary.json").write_text(json.dumps({"best": best}))


def test_trials_differ_in_their_form_alone_and_are_a_quarter_as_long(training):
    configs = {form: trial.config() for form, trial in trials(training).items()}
    assert tuple(configs) == tuple(FORMS)
    found = {(c.optimizer.lr, c.train.unroll > 1) for c in configs.values()}
    assert found == {(rate, unrolled) for rate in RATES for unrolled in (False, True)}
    steps = {"unroll": 0, "unroll_from": 0}
    apart = {
        str(c.model_copy(update={"optimizer": None, "train": c.train.model_copy(update=steps)}))
        for c in configs.values()
    }
    assert len(apart) == 1
    assert {c.num_updates for c in configs.values()} == {training.config().num_updates // 4}


def test_a_budget_in_minutes_is_shortened_in_minutes(training):
    limited = training.renamed("csm", {"train.max_cpu_minutes": 2.0})
    budgets = {(t.config().train.max_cpu_minutes, t.config().num_updates)
               for t in trials(limited).values()}  # fmt: skip
    assert budgets == {(0.5, limited.config().num_updates)}


def test_the_lowest_score_wins(training, tmp_path):
    scores = (0.3, 0.1, 0.2, 0.5, 0.6, 0.4)
    write_summaries(tmp_path, training, scores)
    form, found = best_form(training, tmp_path)
    assert form == list(FORMS)[1]
    assert found == dict(zip(FORMS, scores, strict=True))


def test_a_run_that_only_blew_up_never_wins(training, tmp_path):
    write_summaries(tmp_path, training, (None, None, 0.9, None, None, None))
    assert best_form(training, tmp_path)[0] == list(FORMS)[2]
    assert score(tmp_path / next(iter(trials(training).values())).name) == float("inf")


def test_what_is_unrolled_is_so_at_the_end_alone(training):
    configs = [trial.config().train for trial in trials(training).values()]
    unrolled = [(c.unroll, c.unroll_from) for c in configs if c.unroll > 1]
    assert unrolled == [(4, 0.6)] * len(RATES)
    assert {(c.unroll, c.unroll_from) for c in configs} == {(4, 0.6), (1, 0.0)}
