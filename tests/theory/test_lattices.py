"""Which frequencies grids excite, alone and together."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.theory import (
    common_period,
    is_excited,
    lattice,
    lattice_intersection,
    lattice_union,
)


def at(*values):
    return tuple(Fraction(v) for v in values)


def test_nested_patches_share_the_lattice_of_the_finest():
    assert common_period((4, 8, 16)) == (4,)
    assert lattice_intersection((4, 8, 16)) == lattice(4)
    assert lattice_intersection((4, 8, 16)) != lattice(16)
    assert lattice_union((4, 8, 16)) == lattice(16)


def test_coprime_patches_share_only_the_mean():
    assert lattice_intersection((3, 4, 5)) == {at(0)}
    assert len(lattice_union((3, 4, 5))) == 1 + 2 + 3 + 4


@given(st.lists(st.integers(1, 24), min_size=1, max_size=4))
def test_intersections_are_those_of_the_sets(patches):
    sets = [lattice(p) for p in patches]
    assert lattice_intersection(patches) == frozenset.intersection(*sets)
    union = lattice_union(patches)
    assert union == frozenset.union(*sets)
    assert all(any(is_excited(f, p) for p in patches) for f in union)


def test_lattices_in_two_dimensions():
    assert len(lattice((4, 8), ndim=2)) == 32
    assert common_period(((4, 8), 6), ndim=2) == (2, 2)
    assert is_excited(at("1/4", "3/8"), (4, 8))
    assert not is_excited(at("1/8", "3/8"), (4, 8))


def test_no_patches_and_huge_ones_are_refused():
    with pytest.raises(ot.OvertoneError, match="no patches"):
        common_period([])
    with pytest.raises(ot.OvertoneError, match="1000 x 1000 x 1000 cells has 1000000000 harmonics"):
        lattice(1000, ndim=3)
