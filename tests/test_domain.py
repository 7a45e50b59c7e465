import pytest
import torch

import overtone as ot
from overtone import Boundary


def test_boundaries_are_read_per_axis_and_per_side():
    domain = ot.Domain((8, 16), (1.0, 2.0), ("periodic", ("wall", "open")), ("u",), dt=0.5)
    assert domain.boundaries == (
        (Boundary.PERIODIC, Boundary.PERIODIC),
        (Boundary.WALL, Boundary.OPEN),
    )
    assert domain.periodic == (True, False)
    assert domain.kinds == (Boundary.WALL, Boundary.OPEN)
    assert domain.spacing == (0.125, 0.125)


def test_dict_round_trip_and_hash():
    domain = ot.Domain((8, 16, 4), (1, 2, 3), ("open", "wall", "periodic"), ("u", "v"))
    again = ot.Domain(**domain.to_dict())
    assert again == domain
    assert hash(again) == hash(domain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": ()}, "one to 3 axes"),
        ({"shape": (0, 4)}, "positive number of cells"),
        ({"extent": (1.0,)}, "one length for each of 2 axes"),
        ({"extent": (1.0, -1.0)}, "positive"),
        ({"dt": float("nan")}, "dt is nan"),
        ({"boundaries": ("periodic",)}, "one for each of 2 axes"),
        ({"boundaries": ("periodic", "reflecting")}, "'wall', 'open', 'periodic'"),
        ({"boundaries": ("wall", ("periodic", "wall"))}, "both sides or on neither"),
        ({"fields": "uv"}, "tuple of names"),
        ({"fields": ("u", "u")}, "may occur once"),
    ],
)
def test_contradictions_are_refused(change, message):
    good = {"shape": (8, 8), "extent": (1, 1), "boundaries": "wall", "fields": ("u",), "dt": 1.0}
    with pytest.raises(ot.DomainError, match=message):
        ot.Domain(**(good | change))


def test_window_slides_and_keeps_the_latest(make_domain):
    domain = make_domain((4, 4))
    frames = torch.arange(5.0).reshape(1, 5, 1, 1, 1).expand(1, 5, 2, 4, 4)
    window = ot.Window(frames[:, :3], domain).slide(frames[:, 4])
    assert window.fields[0, :, 0, 0, 0].tolist() == [1.0, 2.0, 4.0]
    assert window.last(2).fields[0, :, 0, 0, 0].tolist() == [2.0, 4.0]
    assert window.last(9).num_frames == 3


def test_window_may_be_unbatched(make_domain):
    domain = make_domain((4, 4))
    window = ot.Window(torch.zeros(3, 2, 4, 4), domain)
    assert (window.batched, window.num_frames, window.num_channels) == (False, 3, 2)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 4, 4), "3 dimensions"),
        ((1, 3, 5, 4, 4), "5 channels.*names 2: a, b"),
        ((1, 3, 2, 4, 8), r"grid of \(4, 8\) cells, the domain has \(4, 4\)"),
    ],
)
def test_window_of_wrong_shape(make_domain, shape, message):
    with pytest.raises(ot.DomainError, match=message):
        ot.Window(torch.zeros(shape), make_domain((4, 4)))


def test_window_of_integers(make_domain):
    with pytest.raises(ot.DomainError, match=r"torch.int64.*\.float\(\)"):
        ot.Window(torch.zeros(1, 3, 2, 4, 4, dtype=torch.long), make_domain((4, 4)))


def test_non_finite_value_is_located(make_domain):
    fields = torch.zeros(2, 3, 2, 4, 4)
    fields[1, 2, 1, 0, 3] = float("nan")
    with pytest.raises(
        ot.DomainError, match=r"1 values.*sample 1, frame 2, field 'b', cell \(0, 3"
    ):
        ot.Window(fields, make_domain((4, 4))).require_finite()


def test_a_window_moves_to_a_device_with_its_domain(make_domain, make_window):
    window = make_window(make_domain())
    there = window.to("meta")
    assert (there.fields.device.type, there.domain) == ("meta", window.domain)
    assert torch.equal(window.to("cpu").fields, window.fields)
