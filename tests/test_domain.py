import numpy as np
import pytest
import torch

import overtone as ot
from overtone import Boundary
from overtone.domain import per_axis


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
        ({"fields": 5}, "fields is 5"),
        ({"fields": (1, 2)}, "tuple of names"),
        ({"shape": None}, "shape is None; expected one to 3 axes"),
        ({"shape": "88"}, "one to 3 axes"),
        ({"shape": (8, float("nan"))}, "positive number of cells"),
        ({"shape": (8, 8.5)}, "positive number of cells"),
        ({"shape": (8, None)}, "positive number of cells"),
        ({"shape": (8, 10**6000)}, "an axis of more than"),
        ({"extent": None}, "extent is None"),
        ({"extent": (1.0, "2")}, "extent is '2'; expected a positive number"),
        ({"extent": 1.0}, "one length for each of 2 axes"),
        ({"dt": "fast"}, "dt is 'fast'"),
        ({"boundaries": None}, "boundaries are None"),
        ({"boundaries": (1, 2)}, "boundary is 1"),
    ],
)
def test_contradictions_are_refused(change, message):
    good = {"shape": (8, 8), "extent": (1, 1), "boundaries": "wall", "fields": ("u",), "dt": 1.0}
    with pytest.raises(ot.DomainError, match=message):
        ot.Domain(**(good | change))


def test_a_range_of_dt(make_domain):
    even = make_domain(dt=0.5)
    assert even.dt_range == (0.5, 0.5)
    assert even.has_one_dt
    assert "dt_range" not in even.to_dict()  # as earlier versions wrote it
    several = make_domain(dt=0.5, dt_range=[0.25, 2])
    assert not several.has_one_dt
    assert ot.Domain(**several.to_dict()) == several != even
    assert [several.steps_by(dt) for dt in (0.2, 0.25, 1.0, 2.001, 2.01)] == [
        False, True, True, True, False,
    ]  # fmt: skip
    for wrong in ([0.25], [1, 2], [2, 0.25], [0, 1], 0.5, "ab"):
        with pytest.raises(ot.DomainError, match="dt_range"):
            make_domain(dt=0.5, dt_range=wrong)


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


def test_one_axis_may_be_a_number():
    assert ot.Domain(64, 1.0, "periodic", ("u",)) == ot.Domain((64,), (1.0,), "periodic", ("u",))
    assert ot.Domain(np.int64(64), np.float32(1), "wall", ["u"]).shape == (64,)
    assert ot.Domain(np.array([8, 16]), np.ones(2), "wall", np.array(["u"])).shape == (8, 16)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_an_array_of_numpy_becomes_a_tensor(make_domain, dtype):
    domain = make_domain((4, 4))
    array = np.arange(96, dtype=dtype).reshape(1, 3, 2, 4, 4)
    locked = array[:, ::-1]
    locked.setflags(write=False)
    for values in (array, locked):
        window = ot.Window(values, domain)
        assert isinstance(window.fields, torch.Tensor)
        assert window.fields.tolist() == values.tolist()
        assert window.last(2).num_frames == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (np.zeros((1, 3, 2, 4, 4), int), "an array of int64"),
        (np.zeros((1, 3, 2, 4, 4), complex), "an array of complex128"),
        (np.zeros((1, 3, 2, 4, 4), object), "an array of object"),
        ([[1.0]], "a list; expected a tensor"),
        (None, "a NoneType; expected a tensor"),
    ],
)
def test_other_things_are_no_fields(make_domain, fields, message):
    with pytest.raises(ot.DomainError, match=message):
        ot.Window(fields, make_domain((4, 4)))


def test_one_for_each_axis():
    for four in (4, np.int64(4), np.uint8(4)):
        for value in (four, (four, four), np.array([4, 4])):
            found = per_axis(value, 2, "patch")
            assert found == (4, 4)
            assert all(type(entry) is int for entry in found)
    for wrong in (4.0, np.float64(4), True, None, "44", (4, 4.0), (4,), [[4, 4]], np.array(4.0)):
        with pytest.raises(ot.DomainError, match="patch is .*; expected one int, or one for each"):
            per_axis(wrong, 2, "patch")
    with pytest.raises(ot.DomainError, match="patch is beyond"):
        per_axis(10**6000, 2, "patch")


def test_finding_what_is_not_finite_needs_no_values(make_domain):
    ot.Window(torch.zeros(0, 3, 2, 4, 4), make_domain((4, 4))).require_finite()
    for value in (torch.nan, torch.inf, -torch.inf):
        window = ot.Window(torch.zeros(1, 3, 2, 4, 4), make_domain((4, 4)))
        window.fields[0, 1, 1, 2, 3] = value
        with pytest.raises(ot.DomainError, match=r"sample 0, frame 1, field 'b', cell \(2, 3\)"):
            window.require_finite()


@pytest.mark.parametrize(("first", "second"), [(torch.inf, -torch.inf), (3e38, torch.nan)])
def test_infinities_do_not_cancel_out(make_domain, first, second):
    window = ot.Window(torch.zeros(1, 2, 2, 4, 4), make_domain((4, 4)))
    window.fields[0, 0, 0, 0, 0], window.fields[0, 1, 1, 3, 3] = first, second
    with pytest.raises(ot.DomainError, match="NaN or infinite"):
        window.require_finite()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_large_numbers_whose_sum_overflows_are_finite(make_domain, dtype):
    fields = torch.full((1, 2, 2, 4, 4), 0.9 * torch.finfo(dtype).max, dtype=dtype)
    assert not fields.sum().isfinite()
    ot.Window(fields, make_domain((4, 4))).require_finite()


def test_a_window_says_what_it_holds_in_a_line():
    domain = ot.Domain((8, 16), (1.0, 2 / 3), ("periodic", ("wall", "open")), ("u", "v"), dt=0.5)
    text = "u, v on 8x16 cells of 1 x 0.6667, periodic and wall/open, dt 0.5"
    assert str(domain) == text
    assert repr(ot.Window(torch.ones(3, 4, 2, 8, 16), domain)) == (
        f"Window(3 x 4 frames, float32, cpu; {text})"
    )
    assert repr(ot.Window(torch.ones(4, 2, 8, 16), domain)).startswith("Window(4 frames, ")
