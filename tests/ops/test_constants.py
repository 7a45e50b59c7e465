"""Constants are made once for each device and precision, and stay exact."""

import pytest
import torch

import overtone as ot
from overtone.ops import constants
from overtone.ops.constants import constant, full_precision
from overtone.ops.resize import pi_resize

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
    assert change.shape == fields.shape
