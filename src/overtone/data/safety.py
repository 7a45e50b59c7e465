"""What a file may not do to us before we read a single value of it.

An HDF5 file may point outside itself (external links, external storage, virtual datasets), so
that opening a downloaded file reads others. It may also declare any size: a file of 1 kB can hold
a dataset of 40 TB that was never written. `inspect` refuses both by looking at metadata only:

- Uncompressed data must be in the file in full: stored bytes >= declared bytes. A
  dimension of netCDF-4 without a coordinate variable is a length and no data, and is let pass.
- Compressed data may be at most `MAX_RATIO` times as large as what is stored. Deflate can't reach
  that ratio, so no honest file is refused.
- What one read is about to allocate must fit into the memory that is available (`require_memory`).

A zarr store is a folder of JSON and of chunks, which name their own decoders and sizes.
`inspect_zarr` reads the JSON before zarr does, knows the decoders that compute and nothing else,
and compares what chunks claim to unpack to with what the array declares. `inspect_npz` does the
same for the arrays in a zip file.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import h5py
import numpy as np
from h5py import h5ds, h5l, h5o, h5z

from overtone.errors import DataError
from overtone.guard.limits import available_memory, readable, require_memory
from overtone.guard.names import shown

MAX_OBJECTS = 10_000
MAX_RATIO = 2_000
BARE = b"This is a netCDF dimension but not a netCDF variable"
"""What netCDF-4 calls a dimension without a coordinate variable; its length follows."""
NOT_COMPRESSING = {h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}

ZARR_FILES = {3: "zarr.json", 2: ".zarray"}
"""Where each version of zarr describes an array."""
MAX_JSON_BYTES = 16_000_000
MAX_CHUNKS = 10_000_000
SMALL = 64_000_000
"""Zarr arrays up to this many bytes may be compressed as much as they like: constants are."""
NUMBERS = re.compile(r"[<>|]?[fiu][1248]|float(16|32|64)|u?int(8|16|32|64)")
COMPRESSORS = {"gzip": 1032, "zlib": 1032, "zstd": 2**15, "blosc": 0, "lz4": 0}
"""What unpacks chunks, and how many times larger at most; 0 where a chunk always says its size."""
ARRANGING = {"bytes", "transpose", "crc32c", "shuffle", "delta"}
"""Codecs that keep the number of bytes, or add a few."""
CHECKSUM_BYTES = 4


def inspect(file: h5py.File, name: str) -> None:
    """Walk all objects of an open file; raise `DataError` for what is unsafe.

    Args:
        file: an open HDF5 file.
        name: what to call it in an error.
    """
    size = file.id.get_filesize()
    pending: list[tuple[h5py.Group, str]] = [(file, "")]
    seen = {h5o.get_info(file.id).addr}
    while pending:
        group, parent = pending.pop()
        for key in group.id:  # names as bytes, which need not be text
            path = f"{parent}/{shown(key.decode(errors='surrogateescape'))}"
            kind = group.id.links.get_info(key).type
            if kind == h5l.TYPE_SOFT:
                continue  # leads to something in this file, which the walk meets by itself
            if kind != h5l.TYPE_HARD:
                raise DataError(
                    f"'{name}': {path} is an external link, which would read another file; it is "
                    "refused. Copy the data into the file"
                )
            entry = group[key]
            address = h5o.get_info(entry.id).addr
            if address in seen:
                continue
            seen.add(address)
            if len(seen) > MAX_OBJECTS:
                raise DataError(
                    f"'{name}' holds more than {MAX_OBJECTS} objects; a Well file has few"
                )
            if isinstance(entry, h5py.Group):
                pending.append((entry, path))
            elif isinstance(entry, h5py.Dataset):
                inspect_dataset(entry, size, f"'{name}': {path}")


def inspect_dataset(dataset: h5py.Dataset, file_size: int, where: str) -> None:
    """Refuse a dataset that lies outside the file or declares more than the file can hold.

    Args:
        dataset: any dataset.
        file_size: bytes of the whole file.
        where: what to call the dataset in an error.
    """
    if dataset.is_virtual:
        raise DataError(f"{where} is a virtual dataset, which reads other files; it is refused")
    if dataset.external:
        raise DataError(f"{where} has external storage, which reads another file; it is refused")
    if dataset.shape is None:
        raise DataError(f"{where} has no shape and no values")
    if is_bare_dimension(dataset):
        return
    declared = math.prod(dataset.shape) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if stored > file_size:
        raise DataError(
            f"{where} claims {readable(stored)} in a file of {readable(file_size)}; the file is "
            "damaged. Copy or download it again"
        )
    compressed = _is_compressed(dataset)
    if compressed:
        chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
        require_memory(chunk, f"one compressed chunk of {where}", "write it in smaller chunks")
    allowed = stored * MAX_RATIO if compressed else stored
    if declared > allowed:
        raise DataError(
            f"{where} declares {readable(declared)}, shape {dataset.shape}, but the file holds "
            f"{readable(stored)} of it; it was never written in full or is not what it says"
        )


def is_bare_dimension(dataset: h5py.Dataset) -> bool:
    """Whether this is a dimension of netCDF-4 that has a length and, rightly, no values."""
    if dataset.ndim != 1 or not dataset.is_scale or dataset.id.get_storage_size():
        return False
    return (h5ds.get_scale_name(dataset.id) or b"").startswith(BARE)


def _is_compressed(dataset: h5py.Dataset) -> bool:
    properties = dataset.id.get_create_plist()
    filters = {properties.get_filter(i)[0] for i in range(properties.get_nfilters())}
    return bool(filters - NOT_COMPRESSING)


def inspect_npz(path: Path) -> None:
    """Refuse a zip file of arrays that is no such thing or does not fit into memory.

    Raises:
        DataError: or what `zipfile` and numpy raise for files that are damaged.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) > MAX_OBJECTS:
            raise DataError(f"'{path}' holds more than {MAX_OBJECTS} arrays")
        needed = sum(member.file_size for member in members)
        require_memory(needed, f"'{path}'", "save it as .npy or .zarr, which are read in parts")
        for member in members:
            where = f"'{path}': '{shown(member.filename)}'"
            with archive.open(member) as stream:
                declared = _declared_by_npy(stream, where)
            if declared > member.file_size:
                raise DataError(
                    f"{where} declares {readable(declared)}, but holds "
                    f"{readable(member.file_size)}; it is damaged or not what it says"
                )


def _declared_by_npy(stream: IO[bytes], where: str) -> int:
    """Bytes of an array in numpy's format, by its header."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise DataError(f"{where} can't be read as numbers: it holds pickled objects")
    return math.prod(shape) * dtype.itemsize


@dataclass(frozen=True)
class _Chunks:
    """How the chunks of a zarr array are stored.

    Attributes:
        num_bytes: of a chunk when it is unpacked, by the array's shape and type.
        compressor: the one codec that changes its size; empty if there is none.
        inner: for chunks that are shards: how the chunks in them are stored.
        inner_count: and how many there are.
        index_first: whether a shard begins with its index; it ends with it otherwise.
    """

    num_bytes: int
    compressor: str = ""
    inner: _Chunks | None = None
    inner_count: int = 0
    index_first: bool = False


def inspect_zarr(path: Path) -> Literal[2, 3] | None:
    """Refuse a zarr array that may run something, reads other files, or declares too much.

    Args:
        path: a folder.

    Returns:
        The version of its format; None if there is no array in the folder.
    """
    version = 3 if (path / ZARR_FILES[3]).is_file() else 2
    if not (path / ZARR_FILES[version]).is_file():
        return None
    where = f"'{shown(path)}'"
    try:
        entry = json.loads(read_json(path / ZARR_FILES[version]))
        if version == 3 and entry["node_type"] == "group":
            return None
        shape = _sizes(entry["shape"])
        dtype = entry["data_type" if version == 3 else "dtype"]
        if not isinstance(dtype, str) or not NUMBERS.fullmatch(dtype):
            raise DataError(f"{where} holds {shown(dtype)}; expected numbers")
        itemsize = np.dtype(dtype).itemsize
        chunks = (_chunks_of_3 if version == 3 else _chunks_of_2)(entry, itemsize, where)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where} is not described as zarr does it: {shown(error)!r}") from error
    _inspect_chunks(path, chunks, math.prod(shape) * itemsize, where)
    return version


def read_json(path: Path) -> bytes:
    """The content of a file that should be small."""
    with path.open("rb") as file:
        content = file.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise DataError(f"'{shown(path)}' is larger than {readable(MAX_JSON_BYTES)}")
    return content


def _sizes(values: Any) -> tuple[int, ...]:
    if not all(type(n) is int and 0 <= n < 2**63 for n in values):
        raise ValueError(f"{values} are no sizes")
    return tuple(values)


def _chunks_of_3(entry: dict[str, Any], itemsize: int, where: str) -> _Chunks:
    for key, allowed in (("chunk_grid", {"regular"}), ("chunk_key_encoding", {"default", "v2"})):
        if entry[key]["name"] not in allowed:
            raise ValueError(f"{key} {entry[key]['name']!r}")
    if entry.get("storage_transformers"):
        raise ValueError("storage_transformers")
    shape = _sizes(entry["chunk_grid"]["configuration"]["chunk_shape"])
    return _chain(entry["codecs"], shape, itemsize, where)


def _chain(codecs: Sequence[Any], shape: tuple[int, ...], itemsize: int, where: str) -> _Chunks:
    """What a list of version 3's codecs makes of a chunk."""
    named = [
        (c, {}) if isinstance(c, str) else (c["name"], c.get("configuration") or {}) for c in codecs
    ]
    names = [name for name, _ in named]
    num_bytes = math.prod(shape) * itemsize + CHECKSUM_BYTES * names.count("crc32c")
    if names == ["sharding_indexed"]:
        settings = named[0][1]
        index = [c if isinstance(c, str) else c["name"] for c in settings["index_codecs"]]
        inner = _sizes(settings["chunk_shape"])
        if "sharding_indexed" in str(settings["codecs"]) or index != ["bytes", "crc32c"]:
            raise DataError(f"{where} has shards in shards or a packed index; write it without")
        return _Chunks(
            num_bytes,
            inner=_chain(settings["codecs"], inner, itemsize, where),
            inner_count=math.prod(n // k for n, k in zip(shape, inner, strict=True)),
            index_first=settings.get("index_location") == "start",
        )
    return _Chunks(num_bytes, _compressor(names, where))


def _chunks_of_2(entry: dict[str, Any], itemsize: int, where: str) -> _Chunks:
    filters = entry.get("filters") or []
    for settings in filters:
        if any(not NUMBERS.fullmatch(str(settings.get(k, "f4"))) for k in ("dtype", "astype")):
            raise DataError(f"{where} has a filter of other things than numbers; it is refused")
    names = [settings["id"] for settings in filters]
    if packed := set(names) & set(COMPRESSORS):
        raise DataError(f"{where} compresses twice, by the filter {packed.pop()}; it is refused")
    if entry.get("compressor"):
        names.append(entry["compressor"]["id"])
    num_bytes = math.prod(_sizes(entry["chunks"])) * itemsize
    return _Chunks(num_bytes, _compressor(names, where))


def _compressor(names: Sequence[str], where: str) -> str:
    """The one codec that changes the size of a chunk, after a look at all of them."""
    for name in names:
        if name not in ARRANGING and name not in COMPRESSORS:
            raise DataError(
                f"{where} is stored by the codec '{shown(name)}', which is refused: it may do more "
                f"than compute. Expected {', '.join([*COMPRESSORS, *sorted(ARRANGING)])}; write "
                "the array again with one of them"
            )
    found = [name for name in names if name in COMPRESSORS]
    if len(found) > 1:
        raise DataError(f"{where} is compressed by {' and '.join(found)}; expected one of them")
    return found[0] if found else ""


def _inspect_chunks(path: Path, chunks: _Chunks, declared: int, where: str) -> None:
    """Look at the files of an array: what they are, their sizes, and what they unpack to."""
    one = chunks.inner or chunks
    require_memory(chunks.num_bytes, f"one chunk of {where}", "write it in smaller chunks")
    if one.num_bytes and declared / one.num_bytes > MAX_CHUNKS:
        raise DataError(f"{where} has more than {MAX_CHUNKS} chunks; write it in larger ones")
    stored = 0
    for file in path.rglob("*"):
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            raise DataError(
                f"'{shown(file)}' is a link or no file, which would read something else; it is "
                "refused. Copy the data into the store"
            )
        if file.is_dir() or file.name == ZARR_FILES[3] or file.name.startswith("."):
            continue
        size = file.stat().st_size
        stored += size
        with file.open("rb") as stream:
            for start, length in _packed_parts(stream, chunks, size):
                _require_honest(stream, start, length, one, f"'{shown(file)}'")
    if declared > max(SMALL, stored * MAX_RATIO):
        raise DataError(
            f"{where} declares {readable(declared)}, but holds {readable(stored)} of it; it was "
            "never written in full or is not what it says"
        )


def _packed_parts(stream: IO[bytes], chunks: _Chunks, size: int) -> Iterator[tuple[int, int]]:
    """Where each chunk of a file begins, and its length; a shard has many, by its index."""
    if chunks.inner is None:
        yield 0, size
        return
    length = chunks.inner_count * 16
    stream.seek(0 if chunks.index_first else max(0, size - length - CHECKSUM_BYTES))
    index = stream.read(length) if length <= size else b""
    for start, count in np.frombuffer(index, "<u8", len(index) // 16 * 2).reshape(-1, 2).tolist():
        if (start, count) != (2**64 - 1, 2**64 - 1):  # which stand for a chunk that is not there
            yield start, count


def _require_honest(stream: IO[bytes], start: int, length: int, chunk: _Chunks, where: str) -> None:
    """Refuse a chunk that unpacks to more than the array declares, without unpacking it."""
    if not chunk.compressor or start + length > 2**63:
        return  # stored as it is, or beyond the end of any file
    stream.seek(start)
    size = _announced(chunk.compressor, stream.read(18))
    if size is None:
        worst, memory = length * COMPRESSORS[chunk.compressor], available_memory()
        if memory is None or worst <= memory:
            return  # whatever it is, there is room for it, and zarr compares
        if chunk.compressor == "zstd":
            raise DataError(
                f"{where} does not say how large it is, and may be {readable(worst)}; write it "
                "again, with sizes, as zarr-python does"
            )
        stream.seek(start)
        size = _inflated(stream, length, chunk.num_bytes)
    if size > chunk.num_bytes:
        raise DataError(
            f"{where} unpacks to more than {readable(chunk.num_bytes)}, which the array declares "
            "for it; it is damaged or not what it says"
        )


def _announced(compressor: str, head: bytes) -> int | None:
    """The size that a chunk says it unpacks to, by its first bytes; None if it says none."""
    if compressor == "blosc":
        return int.from_bytes(head[4:8], "little")
    if compressor == "lz4":
        return int.from_bytes(head[:4], "little")
    if compressor == "zstd" and head[:4] == b"\x28\xb5\x2f\xfd" and len(head) > 5:
        flags = head[4]  # RFC 8878, 3.1.1.1
        single = flags >> 5 & 1
        first = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
        width = (single, 2, 4, 8)[flags >> 6]
        if width:
            size = int.from_bytes(head[first : first + width], "little")
            return size + 256 if width == 2 else size
    return None


def _inflated(stream: IO[bytes], length: int, limit: int) -> int:
    """Bytes that a gzip or zlib stream unpacks to; counted until they are more than the limit."""
    total, unpack = 0, zlib.decompressobj(wbits=47)
    while length > 0 and total <= limit:
        block = stream.read(min(length, 1 << 16))
        length -= len(block)
        if not block:
            break
        while block and total <= limit:
            try:
                total += len(unpack.decompress(block, 1 << 20))
            except zlib.error:
                return total  # zarr will say so
            block = unpack.unconsumed_tail
            if unpack.eof:  # gzip: the next member
                block, unpack = unpack.unused_data, zlib.decompressobj(wbits=47)
    return total
