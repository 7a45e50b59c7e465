"""What a file may not do to us before we read a single value of it.

An HDF5 file may point outside itself (external links, external storage, virtual datasets), so
that opening a downloaded file reads others. It may also declare any size: a file of 1 kB can hold
a dataset of 40 TB that was never written. `inspect` refuses both by looking at metadata only:

- Uncompressed data must be in the file in full: stored bytes >= declared bytes.
- Compressed data may be at most `MAX_RATIO` times as large as what is stored. Deflate can't reach
  that ratio, so no honest file is refused.
- What one read is about to allocate must fit into the memory that is available (`require_memory`).
"""

from __future__ import annotations

import math

import h5py
from h5py import h5l, h5o, h5z  # pyright: ignore[reportAttributeAccessIssue]  # compiled

from overtone.errors import DataError
from overtone.guard.limits import readable, require_memory

MAX_OBJECTS = 10_000
MAX_RATIO = 2_000
NOT_COMPRESSING = {h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}


def inspect(file: h5py.File, name: str) -> None:
    """Walk all objects of an open file; raise `DataError` for what is unsafe.

    Args:
        file: an open HDF5 file.
        name: what to call it in an error.
    """
    size = file.id.get_filesize()
    pending: list[h5py.Group] = [file]
    seen = {h5o.get_info(file.id).addr}
    while pending:
        group = pending.pop()
        for key in group.keys():  # noqa: SIM118
            path = f"{(group.name or '').rstrip('/')}/{key}"
            kind = group.id.links.get_info(key.encode()).type
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
                pending.append(entry)
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


def _is_compressed(dataset: h5py.Dataset) -> bool:
    properties = dataset.id.get_create_plist()
    filters = {properties.get_filter(i)[0] for i in range(properties.get_nfilters())}
    return bool(filters - NOT_COMPRESSING)
