"""A training that takes seconds."""

import pytest


@pytest.fixture(scope="session")
def small():
    """Changes of a mini recipe: little data, a small model, two updates for each patch."""
    return {
        "data.generate.trajectories": 4,
        "data.generate.steps": 16,
        "data.generate.per_file": 2,
        "data.generate.splits": [0.5, 0.25, 0.25],
        "data.workers": 0,
        "model.width": 16,
        "model.heads": 2,
        "model.blocks": 1,
        "train.updates_per_patch": 2,
        "train.batch": 2,
        "valid.windows": 2,
        "valid.rollouts": 1,
        "valid.rollout_steps": 2,
        "log.tensorboard": False,
    }
