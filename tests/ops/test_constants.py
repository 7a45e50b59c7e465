"""Tables that are made once, and how many of them are kept."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import overtone as ot
from overtone.ops import constants
from overtone.ops.constants import constant, full_precision
from overtone.ops.padding import boundary_markers
from overtone.ops.resize import pi_resize

CPU = torch.device("cpu")
calls = []


def make(n):
    calls.append(n)
    return torch.arange(n, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _empty(monkeypatch):
    monkeypatch.setattr(constants, "_kept", {})
    calls.clear()


def test_made_once_for_each_device_and_precision():
    cpu = torch.device("cpu")
    for _ in range(5):
        assert constant(make, (3,), cpu, torch.float32).dtype == torch.float32
    assert calls == [3]
    constant(make, (3,), cpu, torch.float64)
    constant(make, (4,), cpu, torch.float32)
    assert calls == [3, 3, 4]


def test_first_use_in_inference_mode_does_not_spoil_training():
    with torch.inference_mode():
        pi_resize(torch.randn(1, 1, 4), 2)
    weight = torch.randn(1, 1, 4, requires_grad=True)
    pi_resize(weight, 2).sum().backward()
    assert weight.grad is not None


def test_a_model_does_not_make_its_constants_again(make_model, make_window, monkeypatch):
    model = make_model(tokenizer="ckm")
    window = make_window(model.domain)
    model(window, patch=4)
    kept = dict(constants._kept)
    model(window, patch=4)
    assert constants._kept.keys() == kept.keys()
    assert len(kept) > 2


def num_bytes():
    return sum(entry.tensor.untyped_storage().nbytes() for entry in constants._kept.values())


def numbers():
    """The arguments of what is kept."""
    return {key[1][0] for key in constants._kept}


def test_shifts_of_an_open_grid_in_3d_stay_within_the_bound(monkeypatch):
    domain = ot.Domain((8, 8, 8), (1.0,) * 3, "open", ("a",))
    shifts = [(x, y, z) for x in range(4) for y in range(4) for z in range(4)]

    def draw(shift):
        spans = tuple((-s, 12 - s) for s in shift)
        return boundary_markers(domain, spans, torch.zeros(()))

    fresh = [draw(shift) for shift in shifts]
    each = fresh[0].numel() * 4
    assert len(constants._kept) == len(shifts)
    assert num_bytes() == len(shifts) * each
    constants._kept.clear()
    monkeypatch.setattr(constants, "MAX_BYTES", 10 * each + 1)
    for shift, expected in zip(shifts, fresh, strict=True):
        assert torch.equal(draw(shift), expected)
        assert num_bytes() <= constants.MAX_BYTES
    assert len(constants._kept) == 10


def test_what_was_not_used_for_longest_goes_and_what_is_used_often_stays(monkeypatch):
    monkeypatch.setattr(constants, "MAX_BYTES", 3 * 8 * 100)
    for n in range(90, 100):
        constant(make, (50,), CPU, torch.float64)
        constant(make, (n,), CPU, torch.float64)
    assert calls.count(50) == 1
    assert numbers() == {50, 98, 99}
    constant(make, (98,), CPU, torch.float64)
    constant(make, (100,), CPU, torch.float64)
    assert numbers() == {98, 99, 100}


def test_what_is_larger_than_the_bound_is_made_and_not_kept(monkeypatch):
    monkeypatch.setattr(constants, "MAX_BYTES", 8 * 10)
    constant(make, (3,), CPU, torch.float64)
    for _ in range(2):
        assert len(constant(make, (11,), CPU, torch.float64)) == 11
    assert calls == [3, 11, 11]
    assert numbers() == {3}


def test_tensors_without_memory_take_no_room(monkeypatch):
    monkeypatch.setattr(constants, "MAX_BYTES", 8 * 10)
    constant(make, (10,), CPU, torch.float64)
    constant(make, (1000,), torch.device("meta"), torch.float64)
    assert numbers() == {10, 1000}


def test_threads_share_the_store(monkeypatch):
    monkeypatch.setattr(constants, "MAX_BYTES", 8 * 40)

    def look(turn):
        n = 1 + turn * 7 % 20
        return torch.equal(constant(make, (n,), CPU, torch.float64), torch.arange(n).double())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(look, range(2000)))
    assert 0 < num_bytes() <= constants.MAX_BYTES


def test_products_stay_in_full_precision():
    x = torch.randn(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        with full_precision(x):
            assert (x @ x).dtype == torch.float32


def test_meta_tensors_are_accepted(make_model, make_domain):
    """FLOPs are counted there."""
    with torch.device("meta"):
        model = make_model(tokenizer="ckm").train()
        fields = torch.empty(1, 3, 2, 32, 48)
    change, _ = model.predict_change(ot.Window(fields, make_domain()), 4)
    assert (change.device.type, change.shape) == ("meta", (1, 1, 2, 32, 48))
