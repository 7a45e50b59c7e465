"""The frames that are kept beside results."""

import pytest
import torch

from overtone.domain import Domain
from overtone.errors import DataError
from overtone.evaluate.samples import Samples


def samples(name="model"):
    domain = Domain((4, 6), (1.0, 2.0), "periodic", ("u", "v"), 0.1)
    truth, prediction = torch.randn(2, 3, 2, 4, 6)
    return Samples(domain, (1, 5, 9), truth, {(name, "4-8"): prediction})


def test_samples_are_read_as_they_were_saved(tmp_path):
    kept = samples()
    kept.save(tmp_path / "samples.safetensors")
    again = Samples.load(tmp_path / "samples.safetensors")
    assert (again.domain, again.steps) == (kept.domain, (1, 5, 9))
    assert torch.equal(again.truth, kept.truth)
    assert torch.equal(again.predictions["model", "4-8"], kept.predictions["model", "4-8"])


def test_files_without_samples_are_refused(tmp_path):
    (tmp_path / "x").write_text("no tensors")
    with pytest.raises(DataError, match="samples"):
        Samples.load(tmp_path / "x")


def test_names_that_are_no_unicode_are_saved_escaped(tmp_path):
    samples(name="m\udcff").save(tmp_path / "samples")
    assert list(Samples.load(tmp_path / "samples").predictions) == [(r"m\xff", "4-8")]


def test_a_full_disk_keeps_the_old_file_and_names_it(tmp_path, full_disk):
    path, kept = tmp_path / "kept", samples()
    kept.save(path)
    before = path.read_bytes()
    with full_disk(100), pytest.raises((OSError, DataError), match="kept") as caught:
        kept.save(path)
    assert "tmp" not in str(caught.value).rpartition("/")[2]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
