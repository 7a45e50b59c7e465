"""Loss curves that a change which should not change numbers leaves as they are."""

import io

import pytest
import torch
from rich.console import Console

from overtone.train.journal import read_journal
from overtone.train.run import train

GOLDEN = {
    "fold": [0.982013, 0.932157, 0.777138, 0.593559, 0.576889, 0.517054, 0.407964, 0.618364],
    "attend": [0.98938, 0.966664, 0.916316, 0.66347, 0.633796, 0.666258, 0.538058, 0.92332],
}


@pytest.mark.parametrize("time", GOLDEN)
def test_the_golden_loss_curve(small, tmp_path, time):
    """A change that should not change numbers shows the same curve."""
    train(
        small(
            train__updates=50,
            valid__every=50,
            optimizer__kind="adamw",
            optimizer__lr=1e-2,
            optimizer__weight_decay=1e-4,
            model__time=time,
            model__scale="context",
        ),
        tmp_path / "run",
        console=Console(file=io.StringIO()),
    )
    lines = read_journal(tmp_path / "run/metrics.jsonl")
    found = torch.tensor([line["loss"] for line in lines if line["kind"] == "train"][::7])
    torch.testing.assert_close(found, torch.tensor(GOLDEN[time]), rtol=2e-3, atol=0)
