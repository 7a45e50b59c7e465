"""The last frame, for ever."""

import torch

import overtone as ot
from overtone.baselines import Baseline


def test_a_rollout_is_constant(make_baseline, make_domain, make_window):
    domain = make_domain((9, 7), "wall")
    model = make_baseline("persistence", domain)
    window = make_window(domain)
    for frame in ot.rollout(model, window, steps=3, schedule=ot.Cycle(2, 3)):
        assert torch.equal(frame, window.fields[:, -1])
    assert model.num_parameters == 0


def test_it_is_saved_and_loaded(make_baseline, tmp_path):
    make_baseline("persistence").save(tmp_path / "model")
    assert Baseline.from_pretrained(tmp_path / "model").name == "persistence"
