"""Frames of a dataset: which are drawn, where, on which scales."""

import numpy as np
import pytest
from matplotlib import image

import overtone as ot
from overtone.data import FieldSpec, Header, write_well
from overtone.report.figures.data import picture


def write(folder, shape):
    header = Header("toy", shape, tuple(n / 4 for n in shape), "periodic", 0.25)
    specs, random = (FieldSpec("a"), FieldSpec("u", 1)), np.random.default_rng(0)
    sizes = {spec.name: spec.stored_shape(2, 9, shape) for spec in specs}
    values = {spec: random.standard_normal(sizes[spec.name]) for spec in specs}
    write_well(folder / "data/valid/toy_0.hdf5", values, header)
    return folder


@pytest.mark.parametrize("shape", [(7,), (6, 8), (4, 5, 6)])
def test_pictures(tmp_path, shape):
    folder = write(tmp_path / "toy", shape)
    path = picture(folder, tmp_path / "deep" / "frames.png", split="valid", trajectory=1)
    drawn = image.imread(path)
    assert min(drawn.shape[:2]) > 200
    assert drawn.std() > 0.05


def test_no_such_trajectory(tmp_path):
    folder = write(tmp_path / "toy", (6, 8))
    with pytest.raises(ot.DataError, match="has 0 to 1 in split 'valid'"):
        picture(folder, tmp_path / "a.png", split="valid", trajectory=9)
