"""What objects of an HDF5 file say, or an error that names the file, the object and the attribute.

Every function takes the object to ask, a key, and what to call the file in an error. Nothing is
believed: an attribute may be missing, of another type, or as large as the disk.
"""

from __future__ import annotations

import math
from typing import Any

import h5py
import numpy as np

from overtone.errors import DataError
from overtone.guard.limits import readable
from overtone.guard.names import shown

MAX_ATTRIBUTE_BYTES = 1_000_000
"""Largest attribute: names and single numbers take far less."""


def read_attribute(where: h5py.HLObject, key: str, name: str) -> Any:
    """The value of an attribute, which must be there and of a sensible size."""
    raw: Any = in_file(key)
    if raw not in where.attrs:
        raise DataError(f"'{name}': {_at(where)} lacks the attribute '{key}' of The Well's layout")
    try:
        found = where.attrs.get_id(raw)
        size = math.prod(found.shape or ()) * found.dtype.itemsize
        if size > MAX_ATTRIBUTE_BYTES:
            raise DataError(
                f"'{name}': attribute '{key}' of {_at(where)} has {readable(size)}; it is not what "
                "The Well's layout has there"
            )
        return where.attrs[raw]
    except (OSError, TypeError, UnicodeError, RuntimeError) as error:
        raise DataError(f"'{name}': attribute '{key}' of {_at(where)}: {error}") from error


def _at(where: h5py.HLObject) -> str:
    return shown(as_text(where.name or "/"))


def malformed(where: h5py.HLObject, key: str, value: Any, expected: str, name: str) -> DataError:
    """The error about an attribute that is not what it should be."""
    text = shown(value)
    return DataError(
        f"'{name}': attribute '{key}' of {_at(where)} is '{text[:60]}{'…' * (len(text) > 60)}'; "
        f"expected {expected}"
    )


def read_count(where: h5py.HLObject, key: str, name: str) -> int:
    """A whole number."""
    value = np.asarray(read_attribute(where, key, name))
    if value.size != 1 or value.dtype.kind not in "iuf" or not float(value.item()).is_integer():
        raise malformed(where, key, value, "a whole number", name)
    return int(value.item())


def read_word(where: h5py.HLObject, key: str, name: str) -> str:
    """One name."""
    words = read_names(where, key, name)
    if len(words) != 1:
        raise malformed(where, key, words, "one name", name)
    return words[0]


def find_group(file: h5py.Group, key: str, name: str) -> h5py.Group:
    """A group, which must be there."""
    found = file.get(key)
    if not isinstance(found, h5py.Group):
        raise DataError(f"'{name}' lacks the group '{key}' of The Well's layout")
    return found


def find_dataset(group: h5py.Group, key: str, name: str) -> h5py.Dataset:
    """A dataset of numbers, which must be there."""
    try:
        # A path would lead out of the group.
        found = None if "/" in key else group.get(in_file(key))
    except UnicodeError:  # h5py's own, about a name that it does not find
        found = None
    if not isinstance(found, h5py.Dataset):
        raise DataError(f"'{name}': {_at(group)} lacks the dataset '{shown(key)}'")
    if found.dtype.kind not in "fiub":
        raise DataError(f"'{name}': {found.name} has dtype {found.dtype}; expected numbers")
    return found


def as_text(value: Any) -> str:
    """A text, where bytes that are no UTF-8 are carried along, as h5py does it, to be escaped."""
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def in_file(name: str) -> bytes:
    """A name as HDF5 has it, also where its bytes are no UTF-8."""
    return name.encode(errors="surrogateescape")


def read_names(where: h5py.HLObject, key: str, name: str) -> tuple[str, ...]:
    """A list of names; some files hold one name as a plain string, or an empty float array."""
    value = read_attribute(where, key, name)
    if isinstance(value, str | bytes):
        return (as_text(value),)
    if isinstance(value, h5py.Empty):
        return ()
    entries = np.atleast_1d(value)
    if entries.ndim > 1 or not all(isinstance(entry, str | bytes) for entry in entries):
        raise malformed(where, key, value, "names", name)
    return tuple(as_text(entry) for entry in entries)


def read_flag(where: h5py.HLObject, key: str, name: str) -> bool:
    """True or false."""
    return read_flags(where, key, 1, name)[0]


def read_flags(where: h5py.HLObject, key: str, num: int, name: str) -> tuple[bool, ...]:
    """So many times true or false."""
    value = np.atleast_1d(read_attribute(where, key, name))
    if value.shape != (num,) or value.dtype.kind not in "biuf":
        raise malformed(where, key, value, f"{num} times true or false", name)
    return tuple(map(bool, value))
