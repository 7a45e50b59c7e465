"""What a page may send, and what comes back: bounded, and the same on both sides."""

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import OvertoneError
from overtone.viewer.messages import MAX_BYTES, Plane, Step, pack, read, unpack

OPEN = {"type": "open", "trajectory": 0, "start": 0, "lanes": [{"model": 0, "schedule": "8"}]}
PUSH = {"type": "push", "lane": 0, "field": 0, "cell": [1], "radius": 2.0, "strength": 1.0}


def test_messages_are_read():
    assert read('{"type": "step"}') == Step(type="step")
    assert read(json.dumps(OPEN)).lanes[0].schedule == "8"
    assert read(json.dumps(PUSH | {"id": 7})).id == 7
    for schedule in ("4x8-16+shift:at:3x-5", "adaptive:0.02:budget=4000+shift", "random:4-8:1"):
        text = json.dumps({"type": "steer", "lane": 0, "schedule": schedule})
        assert read(text).schedule == schedule


@pytest.mark.parametrize(
    "message",
    [
        {},
        [],
        None,
        {"type": "nothing"},
        {"type": "step", "count": 0},
        {"type": "step", "count": 21},
        {"type": "step", "count": "1"},
        {"type": "step", "count": True},
        {"type": "step", "path": "/etc/passwd"},
        {"type": "back", "step": -1},
        {"type": "back", "step": 1e9},
        {"type": "steer", "lane": 2, "schedule": "8"},
        {"type": "steer", "lane": 0, "schedule": ""},
        {"type": "steer", "lane": 0, "schedule": "4-" * 300},
        {"type": "steer", "lane": 0, "schedule": "plan:/etc/passwd"},
        {"type": "steer", "lane": 0, "schedule": " plan:results.json"},
        OPEN | {"lanes": [{"model": 0, "schedule": "plan:x"}]},
        {"type": "steer", "lane": 0, "schedule": "../x"},
        {"type": "look", "view": {"field": -1}},
        {"type": "look", "view": {"mode": "all"}},
        OPEN | {"lanes": []},
        OPEN | {"lanes": OPEN["lanes"] * 3},
        OPEN | {"lanes": [{"model": "../model", "schedule": "8"}]},
        PUSH | {"cell": []},
        PUSH | {"cell": [0, 0, 0, 0]},
        PUSH | {"cell": [-1]},
        PUSH | {"radius": 1e9},
        PUSH | {"radius": "nan"},
        PUSH | {"strength": 1e9},
    ],
)
def test_messages_beyond_their_limits_are_refused_in_a_line(message):
    with pytest.raises(OvertoneError, match="can't be read") as caught:
        read(json.dumps(message))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(number):
    with pytest.raises(OvertoneError):
        read(json.dumps(PUSH).replace("2.0", number))


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe", "[" * 10_000, '{"type":' + '{"a":' * 2000])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(OvertoneError):
        read(text)


def test_large_messages_are_refused_before_they_are_read():
    with pytest.raises(OvertoneError, match=f"at most {MAX_BYTES}"):
        read('{"type": "step", "id": ' + "0" * MAX_BYTES + "}")


@pytest.mark.fuzz
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_a_message_or_a_refusal(text):
    with suppress(OvertoneError):
        read(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)


@pytest.mark.fuzz
@given(st.sampled_from([OPEN, PUSH, {"type": "step"}]), st.data())
def test_any_value_in_any_place_is_a_message_or_a_refusal(message, data):
    key = data.draw(st.sampled_from(sorted(message)))
    changed = message | {key: data.draw(JSON)}
    with suppress(OvertoneError):
        read(json.dumps(changed))


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("shape", [(5,), (4, 7)])
def test_planes_come_back(bits, shape):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    header, (first, second) = unpack(
        pack({"type": "x"}, [Plane({"kind": "a"}, values, bits), Plane({}, 2 * values, bits)])
    )
    assert header["type"] == "x"
    assert header["planes"][0]["kind"] == "a"
    step = np.ptp(values) / (2**bits - 1) if bits < 32 else 0
    np.testing.assert_allclose(first, values, atol=0.51 * step)
    np.testing.assert_allclose(second, 2 * values, atol=1.02 * step)


def test_a_constant_plane_and_one_that_is_not_finite():
    _, (plane,) = unpack(pack({}, [Plane({}, np.full(3, 2.5))]))
    assert plane.tolist() == [2.5] * 3
    with pytest.raises(OvertoneError, match="NaN or infinity"):
        pack({}, [Plane({}, np.array([1.0, np.inf]))])
