"""Files that reach outside themselves or lie about their size are refused before any value."""

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data import WellFolder, safety
from overtone.data.location import Location


@pytest.fixture
def path(make_folder):
    folder, _ = make_folder(files=(1, 0, 0))
    return folder / "data" / "train" / "toy_0.hdf5"


def replace_density(path, create):
    with h5py.File(path, "r+") as file:
        group = file["t0_fields"]
        attributes = dict(group["density"].attrs)
        del group["density"]
        create(file, group)
        if isinstance(group.get("density", getlink=True), h5py.HardLink):
            for key, value in attributes.items():
                group["density"].attrs[key] = value


def test_external_link(path, tmp_path):
    with h5py.File(tmp_path / "secret.h5", "w") as other:
        other["x"] = np.zeros((2, 9, 6, 8), dtype=np.float32)

    def link(_, group):
        group["density"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/x")

    replace_density(path, link)
    with pytest.raises(ot.DataError, match="/t0_fields/density is an external link.*refused"):
        WellFolder(path)


def test_external_link_anywhere_in_the_file(path, tmp_path):
    with h5py.File(path, "r+") as file:
        file.create_group("a/b/c")["d"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/")
    with pytest.raises(ot.DataError, match="/a/b/c/d is an external link"):
        WellFolder(path)


def test_external_storage(path, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(2 * 9 * 6 * 8 * 4))

    def create(_, group):
        files = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
        group.create_dataset("density", (2, 9, 6, 8), "f4", external=files)

    replace_density(path, create)
    with pytest.raises(ot.DataError, match="density has external storage"):
        WellFolder(path)


def test_virtual_dataset(path, tmp_path):
    def create(_, group):
        layout = h5py.VirtualLayout((2, 9, 6, 8), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (2, 9, 6, 8))
        group.create_virtual_dataset("density", layout)

    replace_density(path, create)
    with pytest.raises(ot.DataError, match="density is a virtual dataset"):
        WellFolder(path)


def test_soft_links_and_cycles_inside_the_file_are_harmless(path):
    with h5py.File(path, "r+") as file:
        file["loop"] = h5py.SoftLink("/t0_fields")
        file.create_group("ring")["ring"] = file["/"]
    assert len(WellFolder(path)) == 6


@pytest.mark.parametrize("options", [{}, {"chunks": True}, {"compression": "gzip"}])
def test_forty_terabytes_in_a_small_file(path, options, monkeypatch):
    def create(_, group):
        group.create_dataset("density", (2, 9, 6, 10**11), "f4", **options)

    replace_density(path, create)
    assert path.stat().st_size < 100_000

    def read(dataset, *_):
        assert dataset.name != "/t0_fields/density", "refused before any value is read"
        return original(dataset, *_)

    original = h5py.Dataset.__getitem__
    monkeypatch.setattr(h5py.Dataset, "__getitem__", read)
    monkeypatch.setattr(h5py.Dataset, "read_direct", lambda *_: pytest.fail("a value was read"))
    with pytest.raises(ot.DataError, match="declares 43.2 TB.*but the file holds"):
        WellFolder(path)


def test_compressed_zeros_are_honest(tmp_path):
    with h5py.File(tmp_path / "zeros.h5", "w") as file:
        file.create_dataset("x", data=np.zeros((1, 400, 400, 50), "f4"), compression="gzip")
    with Location(str(tmp_path / "zeros.h5")).open() as file:
        assert file["x"].size == 8_000_000


def test_an_item_that_does_not_fit_into_memory(make_folder, monkeypatch):
    folder, _ = make_folder()
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "10kB")
    with pytest.raises(ot.DataError, match="one item of .* takes .* kB.*fewer frames or fields"):
        WellFolder(folder)


def test_too_many_objects(path, monkeypatch):
    monkeypatch.setattr(safety, "MAX_OBJECTS", 5)
    with pytest.raises(ot.DataError, match="more than 5 objects"):
        WellFolder(path)
