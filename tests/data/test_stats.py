"""Streaming statistics against numpy on everything at once."""

import numpy as np
import pytest
import torch
import yaml

import overtone as ot
from overtone.data import FieldSpec, WellFolder, compute_stats, write_stats, write_well
from overtone.data.stats import ALL_NAMES, Moments


@pytest.mark.parametrize("block", [1, 32_000_000])
@pytest.mark.parametrize("shape", [(7,), (6, 8)])
def test_against_numpy(make_folder, monkeypatch, shape, block):
    monkeypatch.setattr("overtone.data.stats.BLOCK_BYTES", block)
    folder, values = make_folder(shape=shape)
    stats = compute_stats(folder)
    assert tuple(stats) == ALL_NAMES
    for spec in values["train"][0]:
        array = np.concatenate([content[spec] for content in values["train"]]).astype(np.float64)
        axes = tuple(range(2 + len(shape)))
        for suffix, x in (("", array), ("_delta", np.diff(array, axis=1))):
            for name, expected in {
                "mean": x.mean(axes),
                "std": x.std(axes),
                "rms": np.sqrt((x**2).mean(axes)),
            }.items():
                np.testing.assert_allclose(stats[name + suffix][spec.name], expected, rtol=1e-12)


def test_a_large_mean_does_not_cancel():
    random = torch.Generator().manual_seed(0)
    values = 1e8 + torch.randn(1, 10_000, generator=random, dtype=torch.float64)
    moments = Moments()
    for part in values.split(7, dim=1):
        moments.add(part)
    expected = values.std(correction=0).item()
    assert moments.summary()["std"].item() == pytest.approx(expected, rel=1e-7)


def test_fields_without_time_have_no_change(make_folder):
    specs = (FieldSpec("a"), FieldSpec("mask", sample_varying=False, time_varying=False))
    folder, values = make_folder(specs=specs)
    stats = compute_stats(folder)
    assert set(stats["mean"]) == {"a", "mask"}
    assert set(stats["mean_delta"]) == {"a"}
    masks = np.stack([content[specs[1]] for content in values["train"]])
    assert stats["std"]["mask"] == pytest.approx(masks.std(), rel=1e-6)


def test_the_file_is_found_from_everywhere(make_folder):
    folder, _ = make_folder()
    assert WellFolder(folder).stats is None
    path = write_stats(folder)
    assert path == folder / "stats.yaml"
    content = yaml.safe_load(path.read_text())
    for start in (folder, folder / "data/train", folder / "data/train/toy_0.hdf5"):
        assert WellFolder(start).stats == content
    assert isinstance(content["mean"]["density"], float)
    assert np.shape(content["mean"]["D"]) == (2, 2)


def test_one_file_gets_its_statistics_beside_it(tmp_path, make_header, make_values):
    path = write_well(tmp_path / "a.hdf5", make_values(), make_header())
    assert write_stats(path) == tmp_path / "stats.yaml"
    assert WellFolder(path).stats is not None


def test_bad_values_and_bad_files(make_folder, make_values, make_header):
    folder, _ = make_folder()
    for text, message in (("mean: [", "can't be read"), ("a: 1", "is not a stats.yaml")):
        (folder / "stats.yaml").write_text(text)
        with pytest.raises(ot.DataError, match=message):
            _ = WellFolder(folder).stats
    values = make_values()
    next(iter(values.values()))[1, 2, 3, 4] = np.inf
    write_well(folder / "data/train/bad.hdf5", values, make_header())
    with pytest.raises(ot.DataError, match="bad.hdf5': field 'density' of trajectory 1"):
        write_stats(folder)


@pytest.mark.parametrize("unit", [1e-30, 1e-15, 1e15, 1e30])
def test_units_change_nothing_but_the_unit(make_folder, make_values, make_header, unit):
    """In float32 the squares of these overflow or vanish."""
    folder, _ = make_folder(files=(1, 0, 0))
    plain = compute_stats(folder)
    values = {
        spec: (array.astype(np.float64) * unit).astype(np.float32)
        for spec, array in make_values().items()
    }
    write_well(folder / "data/train/toy_0.hdf5", values, make_header())
    scaled = compute_stats(folder)
    for name in ("std", "rms", "std_delta", "rms_delta"):
        for field, expected in plain[name].items():
            found = np.array(scaled[name][field]) / unit
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_statistics_that_are_nested_without_end(make_folder):
    folder, _ = make_folder()
    (folder / "stats.yaml").write_text("[" * 5000)
    with pytest.raises(ot.DataError, match="can't be read"):
        _ = WellFolder(folder).stats


@pytest.mark.parametrize("frames", [2, 4, 5])
def test_changes_go_on_from_block_to_block_and_not_from_trajectory_to_trajectory(
    make_folder, monkeypatch, frames
):
    """Nine frames in blocks of several: the last of one and the first of the next are a pair."""
    monkeypatch.setattr("overtone.data.stats.BLOCK_BYTES", 8 * 6 * 8 * frames)
    folder, values = make_folder(specs=(FieldSpec("a"),))
    array = np.concatenate([content[FieldSpec("a")] for content in values["train"]])
    changes = np.diff(array.astype(np.float64), axis=1)
    stats = compute_stats(folder)
    assert stats["mean_delta"]["a"] == pytest.approx(changes.mean(), rel=1e-9)
    assert stats["std_delta"]["a"] == pytest.approx(changes.std(), rel=1e-12)
