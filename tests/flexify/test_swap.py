import pytest
import torch
from torch import nn

import overtone as ot
from overtone.flexify.swap import flexible_class


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
