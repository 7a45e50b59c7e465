"""Our files, read by The Well's own package with equal values."""

import numpy as np
import pytest
import torch

from overtone.data import FieldSpec, WellFolder, write_stats
from overtone.solvers import ShearFlow
from overtone.solvers.datasets import generate

the_well = pytest.importorskip("the_well.data")
pytestmark = pytest.mark.well


def assert_equal_items(folder, constant=()):
    theirs = the_well.WellDataset(
        path=str(folder), well_split_name="train", n_steps_input=3, n_steps_output=2
    )
    ours = WellFolder(folder, context=3, horizon=2)
    assert len(theirs) == len(ours)
    varying = [i for i, name in enumerate(ours.domain.fields) if name not in constant]
    fixed = [i for i, name in enumerate(ours.domain.fields) if name in constant]
    for index in range(len(ours)):
        sample, (window, target) = theirs[index], ours[index]
        first = sample["input_fields"].movedim(-1, 1)
        assert torch.equal(window.fields[:, varying], first)
        assert torch.equal(target[:, varying], sample["output_fields"].movedim(-1, 1))
        if fixed:
            assert torch.equal(window.fields[0, fixed], sample["constant_fields"].movedim(-1, 0))
        kinds = {"wall": 0, "open": 1, "periodic": 2}
        codes = [[kinds[side] for side in sides] for sides in window.domain.boundaries]
        assert sample["boundary_conditions"].tolist() == codes
    return theirs, ours


@pytest.mark.parametrize("shape", [(7,), (6, 8), (4, 5, 6)])
def test_equal_values_in_one_two_and_three_dimensions(make_folder, shape):
    sides = [("wall", "open"), "periodic", "open"][: len(shape)]
    folder, _ = make_folder(shape=shape, boundaries=sides)
    theirs, ours = assert_equal_items(folder)
    names = [name for order in range(3) for name in theirs.metadata.field_names[order]]
    assert tuple(names) == ours.domain.fields


def test_fields_without_sample_or_time(make_folder):
    specs = (
        FieldSpec("density"),
        FieldSpec("drive", sample_varying=False),
        FieldSpec("map", time_varying=False),
        FieldSpec("mask", sample_varying=False, time_varying=False),
        FieldSpec("u", 1),
    )
    folder, _ = make_folder(specs=specs)
    assert_equal_items(folder, constant=("map", "mask"))


def test_generated_data_with_their_normalisation(tmp_path):
    from the_well.data.normalization import ZScoreNormalization  # pyright: ignore[reportMissingImports]

    folder = generate(ShearFlow(shape=(16, 32)), tmp_path / "a", trajectories=4, steps=8)
    assert_equal_items(folder)
    theirs = the_well.WellDataset(
        path=str(folder),
        well_split_name="train",
        use_normalization=True,
        normalization_type=ZScoreNormalization,
        n_steps_input=8 - 1,
    )
    values = torch.stack([theirs[i]["input_fields"] for i in range(len(theirs))])
    assert values.mean((0, 1, 2, 3)).abs().max() < 0.2
    np.testing.assert_allclose(values.std((0, 1, 2, 3)), 1, atol=0.2)
    assert theirs[0]["constant_scalars"].tolist() == [1e4, 1.0]


def test_their_deltas(make_folder):
    folder, values = make_folder()
    write_stats(folder)
    stats = WellFolder(folder).stats
    spec = next(iter(values["train"][0]))
    array = np.concatenate([content[spec] for content in values["train"]]).astype(np.float64)
    changes = np.diff(array, axis=1)
    assert stats["std_delta"][spec.name] == pytest.approx(changes.std(), rel=1e-12)


def test_their_dummy_file_is_read(tmp_path):
    from the_well.utils.dummy_data import write_dummy_data  # pyright: ignore[reportMissingImports]

    write_dummy_data(str(tmp_path / "dummy.hdf5"))
    data = WellFolder(tmp_path / "dummy.hdf5", context=2)
    assert data.domain.fields == ("constant_field", "field_x", "field_y")
    assert len(data) == 16
    assert data.parameters(9) == {"a": 0.25, "b": 0.75}
    assert len(data.scalars(9)["time_varying_scalar"]) == 3
    sample = the_well.WellDataset(path=str(tmp_path), n_steps_input=2)[9]
    window, target = data[9]
    assert torch.equal(window.fields[:, 1:], sample["input_fields"].movedim(-1, 1))
    assert torch.equal(target[:, 1:], sample["output_fields"].movedim(-1, 1))
    assert torch.equal(window.fields[1, :1], sample["constant_fields"].movedim(-1, 0))


@pytest.mark.xfail(reason="the_well 1.2.0 wants length 1 where its format has no axis", strict=True)
def test_fields_without_a_spatial_axis(make_folder):
    folder, _ = make_folder(specs=(FieldSpec("a"), FieldSpec("b", dim_varying=(True, False))))
    assert_equal_items(folder)
