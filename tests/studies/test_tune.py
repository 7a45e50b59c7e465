import json

import pytest

from studies.study import Training
from studies.tune import RATES, best_rate, score, trials


@pytest.fixture
def training():
    return Training("csm", "shear-flow-mini", {"train.updates_per_patch": 200})


def write_summaries(folder, training, scores):
    for trial, best in zip(trials(training).values(), scores, strict=True):
        (folder / trial.name).mkdir()
        (folder / trial.name / "summary.json").write_text(json.dumps({"best": best}))


def test_trials_differ_in_the_rate_alone_and_are_a_tenth_as_long(training):
    configs = {rate: trial.config() for rate, trial in trials(training).items()}
    assert tuple(configs) == RATES
    for rate, config in configs.items():
        assert config.optimizer.lr == rate
        assert config.num_updates == training.config().num_updates // 10
    assert (
        len({str(config.model_copy(update={"optimizer": None})) for config in configs.values()})
        == 1
    )


def test_the_lowest_score_wins(training, tmp_path):
    write_summaries(tmp_path, training, (0.3, 0.1, 0.2))
    rate, scores = best_rate(training, tmp_path)
    assert rate == RATES[1]
    assert scores == dict(zip(RATES, (0.3, 0.1, 0.2), strict=True))


def test_a_run_that_only_blew_up_never_wins(training, tmp_path):
    write_summaries(tmp_path, training, (None, None, 0.9))
    assert best_rate(training, tmp_path)[0] == RATES[2]
    assert score(tmp_path / next(iter(trials(training).values())).name) == float("inf")
