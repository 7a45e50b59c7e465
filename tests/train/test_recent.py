"""Means over the updates since the last line of a log."""

import pytest
import torch

from overtone.train.parallel import Ranks
from overtone.train.recent import Recent
from overtone.train.state import RunProgress


def test_losses_are_means_by_patch_and_of_all_updates():
    recent = Recent(["4", "8", "16"])
    recent.add(1.0, 0.5, 1e-3, "4")
    recent.add(3.0, 0.5, 1e-3, "4")
    recent.add(8.0, 0.25, 2e-3, "16")
    progress = RunProgress(update=3, seconds=7.0, cpu_seconds=6.0, flops=5.0)
    found = recent.values(progress, Ranks(0, 1, torch.device("cpu")))
    assert found["losses"] == {"4": 2.0, "16": 8.0}
    assert found["loss"] == 4.0
    assert (found["gradient_norm"], found["lr"], found["patch"]) == (0.25, 2e-3, "16")
    assert (found["seconds"], found["cpu_seconds"], found["flops"]) == (7.0, 6.0, 5.0)
    assert found["updates_per_second"] > 0
    assert found["waiting_for_data"] == 0


def test_a_new_line_begins_with_nothing():
    recent = Recent(["4"])
    recent.add(1.0, 0.5, 1e-3, "4")
    recent.waited = 3.0
    recent.reset()
    recent.add(5.0, 0.5, 1e-3, "4")
    found = recent.values(RunProgress(), Ranks(0, 1, torch.device("cpu")))
    assert found["losses"] == {"4": pytest.approx(5.0)}
    assert found["waiting_for_data"] == 0
