import json

import pytest

from studies.study import Training
from studies.tune import FORMS, PLAIN_FORMS, RATES, best_form, last_trial, score, trials


@pytest.fixture
def training():
    return Training("csm", "shear-flow-mini", {"train.updates_per_patch": 200})


def write_summary(folder, trial, best):
    (folder / trial.name).mkdir()
    (folder / trial.name / "summary.json").write_text(json.dumps({"best": best}))


def write_summaries(folder, training, scores, last):
    """Of all trials, the last one's as it comes to be known."""
    for trial, best in zip(trials(training).values(), scores, strict=True):
        write_summary(folder, trial, best)
    (trial,) = last_trial(training, folder).values()
    write_summary(folder, trial, last)


def test_trials_differ_in_their_form_alone_and_are_a_quarter_as_long(training):
    configs = {form: trial.config() for form, trial in trials(training).items()}
    assert tuple(configs) == tuple(PLAIN_FORMS)
    found = {(c.optimizer.kind, c.optimizer.lr) for c in configs.values()}
    assert found == {(kind, rate) for kind, rates in RATES.items() for rate in rates}
    assert {(c.train.unroll, c.train.unroll_from) for c in configs.values()} == {(1, 0.0)}
    apart = {str(c.model_copy(update={"optimizer": None})) for c in configs.values()}
    assert len(apart) == 1
    assert {c.num_updates for c in configs.values()} == {training.config().num_updates // 4}


def test_a_budget_in_minutes_is_shortened_in_minutes(training):
    limited = training.renamed("csm", {"train.max_cpu_minutes": 2.0})
    budgets = {(t.config().train.max_cpu_minutes, t.config().num_updates)
               for t in trials(limited).values()}  # fmt: skip
    assert budgets == {(0.5, limited.config().num_updates)}


SCORES = (0.3, 0.1, 0.2, 0.5, 0.6, 0.4)


@pytest.mark.parametrize(("last", "suffix"), [(0.05, "-unrolled"), (0.15, "")])
def test_the_lowest_score_wins(training, tmp_path, last, suffix):
    write_summaries(tmp_path, training, SCORES, last)
    form, found = best_form(training, tmp_path)
    best = list(PLAIN_FORMS)[1]
    assert form == best + suffix
    assert found == dict(zip([*PLAIN_FORMS, f"{best}-unrolled"], [*SCORES, last], strict=True))


def test_a_run_that_only_blew_up_never_wins(training, tmp_path):
    write_summaries(tmp_path, training, (None, None, 0.9, None, None, None), None)
    assert best_form(training, tmp_path)[0] == list(PLAIN_FORMS)[2]
    assert score(tmp_path / next(iter(trials(training).values())).name) == float("inf")


def test_the_last_trial_is_the_best_one_unrolled_at_its_end(training, tmp_path):
    write_summaries(tmp_path, training, SCORES, 1.0)
    ((form, trial),) = last_trial(training, tmp_path).items()
    config, best = trial.config(), trials(training)[list(PLAIN_FORMS)[1]].config()
    assert form in FORMS
    assert (config.train.unroll, config.train.unroll_from) == (4, 0.6)
    assert config.optimizer == best.optimizer
    assert config.num_updates == best.num_updates
