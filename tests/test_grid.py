import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.grid import PatchGrid


def domain(shape, boundaries="periodic"):
    return ot.Domain(shape, (1.0,) * len(shape), boundaries, ("u",))


@pytest.mark.parametrize(
    ("shape", "counts"), [((128, 256), (2048, 512, 128)), ((64, 64, 64), (4096, 512, 64))]
)
@pytest.mark.parametrize("boundaries", ["periodic", "open"])
def test_token_counts_are_the_papers(shape, counts, boundaries):
    grids = [PatchGrid.lay(domain(shape, boundaries), patch) for patch in (4, 8, 16)]
    assert tuple(grid.num_tokens for grid in grids) == counts


@given(
    n=st.integers(1, 60),
    patch=st.integers(1, 20),
    shift=st.integers(-40, 40),
    boundary=st.sampled_from(["periodic", "wall"]),
)
def test_every_cell_is_covered_once_or_by_wrapping(n, patch, shift, boundary):
    patch = min(patch, n)
    grid = PatchGrid.lay(domain((n,), boundary), patch, shift)
    cells = range(grid.start[0], grid.start[0] + grid.shape[0] * patch)
    covered = {cell % n for cell in cells} if boundary == "periodic" else set(cells)
    assert covered >= set(range(n))
    # The grid's lines lie where the shift puts them, and no token is idle.
    assert (grid.start[0] - shift) % patch == 0
    assert (grid.shape[0] - 1) * patch < n + (0 if boundary == "periodic" else patch)


def test_shift_by_whole_patches_is_no_shift():
    for boundary in ("periodic", "wall"):
        there = domain((32, 48), boundary)
        assert PatchGrid.lay(there, 8, (8, -16)) == PatchGrid.lay(there, 8)


def test_centres_are_the_same_places_at_every_patch():
    fine, coarse = (PatchGrid.lay(domain((32,)), patch).centres(0) for patch in (4, 8))
    assert coarse == pytest.approx(
        [(a + b) / 2 for a, b in zip(fine[::2], fine[1::2], strict=True)]
    )


def test_patch_larger_than_an_axis():
    with pytest.raises(ot.PatchError, match=r"patch 16 does not fit axis 1 of 8 cells.*1 to 8"):
        PatchGrid.lay(domain((32, 8)), 16)
