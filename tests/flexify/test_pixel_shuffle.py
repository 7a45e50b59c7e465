"""Decoders that end in a PixelShuffle, as those of image models do."""

import copy
import itertools

import pytest
import torch
from torch import nn

import overtone as ot
from overtone.errors import OvertoneError
from overtone.flexify.layers import write_shuffled
from overtone.flexify.patching import find_patchings


class Shuffled(nn.Module):
    """As image models end: a convolution to `channels * p * p`, then a PixelShuffle."""

    def __init__(self, kernel=1, patch=8, bias=True, channels=2, width=12):
        super().__init__()
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.mix = nn.Conv2d(width, width, 1)
        conv = nn.Conv2d(width, channels * patch**2, kernel, padding=kernel // 2, bias=bias)
        self.decoder = nn.Sequential(conv, nn.PixelShuffle(patch))

    def forward(self, x):
        return self.decoder(self.mix(self.embed(x)).tanh())


class Apart(Shuffled):
    """The same with both as attributes of the model."""

    def __init__(self, **options):
        super().__init__(**options)
        self.conv, self.shuffle = self.decoder
        del self.decoder

    def forward(self, x):
        return self.shuffle(self.conv(self.mix(self.embed(x)).tanh()))


def transposed(model):
    """The same model with a transposed convolution as decoder."""
    other = copy.deepcopy(model)
    conv, shuffle = model.decoder
    p = shuffle.upscale_factor
    channels = conv.out_channels // p**2
    other.decoder = nn.ConvTranspose2d(conv.in_channels, channels, p, p, bias=False)
    weight = conv.weight.detach()[:, :, 0, 0].reshape(channels, p, p, -1).permute(3, 0, 1, 2)
    other.decoder.weight.data.copy_(weight)
    return other


BOTH = [("ckm", (4, 8, 16)), ("csm", (2, 4, 8))]


@pytest.mark.parametrize("rule", ["keep", "paper"])
@pytest.mark.parametrize(("mode", "patches"), BOTH)
def test_a_pixel_shuffle_is_a_transposed_convolution(mode, patches, rule):
    torch.manual_seed(0)
    model = Shuffled(bias=False).eval()
    other, options = transposed(model), {"patches": patches, "mode": mode, "rule": rule}
    ot.flexify(model, "embed", "decoder", **options)
    ot.flexify(other, "embed", "decoder", **options)
    x = torch.randn(2, 2, 32, 48)
    for size in patches:
        with ot.patch(model, size), ot.patch(other, size):
            torch.testing.assert_close(model(x), other(x))


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("mode", "patches"), BOTH)
def test_a_pixel_shuffle_is_the_original_at_the_base_patch(mode, patches, kernel):
    torch.manual_seed(0)
    model = Shuffled(kernel).eval()
    x = torch.randn(2, 2, 32, 48)
    before, keys = model(x), list(model.state_dict())
    ot.flexify(model, "embed", "decoder", patches=patches, mode=mode)
    assert torch.equal(model(x), before)
    assert list(model.state_dict()) == keys
    for size in patches:
        model.zero_grad()
        with ot.patch(model, size):
            y = model(x)
            y.square().mean().backward()
        assert y.shape == x.shape
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    # The formulas themselves give the base patch, too, which the original's own code computes.
    patching, (conv, _) = find_patchings(model)[0], model.decoder
    z = torch.randn(2, 12, 4, 6)
    torch.testing.assert_close(write_shuffled(conv, z, patching), conv(z))


def test_constant_fields_stay_constant_at_every_patch():
    """A decoder whose bias alone speaks: each cell of a patch has the same value."""
    for (mode, patches), kernel in itertools.product(BOTH, (1, 3)):
        model = Shuffled(kernel).eval()
        conv, _ = model.decoder
        nn.init.zeros_(conv.weight)
        conv.bias.data.copy_(torch.tensor([1.0, 2.0]).repeat_interleave(64))  # pyright: ignore[reportCallIssue]
        ot.flexify(model, "embed", "decoder", patches=patches, mode=mode)
        for size in patches:
            with ot.patch(model, size):
                y = model(torch.randn(1, 2, 32, 48))
            torch.testing.assert_close(y, torch.tensor([1.0, 2.0]).view(1, 2, 1, 1).expand_as(y))


def test_both_names_of_a_pixel_shuffle_mean_the_same():
    x = torch.randn(1, 2, 32, 32)
    found = []
    for kind, name in ((Shuffled, "decoder"), (Shuffled, "decoder.0"), (Apart, "conv")):
        torch.manual_seed(0)
        model = ot.flexify(kind().eval(), "embed", name, patches=(4, 8))
        with ot.patch(model, 4):
            found.append(model(x))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: setattr(m.decoder[1], "upscale_factor", 4), "patches of 4 x 4 cells.*as in a S"),
        (lambda m: setattr(m.decoder[0], "padding", (1, 1)), "only a convolution that keeps the"),
        (lambda m: setattr(m.decoder[0], "stride", (2, 2)), "only a convolution that keeps the"),
        (lambda m: setattr(m, "decoder", m.decoder[:1]), "decoder' is a Sequential; expected a "),
    ],
)
def test_what_no_pixel_shuffle_can_follow_is_refused(change, message):
    model = Shuffled()
    change(model)
    with pytest.raises(OvertoneError, match=message):
        ot.flexify(model, "embed", "decoder", patches=(4, 8))
    assert not find_patchings(model)
    with pytest.raises(ot.PatchError, match="not square.*PixelShuffle"):
        ot.flexify(Shuffled(), "embed", "decoder", patches=((4, 8), 8))
