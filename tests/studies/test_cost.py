"""Tokens and FLOPs on the paper's grids."""

import json

import pytest

from overtone.train.recipes import recipe
from studies import cost


def test_tokens_are_the_papers_and_flops_fall_with_them(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "FORMS", {"fold": "-fold"})
    (flat, deep) = json.loads(cost.run(tmp_path).read_text())["rows"]
    assert flat["tokens"] == {"4": 4096, "8": 1024, "16": 256}
    assert deep["tokens"] == {"4": 4096, "8": 512, "16": 64}
    for row in (flat, deep):
        assert row["flops"]["4"] > 10 * row["flops"]["16"]
        calls = sum(row["flops"].values())
        # A step back costs about twice a step forward: 20,000 updates of 16 windows by each patch.
        assert row["training_flops"] == pytest.approx(3 * calls * 20_000 * 16, rel=0.1)


def test_a_dataset_without_a_grid_is_an_error():
    with pytest.raises(ValueError, match="unpack"):
        cost.count(recipe("shear-flow-7m-fold"))
