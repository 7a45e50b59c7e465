"""Files that reach outside themselves or lie about their size are refused before any value."""

import gzip
import io
import json
import shutil
import zipfile

import h5py
import numpy as np
import pytest

import overtone as ot
from overtone.data import WellFolder, safety
from overtone.data.location import Location
from overtone.data.variables import open_arrays


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


NUMBERS = np.random.default_rng(0).standard_normal((4, 3, 2, 8, 8), dtype=np.float32)


@pytest.fixture
def store(tmp_path):
    """A zarr array, and what describes it, to be changed."""
    zarr = pytest.importorskip("zarr")

    def make(change=None, name="a.zarr", values=NUMBERS, **options):
        path = tmp_path / name
        options = {"chunks": (1, *values.shape[1:])} | options
        kind = {"shape": values.shape, "dtype": values.dtype, "overwrite": True}
        array = zarr.create_array(str(path), **kind, **options)
        array[...] = values  # given as `data`, older versions write shards in a race
        if change:
            described = next(p for p in (path / "zarr.json", path / ".zarray") if p.exists())
            entry = json.loads(described.read_text())
            change(entry)
            described.write_text(json.dumps(entry))
        return path

    return make


def read_arrays(path):
    with open_arrays(path) as arrays:
        return {name: array[:] for name, array in arrays.items()}


def codecs():
    """Of both versions: each compressor that is known, with shards and filters."""
    zarr = pytest.importorskip("zarr")
    numcodecs = pytest.importorskip("numcodecs")
    three, two = zarr.codecs, {"zarr_format": 2}
    return {
        "none": {"compressors": None},
        "gzip": {"compressors": three.GzipCodec()},
        "zstd": {"compressors": three.ZstdCodec()},
        "blosc": {"compressors": three.BloscCodec()},
        "shards": {"shards": (2, 3, 2, 8, 8)},
        "shards of gzip": {"shards": (2, 3, 2, 8, 8), "compressors": three.GzipCodec()},
        "checksum": {"compressors": [three.ZstdCodec(), three.Crc32cCodec()]},
        "2 none": {"compressors": None, **two},
        "2 zlib": {"compressors": numcodecs.Zlib(), **two},
        "2 gzip": {"compressors": numcodecs.GZip(), **two},
        "2 lz4": {"compressors": numcodecs.LZ4(), **two},
        "2 blosc": {"compressors": numcodecs.Blosc(), **two},
        "2 shuffle": {"filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.Zstd(), **two},
        "2 delta": {"filters": [numcodecs.Delta("<f4")], **two},
    }


THREE = ("none", "gzip", "zstd", "blosc", "shards", "shards of gzip", "checksum")
TWO = ("none", "zlib", "gzip", "lz4", "blosc", "shuffle", "delta")
KINDS = (*THREE, *(f"2 {kind}" for kind in TWO))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", ["", "5kB"])
def test_zarr_of_every_known_kind(store, monkeypatch, kind, memory):
    """Also where chunks must be looked at in full, because memory is short."""
    path = store(**codecs()[kind])
    if memory and "shards" not in kind:
        monkeypatch.setenv("OVERTONE_MAX_MEMORY", memory)
    np.testing.assert_allclose(read_arrays(path)[""], NUMBERS, atol=1e-5)  # delta rounds


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("none", lambda e: e["codecs"].append({"name": "pickle"}), "codec 'pickle', which is ref"),
        ("none", lambda e: e["codecs"].append("numcodecs.pickle"), "codec 'numcodecs.pickle'"),
        ("none", lambda e: e["codecs"].append({"name": "a\x1b[31m"}), r"codec 'a\\x1b\[31m'"),
        ("gzip", lambda e: e["codecs"].append({"name": "zstd"}), "compressed by gzip and zstd"),
        ("none", lambda e: e.update(data_type={"name": "object"}), "expected numbers"),
        ("none", lambda e: e.update(shape=[-1]), "not described as zarr does it"),
        ("none", lambda e: e.update(shape=[10**12, 3, 2, 8, 8]), "more than 10000000 chunks"),
        ("zstd", lambda e: e.update(shape=[10**6, 3, 2, 8, 8]), r"declares 1.5 GB, but holds"),
        ("none", lambda e: e.pop("codecs"), "not described as zarr does it: .*codecs"),
        ("none", lambda e: e.update(storage_transformers=[{}]), "storage_transformers"),
        (
            "none",
            lambda e: e["chunk_grid"]["configuration"].update(chunk_shape=[10**12, 3, 2, 8, 8]),
            r"one chunk of .* takes 1.5 PB",
        ),
        (
            "shards",
            lambda e: e["codecs"][0]["configuration"]["codecs"].append({"name": "pickle"}),
            "codec 'pickle'",
        ),
        ("2 none", lambda e: e.update(filters=[{"id": "pickle"}]), "codec 'pickle'"),
        ("2 none", lambda e: e.update(compressor={"id": "json2"}), "codec 'json2'"),
        ("2 none", lambda e: e.update(dtype="|O"), r"holds \|O; expected numbers"),
        ("2 none", lambda e: e.update(filters=[{"id": "zlib"}]), "compresses twice"),
        ("2 delta", lambda e: e["filters"][0].update(dtype="|O"), "other things than numbers"),
    ],
)
def test_zarr_that_is_refused_before_zarr_sees_it(store, monkeypatch, kind, change, message):
    path = store(change, **codecs()[kind])
    monkeypatch.setattr("zarr.open_array", lambda *_, **__: pytest.fail("zarr has opened it"))
    with pytest.raises(ot.DataError, match=message):
        read_arrays(path)


@pytest.mark.parametrize("kind", [k for k in KINDS if "none" not in k and k != "2 delta"])
def test_chunks_that_unpack_to_more_than_they_declare(store, monkeypatch, kind):
    """Those of an array of ten times the size: 15 kB instead of 1.5 kB."""
    options = codecs()[kind]
    shards = {"shards": (2, 3, 2, 80, 8)} if "shards" in kind else {}
    big = store(name="big.zarr", values=NUMBERS.repeat(10, axis=3), **(options | shards))
    path = store(**options)
    for name in ("c", "0.0.0.0.0"):
        if (big / name).is_dir():
            shutil.rmtree(path / name)
            shutil.copytree(big / name, path / name)
        elif (big / name).is_file():
            shutil.copy(big / name, path / name)
    if "shards" not in kind:
        monkeypatch.setenv("OVERTONE_MAX_MEMORY", "5kB")
    monkeypatch.setattr("zarr.open_array", lambda *_, **__: pytest.fail("zarr has opened it"))
    if kind == "shards of gzip":  # deflate does not say its size: looked at where memory is short
        monkeypatch.setenv("OVERTONE_MAX_MEMORY", "5kB")
    with pytest.raises(ot.DataError, match="unpacks to more than 1.5 kB, which the array declares"):
        read_arrays(path)


def test_a_damaged_chunk_and_one_that_grows(store):
    """Small enough to be unpacked: zarr's own error, in our words."""
    for harm in (lambda b: b[:40], lambda b: gzip.compress(gzip.decompress(b) * 3)):
        path = store(**codecs()["gzip"])
        chunk = next(p for p in (path / "c").rglob("*") if p.is_file())
        chunk.write_bytes(harm(chunk.read_bytes()))
        with pytest.raises(ot.DataError, match="a.zarr' can't be read: .* It is damaged"):
            read_arrays(path)


def test_zarr_does_not_read_other_files(store, tmp_path):
    (tmp_path / "secret").write_bytes(NUMBERS[0].tobytes())
    path = store(**codecs()["none"])
    chunk = next(p for p in (path / "c").rglob("*") if p.is_file())
    chunk.unlink()
    chunk.symlink_to(tmp_path / "secret")
    with pytest.raises(ot.DataError, match="is a link or no file.*refused"):
        read_arrays(path)
    group = tmp_path / "group.zarr"
    group.mkdir()
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (group / "density").symlink_to(path)
    with pytest.raises(ot.DataError, match="density' is a link"):
        read_arrays(group)


def test_what_a_zarr_group_says_of_its_members_is_not_believed(store, tmp_path):
    """Consolidated metadata may name other codecs than the members do."""
    path = store(name="group.zarr/density", **codecs()["zstd"])
    entry = json.loads((path / "zarr.json").read_text())
    entry["codecs"].append({"name": "pickle"})
    consolidated = {"kind": "inline", "must_understand": False, "metadata": {"density": entry}}
    content = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": consolidated}
    (path.parent / "zarr.json").write_text(json.dumps(content))
    assert np.array_equal(read_arrays(path.parent)["density"], NUMBERS)


def test_npz_bombs(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(2_000_000, np.float32))
    assert path.stat().st_size < 10_000
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "5MB")
    monkeypatch.setattr("numpy.load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ot.DataError, match="takes 8.0 MB, but only 5.0 MB of memory"):
        read_arrays(path)


def member(shape=(3,), descr="<f4", content=bytes(12)):
    header = io.BytesIO()
    entry = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, entry)
    return header.getvalue() + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (member((10**13,)), r"'a\\x1b\[1m.npy' declares 40.0 TB, but holds"),
        (member(descr="|O"), r"'a\\x1b\[1m.npy' can't be read as numbers: .*pickled"),
        (b"no array", "can't be read as arrays of numbers"),
    ],
)
def test_npz_members_that_are_not_what_they_say(tmp_path, content, message):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a\x1b[1m.npy", content)
    with pytest.raises(ot.DataError, match=message):
        read_arrays(tmp_path / "a.npz")


def test_npz_damaged_or_of_too_many_arrays(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=NUMBERS, b=NUMBERS)
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    (tmp_path / "b.npz").write_bytes(content)
    for name in ("b.npz", "a.npz"):
        with pytest.raises(ot.DataError, match="damaged zip file|can't be read|more than 1 arrays"):
            read_arrays(tmp_path / name)
        monkeypatch.setattr(safety, "MAX_OBJECTS", 1)


def test_names_that_are_no_text(path):
    """A link's name that is not UTF-8 is walked over like any other."""
    with h5py.File(path, "r+") as file:
        file.create_group(b"\xff\xfe")
    assert len(WellFolder(path)) == 6


@pytest.mark.parametrize(("chunks", "refused"), [(1, False), (3, True)])
def test_what_deflate_can_not_reach_is_refused_and_what_it_can_is_read(path, chunks, refused):
    """Zeros are stored in a thousandth of their size; where chunks are missing, in less still."""
    shape = (2, 9, 6, 8)

    def create(file, group):
        group.create_dataset("density", data=np.zeros(shape, np.float32))
        wide = (1024, 1024 * chunks)
        zeros = file.create_dataset("x", wide, "f4", chunks=(1024, 1024), compression="gzip",
                                    compression_opts=9)  # fmt: skip
        zeros[:, :1024] = 0.0
        ratio = 4 * wide[0] * wide[1] / zeros.id.get_storage_size()
        assert 900 * chunks < ratio < 1100 * chunks

    replace_density(path, create)
    if not refused:
        assert len(WellFolder(path, context=2))
        return
    with pytest.raises(ot.DataError, match="/x declares .* never written in full"):
        WellFolder(path)
