"""What is written is read back; what fails is not written."""

import errno
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

import overtone as ot
from overtone.data import FieldSpec, Storage, WellFolder, WellWriter, write_well
from overtone.data.location import Location


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("shape", [(7,), (6, 8), (4, 5, 6)])
@pytest.mark.parametrize(
    "storage",
    [
        Storage(),
        Storage(compression="gzip", fletcher32=True),
        Storage("float64", "lzf", chunk_frames=4),
    ],
)
def test_streamed_and_whole_files_hold_the_same(
    tmp_path, make_values, make_header, stack, shape, storage
):
    values, header = make_values(shape), make_header(shape)
    frames = stack(values, 2, 9, shape)
    write_well(tmp_path / "a.hdf5", values, header, storage=storage)
    with WellWriter(tmp_path / "b.hdf5", header, tuple(values), 2, storage=storage) as writer:
        for step in range(9):
            writer.append(torch.from_numpy(frames[:, step]))
    assert names(tmp_path) == ["a.hdf5", "b.hdf5"]
    for name in ("a.hdf5", "b.hdf5"):
        with h5py.File(tmp_path / name) as file:
            for spec, array in values.items():
                dataset = file[spec.group][spec.name]
                np.testing.assert_array_equal(dataset[:], array)
                assert dataset.dtype == storage.dtype
                assert dataset.fletcher32 == storage.fletcher32
                assert dataset.compression == storage.compression
                assert dataset.chunks[0] == 1
    assert (
        Location(str(tmp_path / "a.hdf5")).layout() == Location(str(tmp_path / "b.hdf5")).layout()
    )


def test_names_alone_are_enough_for_ordinary_fields(tmp_path, make_header):
    values = {
        "rho": np.ones((1, 3, 6, 8)),
        "u": np.ones((1, 3, 6, 8, 2)),
        "S": torch.ones(1, 3, 6, 8, 2, 2),
    }
    path = write_well(tmp_path / "a.hdf5", values, make_header())
    found = Location(str(path)).layout().fields
    assert found == (FieldSpec("rho"), FieldSpec("u", 1), FieldSpec("S", 2))


def test_an_error_leaves_nothing_behind(tmp_path, make_header):
    header = make_header()
    with (
        pytest.raises(KeyboardInterrupt),
        WellWriter(tmp_path / "sub" / "a.hdf5", header, [FieldSpec("a")], 1) as writer,
    ):
        writer.append(np.zeros((1, 1, 6, 8)))
        raise KeyboardInterrupt
    assert names(tmp_path / "sub") == []


def test_an_error_keeps_the_old_file(tmp_path, make_header, make_values, monkeypatch):
    path = write_well(tmp_path / "a.hdf5", make_values(), make_header())
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(ot.DataError, match="a.hdf5' can't be written: no space"):
        write_well(path, make_values(seed=1), make_header())
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert names(tmp_path) == ["a.hdf5"]


def test_nothing_is_there_before_the_end(tmp_path, make_header):
    with WellWriter(tmp_path / "a.hdf5", make_header(), [FieldSpec("a")], 1) as writer:
        writer.append(np.zeros((1, 1, 6, 8)))
        assert not (tmp_path / "a.hdf5").exists()
    assert (tmp_path / "a.hdf5").exists()


def test_the_callers_array_may_be_reused(tmp_path, make_header):
    frame = np.zeros((1, 1, 6, 8))
    with WellWriter(tmp_path / "a.hdf5", make_header(), [FieldSpec("a")], 1) as writer:
        for step in range(5):
            frame[:] = step
            writer.append(frame)
    window, _ = WellFolder(tmp_path / "a.hdf5", context=4)[0]
    assert window.fields[:, 0, 0, 0].tolist() == [0, 1, 2, 3]


def test_memory_does_not_grow_with_frames(tmp_path, make_header):
    """At most a chunk's worth of frames waits."""
    storage = Storage(chunk_frames=4)
    header, fields = make_header(), [FieldSpec("a")]
    with WellWriter(tmp_path / "a.hdf5", header, fields, 1, storage=storage) as writer:
        for _ in range(50):
            writer.append(np.zeros((1, 1, 6, 8)))
            assert len(writer._waiting) < 4


def test_the_same_content_gives_the_same_bytes(tmp_path, make_header, make_values):
    a, b = (write_well(tmp_path / f"{n}.hdf5", make_values(), make_header()) for n in "ab")
    assert a.read_bytes() == b.read_bytes()


def test_flipped_bits_are_found_by_the_checksum(tmp_path, make_header, make_values):
    values = make_values()
    path = write_well(tmp_path / "a.hdf5", values, make_header(), storage=Storage(fletcher32=True))
    content = bytearray(path.read_bytes())
    position = content.find(next(iter(values.values()))[0, 0].tobytes()[:64])
    content[position + 5] ^= 1
    path.write_bytes(content)
    data = WellFolder(path)
    with pytest.raises(ot.DataError, match="density of trajectory 0.*can't be read"):
        data[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: Storage("int32"), "floating-point"),
        (lambda h: Storage(compression="zip"), "'gzip', 'lzf' or None"),
        (lambda h: h(axes=("x", "x")), "different names"),
        (lambda h: h(axes=("x", "time")), "none 'time'"),
        (lambda h: h(coordinates=((0.0,), (1.0,))), r"\(1, 1\) points; the grid has \(6, 8\)"),
        (lambda h: h(parameters={"grid_type": 1.0}), "can't be names of parameters"),
        (lambda h: write_well("x", {"a": np.zeros((6, 8))}, h()), "expected .n, T. and the grid"),
        (lambda h: write_well("x", {"a": np.zeros((1, 1, 6, 9))}, h()), r"expected \(1, 1, 6, 8"),
        (lambda h: write_well("x", {}, h()), "scalars .order 0. first"),
        (lambda h: write_well("x", {"../a": np.zeros((1, 1, 6, 8))}, h()), "name of a field"),
        (lambda h: WellWriter("x", h(), [FieldSpec("u", 1), FieldSpec("a")], 1), "first, then"),
        (lambda h: WellWriter("x", h(), [FieldSpec("a")], 0), "num_trajectories is 0"),
    ],
)
def test_mistakes_are_explained(tmp_path, monkeypatch, make_header, call, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ot.OvertoneError, match=message):
        call(make_header)
    assert names(tmp_path) == []


def test_frames_of_the_wrong_shape_and_no_frames(tmp_path, make_header):
    for frames, message in (([np.zeros((1, 2, 6, 8))], "a frame has shape"), ([], "no frame was")):
        with (
            pytest.raises(ot.DataError, match=message),
            WellWriter(tmp_path / "a.hdf5", make_header(), [FieldSpec("a")], 1) as writer,
        ):
            for frame in frames:
                writer.append(frame)
        assert names(tmp_path) == []


FULL_DISK = """
import os, sys, numpy as np
from overtone import DataError
from overtone.data import FieldSpec, Header, WellWriter, write_well
header = Header("toy", (64, 64), (1.0, 1.0), "open")
try:
    with WellWriter(sys.argv[1], header, [FieldSpec("a")], 1) as writer:
        for step in range(1500):
            if step == 30:  # from now on whatever HDF5 writes fails
                os.dup2(os.open("/dev/full", os.O_RDWR), writer._file.id.get_vfd_handle())
            writer.append(np.ones((1, 1, 64, 64)))
except DataError as error:
    print(error)
write_well(sys.argv[1] + "2", {"a": np.ones((1, 9, 64, 64))}, header)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_hdf5_survives_a_write_that_fails(tmp_path):
    """In a process of its own: left alone, HDF5 would crash it at its end."""
    path = tmp_path / "a.hdf5"
    path.write_bytes(b"old")
    line = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"'{path}' can't be written: No space left on device" in done.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.hdf5", "a.hdf52"]
    assert path.read_bytes() == b"old"


def test_room_is_set_aside_before_anything_is_written(tmp_path, make_header, monkeypatch):
    """A disk that is full in the middle of a file: HDF5 itself is never refused anything."""
    left = [20_000_000]

    def allocate(descriptor, offset, length):
        left[0] -= length
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", allocate)
    monkeypatch.setattr("overtone.data.writer._abandon", lambda _: pytest.fail("HDF5 had failed"))
    path, frame = tmp_path / "a.hdf5", np.ones((1, 1, 64, 64))
    writer = WellWriter(path, make_header((64, 64)), [FieldSpec("a")], 1)
    message = "a.hdf5' can't be written: No space left on device"
    with pytest.raises(ot.DataError, match=message), writer:
        while True:
            writer.append(frame)
    assert writer.num_frames > 0
    with pytest.raises(ot.DataError, match="can't be written: No space left on device"):
        write_well(path, {"a": np.ones((1, 400, 64, 64))}, make_header((64, 64)))
    assert [*tmp_path.iterdir()] == []


def test_what_was_set_aside_is_given_back(tmp_path, make_header, make_values, monkeypatch):
    write_well(tmp_path / "a.hdf5", make_values(), make_header())
    assert (tmp_path / "a.hdf5").stat().st_size < 100_000
    monkeypatch.delattr("os.posix_fallocate")
    write_well(tmp_path / "b.hdf5", make_values(), make_header())
    assert (tmp_path / "a.hdf5").read_bytes() == (tmp_path / "b.hdf5").read_bytes()


def test_a_folder_that_can_not_be_made(tmp_path, make_header, make_values):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(ot.DataError, match="b.hdf5' can't be written: (File exists|Not a dir)"):
        write_well(tmp_path / "a" / "b.hdf5", make_values(), make_header())


@pytest.mark.parametrize("as_tensor", [False, True])
def test_a_frame_may_be_used_again_once_it_was_given(tmp_path, make_header, as_tensor):
    """Solvers step in place; several frames wait until a chunk is full."""
    frame = np.zeros((1, 1, 6, 8), np.float32)
    fields, storage = (FieldSpec("a"),), Storage(chunk_frames=4)
    with WellWriter(tmp_path / "a.hdf5", make_header(), fields, 1, storage=storage) as writer:
        for step in range(6):
            frame[:] = step
            writer.append(torch.from_numpy(frame) if as_tensor else frame)
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert file["t0_fields/a"][0, :, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_time_begins_at_zero_however_a_file_is_written(tmp_path, make_header, make_values):
    header, frame = make_header(dt=0.25), np.zeros((1, 1, 6, 8), np.float32)
    with WellWriter(tmp_path / "a.hdf5", header, (FieldSpec("a"),), 1) as writer:
        for _ in range(3):
            writer.append(frame)
    write_well(tmp_path / "b.hdf5", make_values(steps=3), header)
    for name in ("a.hdf5", "b.hdf5"):
        with h5py.File(tmp_path / name) as file:
            assert file["dimensions/time"][:].tolist() == [0.0, 0.25, 0.5]
