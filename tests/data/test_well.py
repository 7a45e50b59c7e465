"""Windows: every one once, the right frames, the same from any process."""

import os
import pickle
import shutil

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import overtone as ot
from overtone.data import (
    FieldSpec,
    Header,
    Storage,
    WellFolder,
    collate,
    write_well,
)
from overtone.solvers.datasets import build_system, generate


def all_of(values, stack, num=2, steps=9, shape=(6, 8)):
    return np.concatenate([stack(content, num, steps, shape) for content in values])


@pytest.mark.parametrize("shape", [(7,), (6, 8), (4, 5, 6)])
def test_every_window_has_its_frames(make_folder, stack, shape):
    folder, values = make_folder(shape=shape)
    truth = torch.from_numpy(all_of(values["train"], stack, shape=shape))
    data = WellFolder(folder, context=3, horizon=2)
    assert len(data) == 4 * 5
    for index in range(len(data)):
        window, target = data[index]
        trajectory, start = divmod(index, 5)
        assert torch.equal(window.fields, truth[trajectory, start : start + 3])
        assert torch.equal(target, truth[trajectory, start + 3 : start + 5])
        assert data.where(index).trajectory == trajectory % 2
        assert data.where(index).step == start
        assert data.where(index).file.endswith(f"toy_{trajectory // 2}.hdf5")
    assert window.domain.shape == shape
    assert window.domain.dt == 0.25


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    context=st.integers(1, 4),
    horizon=st.integers(1, 3),
    stride=st.integers(1, 3),
    steps=st.integers(5, 12),
    start=st.integers(0, 3),
)
def test_windows_are_complete_and_unique(tmp_path, context, horizon, stride, steps, start):
    """A field whose value is 1000 · trajectory + frame shows which frames a window has."""

    values = (
        1000 * np.arange(2)[:, None, None] + np.arange(steps)[:, None] + np.zeros((2, steps, 3))
    )
    folder = tmp_path / f"{steps}"
    header = Header("count", (3,), (1.0,), "open")
    for file in range(2):
        write_well(folder / f"{file}.hdf5", {"a": values + 2000 * file}, header)
    options = {"stride": stride, "trajectories": slice(start, None)}
    length = (context + horizon - 1) * stride + 1
    if length > steps:
        with pytest.raises(ot.DataError, match=f"has {steps} frames.*need {length}"):
            WellFolder(folder, context=context, horizon=horizon, **options)
        return
    data = WellFolder(folder, context=context, horizon=horizon, **options)
    found = [
        [*window.fields[:, 0, 0].int().tolist(), *target[:, 0, 0].int().tolist()]
        for window, target in data
    ]
    expected = [
        [1000 * n + t + stride * k for k in range(context + horizon)]
        for n in range(start, 4)
        for t in range(steps - length + 1)
    ]
    assert found == expected


def test_fields_that_lack_axes_are_broadcast(make_folder, stack):
    specs = (
        FieldSpec("density"),
        FieldSpec("mask", sample_varying=False, time_varying=False),
        FieldSpec("drive", sample_varying=False),
        FieldSpec("map", time_varying=False),
        FieldSpec("profile", dim_varying=(False, True)),
        FieldSpec("clock", sample_varying=False, dim_varying=(False, False)),
        FieldSpec("constant", sample_varying=False, time_varying=False, dim_varying=(False, False)),
        FieldSpec("wind", 1, time_varying=False, dim_varying=(True, False)),
        FieldSpec("stress", 2, sample_varying=False),
    )
    folder, values = make_folder(specs=specs)
    truth = torch.from_numpy(all_of(values["train"], stack))
    data = WellFolder(folder, context=2, horizon=1)
    for _ in range(2):  # constants come from memory the second time
        for index in (0, 8, 27):
            window, target = data[index]
            trajectory, start = divmod(index, 7)
            assert torch.equal(window.fields, truth[trajectory, start : start + 2])
            assert torch.equal(target, truth[trajectory, start + 2 : start + 3])


def test_selected_fields_and_channels_keep_the_wells_order(make_folder):
    folder, _ = make_folder()
    everything = WellFolder(folder)
    data = WellFolder(folder, fields=("D_xy", "velocity", "density"))
    assert data.domain.fields == ("density", "velocity_x", "velocity_y", "D_xy")
    assert torch.equal(data[5][0].fields, everything[5][0].fields[:, [0, 2, 3, 5]])


@pytest.mark.parametrize("dtype", ["float16", "float64", ">f4"])
@pytest.mark.parametrize("out", [torch.float32, torch.float64])
def test_values_of_other_types(tmp_path, make_header, make_values, stack, dtype, out):
    values = make_values()
    write_well(tmp_path / "a.hdf5", values, make_header())
    with h5py.File(tmp_path / "a.hdf5", "r+") as file:
        old = file["t0_fields/density"]
        attributes, array = dict(old.attrs), old[:]
        del file["t0_fields/density"]
        file["t0_fields"].create_dataset("density", data=array.astype(dtype))
        file["t0_fields/density"].attrs.update(attributes)
    window, _ = WellFolder(tmp_path / "a.hdf5", context=2, dtype=out)[0]
    truth = stack(values, 2, 9, (6, 8))[0, :2]
    assert window.fields.dtype == out
    np.testing.assert_allclose(window.fields.numpy(), truth, rtol=1e-3 if dtype == "float16" else 0)


def test_coarsening_averages_cells(make_folder):
    folder, _ = make_folder()
    fine, coarse = WellFolder(folder), WellFolder(folder, coarsen=(2, 4))
    expected = torch.nn.functional.avg_pool2d(fine[3][0].fields, (2, 4))
    assert torch.allclose(coarse[3][0].fields, expected, atol=1e-6)
    assert coarse.domain.shape == (3, 2)
    assert coarse.domain.extent == fine.domain.extent
    with pytest.raises(ot.DataError, match=r"must divide the grid of \(6, 8\)"):
        WellFolder(folder, coarsen=4)


def test_whole_trajectories(make_folder, stack):
    folder, values = make_folder()
    truth = torch.from_numpy(all_of(values["train"], stack))
    data = WellFolder(folder, context=3, whole=True, stride=2)
    assert len(data) == 4
    for (window, target), frames in zip(data, truth, strict=True):
        assert torch.equal(torch.cat([window.fields, target]), frames[::2])
        assert len(window.fields) == 3
    assert window.domain.dt == 0.5


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_do_not_depend_on_workers(make_folder, stack, workers):
    folder, values = make_folder()
    truth = torch.from_numpy(all_of(values["train"], stack))
    data = WellFolder(folder, context=3)
    _ = data[0]  # opens a file before workers fork
    loader = DataLoader(data, batch_size=4, num_workers=workers, collate_fn=collate)
    batches = [*loader]
    assert len(batches) == 6
    for number, (window, target) in enumerate(batches):
        assert window.batched
        assert window.domain == data.domain
        for row in range(4):
            trajectory, start = divmod(4 * number + row, 6)
            assert torch.equal(window.fields[row], truth[trajectory, start : start + 3])
            assert torch.equal(target[row], truth[trajectory, start + 3 : start + 4])
    assert torch.equal(data[0][0].fields, truth[0, :3])


def test_items_do_not_share_memory(make_folder):
    data = WellFolder(make_folder()[0])
    first = data[0][0].fields
    copy = first.clone()
    _ = data[7]
    assert torch.equal(first, copy)


@pytest.mark.parametrize("coarsen", [1, 2])
def test_frames_that_are_kept_are_the_same_and_nobody_elses(make_folder, coarsen):
    folder, _ = make_folder()
    plain = WellFolder(folder, context=2, horizon=2, stride=2, coarsen=coarsen)
    kept = WellFolder(folder, context=2, horizon=2, stride=2, coarsen=coarsen, keep=10**9)
    for _ in range(2):
        for index in range(len(plain)):
            (window, target), (same, following) = plain[index], kept[index]
            assert torch.equal(window.fields, same.fields)
            assert torch.equal(target, following)
            same.fields.zero_(), following.zero_()  # pyright: ignore[reportUnusedExpression]
    twin = pickle.loads(pickle.dumps(kept))
    assert torch.equal(twin[3][0].fields, plain[3][0].fields)
    assert len(pickle.dumps(kept)) < 2 * len(pickle.dumps(plain))


@pytest.mark.parametrize(("spare", "times"), [(0, 4), (-1, 40)])
def test_frames_are_kept_if_all_of_them_fit(make_folder, monkeypatch, spare, times):
    folder, _values = make_folder()
    size = sum(WellFolder(folder, whole=True, context=1).frames(i, 0, 9).fields.nbytes
               for i in range(4))  # fmt: skip
    data = WellFolder(folder, context=3, horizon=2, keep=size + spare)
    read, calls = data._read_file, []
    monkeypatch.setattr(data, "_read_file", lambda *a: (calls.append(a), read(*a))[1])
    for index in [*range(len(data))] * 2:
        data[index]
    assert len(calls) == times


def test_parameters_and_scalars(tmp_path, make_header, make_values):
    header = make_header(parameters={"reynolds": 0.1})
    scalars = {"forcing": np.array([3.0, 4.0]), "energy": np.arange(18.0).reshape(2, 9)}
    write_well(tmp_path / "a.hdf5", make_values(), header, scalars=scalars)
    data = WellFolder(tmp_path / "a.hdf5", context=2, stride=2)
    index = 5 + 3  # second trajectory, frame 3
    assert data.parameters(index) == {"reynolds": 0.1, "forcing": 4.0}
    assert data.scalars(index)["energy"].tolist() == [12.0, 14.0, 16.0]


def test_a_folder_of_several_dt_covers_them(tmp_path, make_header, make_values):
    for number, dt in enumerate((0.44, 0.14, 1.4)):
        write_well(tmp_path / f"{number}.hdf5", make_values(), make_header(dt=dt))
    data = WellFolder(tmp_path, context=2, stride=2)
    assert (data.domain.dt, data.domain.dt_range) == (0.88, (0.28, 2.8))
    assert [data.domain_of(row).dt for row in (0, 2, 4)] == [0.88, 0.28, 2.8]
    assert all(data.domain_of(row).has_one_dt for row in range(6))


def test_indices(make_folder):
    data = WellFolder(make_folder()[0])
    assert torch.equal(data[-1][0].fields, data[len(data) - 1][0].fields)
    for index in (len(data), -len(data) - 1):
        with pytest.raises(IndexError):
            data[index]


def test_mistakes_are_explained(make_folder, tmp_path):
    folder, _ = make_folder(files=(1, 1, 0))
    (folder / "data" / "test").mkdir()
    cases = [
        (tmp_path / "nothing", {}, "does not exist; expected a folder with data/train"),
        (folder, {"split": "test"}, "split 'test' .* is empty"),
        (folder, {"split": "vaild"}, "no split 'vaild'; it has .*did you mean 'valid'"),
        (tmp_path, {}, "no split 'train'; expected HDF5 files in it"),
        (folder, {"fields": ("densty",)}, "no field 'densty'; it has .*did you mean 'density'"),
        (folder, {"fields": ()}, "fields is empty"),
        (folder, {"context": 0}, "context is 0"),
        (folder, {"context": 9}, "has 9 frames.*need 10"),
        (folder, {"trajectories": slice(5, 9)}, "has 0 to 1 in split"),
        (folder, {"trajectories": [2]}, "has 0 to 1 in split"),
    ]
    for path, options, message in cases:
        with pytest.raises(ot.DataError, match=message):
            WellFolder(path, **options)


def test_files_that_disagree(make_folder, make_values, make_header):
    folder, _ = make_folder()
    write_well(folder / "data/train/z.hdf5", make_values((6, 6)), make_header((6, 6)))
    with pytest.raises(ot.DataError, match=r"z.hdf5' has shape \(6, 6\).*overtone data check"):
        WellFolder(folder)


def test_a_file_that_was_exchanged(make_folder, make_values, make_header):
    folder, _ = make_folder()
    data = WellFolder(folder)
    write_well(folder / "data/train/toy_0.hdf5", make_values((6, 6)), make_header((6, 6)))
    with pytest.raises(ot.DataError, match="has changed since it was first read"):
        data[0]


def test_any_frames_of_a_trajectory(make_folder, stack):
    folder, values = make_folder()
    data = WellFolder(folder, "train", context=2, stride=2)
    frames = [stack(content, 2, 9, (6, 8)) for content in values["train"]]
    assert [data.num_frames(i) for i in range(4)] == [5] * 4
    found = data.frames(3, 1, 3)
    assert np.array_equal(found.fields, frames[1][1, 2:7:2])
    assert found.domain == data.domain_of(3) == data.domain
    assert data.where(data.first_item(3)) == data.where(data.first_item(2) + 5)
    assert data.where(data.first_item(3)).trajectory == 1
    for start, count in ((3, 3), (-1, 2), (0, 0)):
        with pytest.raises(ot.DataError, match="it has 5 at stride 2"):
            data.frames(0, start, count)


def test_a_fingerprint_knows_the_data_and_not_their_place(make_folder, tmp_path):
    folder, _ = make_folder()
    mark = WellFolder(folder, context=3).fingerprint()
    assert len(mark) == 64
    assert mark == WellFolder(folder, context=1, stride=2, fields="D", coarsen=2).fingerprint()
    moved = shutil.copytree(folder, tmp_path / "moved", copy_function=shutil.copyfile)
    os.utime(moved / "data/train/toy_0.hdf5", (1, 1))
    assert mark == WellFolder(moved, context=3).fingerprint()
    assert mark != WellFolder(moved, "valid", context=3).fingerprint()
    (moved / "data/train/toy_1.hdf5").rename(moved / "data/train/toy_2.hdf5")
    assert mark != WellFolder(moved, context=3).fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        {"shape": (6, 10)},
        {"num": 1},
        {"steps": 8},
        {"files": 1},
        {"dt": 0.5},
        {"seed": 1},
        {"boundaries": ("wall", "periodic")},
        {"storage": Storage("float64")},
    ],
)
def test_other_data_have_other_fingerprints(make_values, make_header, tmp_path, other):
    marks = []
    for options in ({}, other):
        shape, steps = options.get("shape", (6, 8)), options.get("steps", 9)
        values = make_values(shape, options.get("num", 2), steps, seed=options.get("seed", 0))
        header = make_header(shape, options.get("boundaries", "periodic"), options.get("dt", 0.25))
        for index in range(options.get("files", 2)):
            path = tmp_path / f"of_{len(marks)}" / f"{index}.hdf5"
            write_well(path, values, header, storage=options.get("storage"))
        marks.append(WellFolder(path.parent, context=3).fingerprint())
    assert marks[0] != marks[1]


@pytest.mark.parametrize("field", ["density", "pressure", "velocity", "D"])
def test_a_fingerprint_looks_at_every_field_and_at_first_and_last_frames(make_folder, field):
    folder, _ = make_folder(files=(1, 0, 0))
    path = next(folder.rglob("*.hdf5"))
    marks = {WellFolder(folder, context=3).fingerprint()}
    for trajectory, step in ((0, 0), (-1, -1)):
        with h5py.File(path, "r+") as file:
            group = next(g for g in ("t0_fields", "t1_fields", "t2_fields") if field in file[g])
            file[group][field][trajectory, step] += 1
        marks.add(WellFolder(folder, context=3).fingerprint())
    assert len(marks) == 3


def test_a_fingerprint_reads_little(make_folder, monkeypatch):
    folder, _ = make_folder(shape=(40, 50))
    monkeypatch.setattr("overtone.data.well.SAMPLED_CELLS", 0)
    read, original = [], h5py.Dataset.__getitem__

    def count(dataset, index, **options):
        values = original(dataset, index, **options)
        read.append(np.size(values))
        return values

    data = WellFolder(folder, context=3)
    monkeypatch.setattr(h5py.Dataset, "__getitem__", count)
    data.fingerprint()
    assert 0 < max(read) <= 2**8 * 4
    assert len(read) == 2 * 4 * 4


def test_the_same_data_is_cut_into_other_windows(tmp_path):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = generate(system, tmp_path, trajectories=6, steps=12, splits=(0.5, 0.25, 0.25))
    first = WellFolder(folder, "train", 2, stride=2, coarsen=2, trajectories=[0, 2], keep=10)
    other = first.again(context=3, horizon=2, keep=10**9)
    assert (other.context, other.horizon, other.num_trajectories) == (3, 2, 2)
    assert other.domain == first.domain
    for trajectory in (0, 1):
        one, two = (data.frames(trajectory, 0, 6).fields for data in (first, other))
        assert torch.equal(one, two)
    valid = first.again(context=2, horizon=1, split="valid")
    assert (valid.split, valid.domain) == ("valid", first.domain)
    expected = WellFolder(folder, "valid", 2, stride=2, coarsen=2)
    assert (valid.num_trajectories, len(valid)) == (expected.num_trajectories, len(expected))


def test_a_folder_says_what_is_in_it_in_a_line(tmp_path):
    system = build_system("kuramoto_sivashinsky", grid=(64,))
    folder = generate(system, tmp_path, trajectories=3, steps=12, splits=(0.34, 0.33, 0.33))
    text = repr(WellFolder(folder, "train", 3, 2))
    assert "split 'train': 1 trajectories of 12 frames, 8 windows of 3 + 2 frames; u on 64" in text
