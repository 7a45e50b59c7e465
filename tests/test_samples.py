"""Frames kept for pictures."""

import pytest
import torch

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.samples import Samples


def test_what_is_saved_is_what_is_read(tmp_path):
    domain = Domain((4, 6), (1.0, 2.0), "periodic", ("u", "v"), 0.1)
    truth, prediction = torch.randn(2, 3, 2, 4, 6)
    samples = Samples(domain, (1, 5, 9), truth, {("model", "4-8"): prediction})
    samples.save(tmp_path / "samples.safetensors")
    again = Samples.load(tmp_path / "samples.safetensors")
    assert (again.domain, again.steps) == (domain, (1, 5, 9))
    assert torch.equal(again.truth, truth)
    assert torch.equal(again.predictions["model", "4-8"], prediction)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x").write_text("no tensors")
    with pytest.raises(DataError, match="samples"):
        Samples.load(tmp_path / "x")
