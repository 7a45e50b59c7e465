"""Padding, cropping and rolling by one function, and the markers of boundaries."""

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.ops.padding import boundary_markers, take


def test_no_padding_changes_nothing():
    x = torch.randn(2, 3, 5)
    for periodic in (True, False):
        assert take(x, 2, (0, 5), periodic=periodic) is x


@given(start=st.integers(-12, 12), length=st.integers(1, 20))
def test_a_periodic_axis_is_indexed_modulo_its_length(start, length):
    x = torch.arange(5.0)
    taken = take(x, 0, (start, start + length), periodic=True)
    assert taken.tolist() == [i % 5 for i in range(start, start + length)]


@given(below=st.integers(0, 4), above=st.integers(0, 4))
def test_ghosts_equal_torchs_padding(below, above):
    x = torch.randn(1, 2, 6)
    span = (-below, 6 + above)
    zero = take(x, 2, span, periodic=False)
    assert torch.equal(zero, F.pad(x, (below, above)))
    edge = take(x, 2, span, periodic=False, ghosts="edge")
    assert torch.equal(edge, F.pad(x, (below, above), mode="replicate"))


def test_cropping():
    x = torch.arange(8.0)
    assert take(x, 0, (2, 5), periodic=False).tolist() == [2, 3, 4]


def test_markers_are_one_outside_and_fade_inside():
    domain = ot.Domain((32, 16), (1, 1), (("wall", "open"), "periodic"), ("u",))
    wall, open_ = boundary_markers(domain, ((-2, 34), (0, 16)), torch.zeros(1))
    assert torch.equal(wall[:2], torch.ones(2, 16))
    assert torch.equal(open_[-2:], torch.ones(2, 16))
    assert (wall[2:].diff(dim=0) < 0).all()
    assert torch.equal(wall[2:34], open_[2:34].flip(0))  # both sides alike
    assert wall.std(dim=1).max() == 0  # nothing varies along the periodic axis


def test_markers_do_not_add_up_in_corners():
    domain = ot.Domain((16, 16), (1, 1), "wall", ("u",))
    (marker,) = boundary_markers(domain, ((-4, 20), (-4, 20)), torch.zeros(1))
    assert marker.max() == 1
    assert marker[0, 0] == 1
