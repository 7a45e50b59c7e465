"""Layers are found by name, and made flexible without becoming other modules."""

import pytest
import torch
from torch import nn

import overtone as ot
from overtone.flexify.modules import describe_candidates, find_decoder, find_encoder, flexible_class


@pytest.fixture
def model():
    return nn.ModuleDict({
        "stem": nn.Conv2d(3, 8, 3, padding=1),
        "point": nn.Conv2d(3, 8, 1),
        "patch": nn.Conv2d(8, 16, 4, 4),
        "write": nn.ConvTranspose2d(16, 3, 4, 4),
        "rows": nn.Linear(16, 48),
        "mlp": nn.Linear(16, 20),
    })  # fmt: skip


def test_layers_are_found(model):
    assert find_encoder(model, "patch") is model["patch"]
    assert find_decoder(model, "write", (4, 4)) is model["write"]
    assert find_decoder(model, "rows", (4, 4)) is model["rows"]


def test_candidates_are_those_that_can_be_meant(model):
    text = describe_candidates(model)
    assert text == (
        "Encoders found: 'patch' (Conv2d, kernel 4, stride 4). Decoders found: 'write' "
        "(ConvTranspose2d, kernel 4, stride 4), 'rows' (Linear, 48 values)"
    )


def test_long_lists_are_cut():
    model = nn.Sequential(*(nn.Conv1d(1, 1, 2, 2) for _ in range(11)))
    assert "and 3 more. Decoders found: none" in describe_candidates(model)


def test_what_does_not_tile_is_refused():
    for options in ({"padding": 1}, {"dilation": 2}, {"padding": "same", "stride": 1}):
        given = {"kernel_size": 3, "stride": 3} | options
        if given["stride"] == 1:
            given["kernel_size"] = 1
        layer = nn.Sequential(nn.Conv2d(1, 1, **given))
        with pytest.raises(ot.PatchError, match="padding 0 and dilation 1"):
            find_encoder(layer, "0")
    layer = nn.Sequential(nn.ConvTranspose2d(1, 1, 3, 3, output_padding=1))
    with pytest.raises(ot.PatchError, match="padding 0"):
        find_decoder(layer, "0", (3, 3))
    layer = nn.Sequential(nn.Conv2d(1, 1, 3, 3, padding="valid"))
    assert find_encoder(layer, "0")(torch.zeros(1, 1, 3, 3)).shape == (1, 1, 1, 1)


def test_equal_modules_share_a_class():
    assert flexible_class(nn.Conv2d, (), True) is flexible_class(nn.Conv2d, (), True)
    assert flexible_class(nn.Conv2d, (), True) is not flexible_class(nn.Conv2d, ("x",), True)
    assert issubclass(flexible_class(nn.Conv2d, (), True), nn.Conv2d)


def test_hooks_and_identity_stay():
    conv = nn.Conv2d(1, 4, 8, 8)
    calls = []
    conv.register_forward_hook(lambda module, inputs, output: calls.append(output.shape))
    model = ot.flexify(nn.Sequential(conv), "0", None, patches=(4, 8))
    assert model[0] is conv
    with ot.patch(model, 4):
        model(torch.zeros(1, 1, 16, 16))
    assert calls == [(1, 4, 4, 4)]


def test_functional_call_with_other_weights(make_plain):
    model = ot.flexify(make_plain(), "embed", "head", patches=(4, 8), decoder_axes="p1 p2 c")
    x = torch.randn(1, 2, 32, 48)
    zeros = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    with ot.patch(model, 4):
        before = model(x)
        assert not torch.func.functional_call(model, zeros, (x,)).any()
        assert torch.equal(model(x), before)


def test_a_forward_of_the_instance_is_refused():
    model = nn.Sequential(nn.Conv2d(1, 4, 8, 8), nn.ConvTranspose2d(4, 1, 8, 8))
    model[1].forward = lambda x: x
    with pytest.raises(ot.OvertoneError, match="'forward' of its own"):
        ot.flexify(model, "0", "1", patches=(4, 8))
    assert type(model[0]) is nn.Conv2d
