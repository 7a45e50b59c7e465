import pytest
import torch
from torch import nn

import overtone as ot
from overtone.flexify.find import describe_candidates, find_decoder, find_encoder


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
