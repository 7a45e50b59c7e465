"""Batches: what may stand in one."""

import pytest
import torch

from overtone.data import Header, WellFolder, collate, collate_mixed, write_well
from overtone.errors import DataError


def test_a_batch_needs_one_grid(make_folder, tmp_path, make_header, make_values):
    a = WellFolder(make_folder()[0])
    write_well(tmp_path / "b.hdf5", make_values((6, 6)), make_header((6, 6)))
    b = WellFolder(tmp_path / "b.hdf5")
    with pytest.raises(DataError, match="a batch can't hold both"):
        collate([a[0], b[0]])
    whole = WellFolder(make_folder()[0], whole=True)
    with pytest.raises(DataError, match="different length"):
        collate([a[0], whole[0]])


def test_a_batch_needs_one_dt_and_one_extent(tmp_path, make_header, make_values):
    headers = {
        "first": make_header(),
        "slower": make_header(dt=0.5),
        "wider": Header("toy", (6, 8), (3.0, 2.0), "periodic", 0.25),
        "rounded": make_header(dt=0.25 * (1 + 1e-6)),
    }
    for name, header in headers.items():
        write_well(tmp_path / f"{name}.hdf5", make_values(), header)
    first, *others = (WellFolder(tmp_path / f"{name}.hdf5")[0] for name in headers)
    with pytest.raises(DataError, match=r"dt is 0.5; .* first is 0.25.* one dt at a time"):
        collate([first, first, others[0]])
    with pytest.raises(DataError, match=r"extent is \(3.0, 2.0\); .* first is \(1.5, 2.0\)"):
        collate([first, others[1]])
    assert collate([first, others[2]])[0].domain == first[0].domain
    mixed, _ = collate_mixed([others[1], first, others[0]])
    assert (mixed.domain.dt, mixed.domain.dt_range) == (0.25, (0.25, 0.5))
    assert mixed.domain.extent == (3.0, 2.0)  # the first one's
    assert torch.equal(mixed.fields[2], others[0][0].fields)
    assert collate_mixed([first, others[2]])[0].domain == first[0].domain
