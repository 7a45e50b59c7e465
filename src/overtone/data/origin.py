"""What a file said about itself, to be said again by a file that is made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from overtone.data.layout import FieldSpec, Layout
from overtone.data.location import Location
from overtone.data.writer import Header
from overtone.domain import Domain


def coordinates(file: Location, layout: Layout, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Positions of the cells along each axis, float64.

    Args:
        file: the file.
        layout: its layout.
        shape: the grid; where it is coarser than the file's, the means of the averaged cells.
    """
    with file.open() as opened:
        stored = [
            np.asarray(opened[f"dimensions/{axis}"], dtype=np.float64) for axis in layout.axes
        ]
    # Some files give the coordinates of every sample; they are those of the first.
    points = [values.reshape(-1, values.shape[-1])[0] for values in stored]
    return tuple(x.reshape(n, -1).mean(axis=1) for x, n in zip(points, shape, strict=True))


def header_like(
    file: Location, layout: Layout, domain: Domain, attributes: Mapping[str, str]
) -> Header:
    """The header for data on a domain that come from a file.

    Args:
        file: the file.
        layout: its layout.
        domain: grid, extent and dt of the new data.
        attributes: what the new file says beside that.
    """
    numbers = {k: float(v) for k, v in layout.parameters.items() if not isinstance(v, str)}
    texts = {k: v for k, v in layout.parameters.items() if isinstance(v, str)}
    return Header(
        name=layout.dataset_name,
        shape=domain.shape,
        extent=domain.extent,
        boundaries=domain.boundaries,
        dt=domain.dt,
        axes=layout.axes,
        coordinates=tuple(x.tolist() for x in coordinates(file, layout, domain.shape)),
        parameters=numbers,
        attributes={**texts, **attributes},
        grid_type=layout.grid_type,
    )


def fields_of(layout: Layout, channels: Sequence[str]) -> tuple[list[FieldSpec], list[int]]:
    """Fields that hold some channels, and the order in which they take them.

    A vector or tensor of which a part is missing is no vector; its channels become scalars.
    """
    found: list[tuple[FieldSpec, list[int]]] = []
    for spec in layout.fields:
        own = spec.channels(layout.axes)
        present = [name for name in own if name in channels]
        if len(present) == len(own):
            kept = FieldSpec(spec.name, spec.order)
            found.append((kept, [channels.index(name) for name in own]))
        else:
            found += [(FieldSpec(name), [channels.index(name)]) for name in present]
    found.sort(key=lambda entry: entry[0].order)
    return [spec for spec, _ in found], [index for _, part in found for index in part]
