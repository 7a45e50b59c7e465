"""Open files: shared by threads, left behind by forks and pickles, and never believed blindly."""

import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.utils.data import DataLoader

import overtone as ot
from overtone.data import (
    FieldSpec,
    WellFolder,
    check,
    compute_stats,
    write_well,
)
from overtone.data.handles import OpenFile


@pytest.mark.parametrize(
    "method",
    [
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow),
        pytest.param("forkserver", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # Python 3.12
def test_workers_of_every_kind_while_threads_read(make_folder, method):
    """Files are open and a lock may be held at the moment when a worker begins."""
    folder, _ = make_folder()
    data = WellFolder(folder, context=3)
    expected = [window.fields for window, _ in data]
    stop = threading.Event()

    def read():
        while not stop.is_set():
            _ = data[0]

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for _ in range(3 if method == "fork" else 1):
            loader = DataLoader(
                data, None, num_workers=1, multiprocessing_context=method, timeout=60
            )
            found = [window.fields for window, _ in loader]
            assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    finally:
        stop.set()
        thread.join()


def test_a_fork_leaves_the_lock_of_a_reading_thread_behind(make_folder):
    folder, _ = make_folder()
    data = WellFolder(folder, context=3)
    expected = data[0][0].fields
    with data._handles.reading(data.files[0], data.layouts[0]):  # as another thread would
        loader = DataLoader(data, None, num_workers=1, multiprocessing_context="fork", timeout=60)
        window, _ = next(iter(loader))
    assert torch.equal(window.fields, expected)
    assert torch.equal(data[0][0].fields, expected)


@pytest.mark.parametrize("max_open", [64, 1])
def test_threads_share_a_dataset(make_folder, max_open):
    """Every thread gets its own values, also where files are closed for others all the time."""
    folder, _ = make_folder(files=(3, 0, 0), shape=(24, 32), specs=(FieldSpec("velocity", 1),))
    data = WellFolder(folder, context=3, max_open=max_open)
    expected = [window.fields.clone() for window, _ in data]
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0)).tolist()

    def wrong(first):
        indices = order[first:] + order[:first]
        found = 0
        for index in indices:
            found += not torch.equal(data[index][0].fields, expected[index])
            if index % 7 == 0:
                data.close()
        return found

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(wrong, range(0, 32, 2))) == 0
    finally:
        sys.setswitchinterval(before)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path):
    """Other values of the same size, as `cp` over a file writes them."""
    with path.open("r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(content)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("harm", [cut, overwrite])
@pytest.mark.parametrize("read", ["window", "frames", "scalars", "fingerprint"])
def test_a_file_that_changes_while_it_is_open(make_folder, harm, read):
    """HDF5 itself would return zeros."""
    folder, _ = make_folder(files=(1, 0, 0), shape=(24, 32), parameters={"reynolds": 1.0})
    path = next(folder.rglob("*.hdf5"))
    data = WellFolder(folder, context=3)
    assert data[0][0].fields.any()
    harm(path)
    with pytest.raises(ot.DataError, match="toy_0.hdf5' has changed since .*overtone data check"):
        match read:
            case "window":
                _ = data[len(data) - 1]
            case "frames":
                data.frames(1, 8, 1)
            case "scalars":
                data.parameters(0)
            case "fingerprint":
                data.fingerprint()


def test_a_file_that_changed_between_two_openings(make_folder, make_values, make_header):
    folder, _ = make_folder()
    path = folder / "data/train/toy_0.hdf5"
    data = WellFolder(folder, context=3)
    expected = data[0][0].fields
    write_well(path, make_values(seed=5), make_header())
    assert torch.equal(data[0][0].fields, expected), "the open one is still the old one"
    for dataset in (data, pickle.loads(pickle.dumps(data))):
        dataset.close()
        with pytest.raises(ot.DataError, match="has changed since it was first read"):
            _ = dataset[0]
    assert not torch.equal(WellFolder(folder, context=3)[0][0].fields, expected)


def test_statistics_see_that_a_file_was_cut(make_folder, monkeypatch):
    folder, _ = make_folder(files=(1, 0, 0), shape=(24, 32))
    path, original = next(folder.rglob("*.hdf5")), OpenFile.read

    def read(*arguments):
        cut(path)
        original(*arguments)

    monkeypatch.setattr(OpenFile, "read", read)
    with pytest.raises(ot.DataError, match="has changed since"):
        compute_stats(folder)
    findings = [f.message for f in check(folder) if f.severity == "error"]
    assert any("truncated or damaged" in message for message in findings)


def test_pickling_leaves_handles_behind(make_folder):
    data = WellFolder(make_folder()[0])
    item = data[4]
    again = pickle.loads(pickle.dumps(data))
    assert len(again._handles) == 0
    assert torch.equal(again[4][0].fields, item[0].fields)


def test_few_files_are_open_at_a_time(make_folder):
    folder, _ = make_folder(files=(5, 0, 0))
    data = WellFolder(folder, context=3, max_open=2)
    everything = [window.fields.clone() for window, _ in data]
    assert len(data._handles) == 2
    again = [data[i][0].fields for i in reversed(range(len(data)))]
    assert all(torch.equal(a, b) for a, b in zip(everything, reversed(again), strict=True))
    data.close()
    assert len(data._handles) == 0
