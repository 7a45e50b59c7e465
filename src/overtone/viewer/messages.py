"""What a page may ask for, and how it is answered.

A page sends JSON of at most `MAX_BYTES`; pydantic refuses what is not one of the messages below,
within their limits. An answer is one binary message:

    4 bytes   n, the header's length, little endian
    n bytes   the header, JSON: numbers, and what the planes are
    rest      the planes one after the other

A plane holds one field on the cells that are shown, as whole numbers of 8 or 16 bits from `low` (0)
to `high` (255 or 65535), or, where a page asks for exact values, as float32.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from overtone.errors import OvertoneError

MAX_BYTES = 16_384
"""Largest message of a page."""
MAX_STEPS = 20
"""Steps that a page may ask for at once."""
MAX_CELLS = 250_000
"""Cells of a plane; of larger fields every second, third, … cell is shown."""


def _no_file(text: str) -> str:
    if text.strip().startswith("plan"):
        raise ValueError("a plan is read from the command line alone; choose it by its button")
    return text


Text = Annotated[
    str,
    Field(min_length=1, max_length=400, pattern=r"^[0-9A-Za-z:+.= -]+$"),
    AfterValidator(_no_file),
]
"""A schedule. One form of it names a file, and no path from a page reaches the file system."""
Number = Annotated[int, Field(ge=0, le=1_000_000)]
Lanes = Annotated[int, Field(ge=0, le=1)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    id: Number = 0


class Track(BaseModel):
    """A model by its number, and the schedule that it follows first."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    model: Number
    schedule: Text


class View(BaseModel):
    """What is seen of a field.

    Attributes:
        field: its number.
        mode: of three axes, a plane across one, or the mean along it.
        across: that axis.
        index: the plane's place on it.
        along: the axis of the spectrum.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    field: Number = 0
    mode: Literal["slice", "mean"] = "slice"
    across: Annotated[int, Field(ge=0, le=2)] = 2
    index: Number = 0
    along: Annotated[int, Field(ge=0, le=2)] = 0


class Open(_Message):
    """Start: one or two lanes from the same frame of a trajectory, with estimates or without."""

    type: Literal["open"]
    trajectory: Number
    start: Number
    estimate: bool = False
    lanes: Annotated[list[Track], Field(min_length=1, max_length=2)]
    view: View = View()


class Step(_Message):
    """Go on by some steps."""

    type: Literal["step"]
    count: Annotated[int, Field(ge=1, le=MAX_STEPS)] = 1


class Show(_Message):
    """Look at a step that is still kept, and change nothing."""

    type: Literal["show"]
    step: Number


class Back(_Message):
    """Return to a step that is still kept."""

    type: Literal["back"]
    step: Number


class Steer(_Message):
    """Another schedule for a lane, from the next step on."""

    type: Literal["steer"]
    lane: Lanes
    schedule: Text


class Look(_Message):
    """Show something else of the same step."""

    type: Literal["look"]
    view: View


class Push(_Message):
    """Add a bump to the field that is seen."""

    type: Literal["push"]
    lane: Lanes
    field: Number
    cell: Annotated[list[Number], Field(min_length=1, max_length=3)]
    radius: Annotated[float, Field(ge=0.5, le=64)]
    strength: Annotated[float, Field(ge=-5, le=5)]


class Exact(_Message):
    """All fields of a lane's frame as float32."""

    type: Literal["exact"]
    lane: Lanes


Message = Annotated[
    Open | Step | Show | Back | Steer | Look | Push | Exact, Field(discriminator="type")
]
_ADAPTER: TypeAdapter[Any] = TypeAdapter(Message)


def read(text: str | bytes) -> Any:
    """A page's message; an `OvertoneError` says in one line what is wrong with it."""
    if len(text) > MAX_BYTES:
        raise OvertoneError(f"the message has {len(text)} bytes; expected at most {MAX_BYTES}")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:80]
        raise OvertoneError(f"the message can't be read: {place}: {first['msg'][:200]}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, or nested too deeply
        raise OvertoneError(f"the message can't be read: {str(error)[:200]}") from None


@dataclass(frozen=True)
class Plane:
    """A field on the cells that are shown.

    Attributes:
        about: what it is, plain data.
        values: `(*cells)`, at most two axes unless they are exact.
        bits: 8 or 16 for whole numbers between the lowest and the highest value, 32 for float32.
    """

    about: dict[str, Any]
    values: np.ndarray
    bits: int = 16


def quantise(values: np.ndarray, bits: int) -> tuple[np.ndarray, float, float]:
    """Whole numbers from the lowest to the highest value, and these two."""
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        raise OvertoneError("a plane holds NaN or infinity; only finite frames are shown")
    top = (1 << bits) - 1
    scaled = (values.astype(np.float64) - low) / ((high - low) or 1.0) * top
    return np.round(scaled).astype("<u1" if bits == 8 else "<u2"), low, high


def pack(header: dict[str, Any], planes: Sequence[Plane] = ()) -> bytes:
    """An answer, as the module says."""
    listed, blobs = [], []
    for plane in planes:
        about = plane.about | {"shape": list(plane.values.shape), "bits": plane.bits}
        if plane.bits == 32:
            blob = plane.values.astype("<f4")
        else:
            blob, low, high = quantise(plane.values, plane.bits)
            about |= {"low": low, "high": high}
        listed.append(about)
        blobs.append(np.ascontiguousarray(blob).tobytes())
    text = json.dumps(header | {"planes": listed}, allow_nan=False).encode()
    return b"".join([struct.pack("<I", len(text)), text, *blobs])


def unpack(answer: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Header and planes, in physical units, of an answer."""
    (size,) = struct.unpack_from("<I", answer)
    header, place, planes = json.loads(answer[4 : 4 + size]), 4 + size, []
    for about in header["planes"]:
        kind = np.dtype({8: "<u1", 16: "<u2", 32: "<f4"}[about["bits"]])
        count = int(np.prod(about["shape"], dtype=int))
        values = np.frombuffer(answer, kind, count, place).reshape(about["shape"])
        place += count * kind.itemsize
        if about["bits"] != 32:
            top = (1 << about["bits"]) - 1
            values = about["low"] + values / top * (about["high"] - about["low"])
        planes.append(values)
    return header, planes
