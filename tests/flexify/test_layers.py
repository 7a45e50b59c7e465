"""Identities of resized and overlapping patches, and independent ways to compute them."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import overtone as ot
from overtone.flexify.layers import RowOrder
from overtone.grid import PatchGrid
from overtone.models.tokenizers import TOKENIZERS
from overtone.ops.resize import interpolation_matrix

K, D, C = 4, 5, 2


def upsample_patches(x, k, new):
    """Interpolate every patch of k x k cells on its own to new x new cells."""
    h, w = (n // k for n in x.shape[-2:])
    matrix = interpolation_matrix(k, new).to(x.dtype)
    blocks = x.unflatten(3, (w, k)).unflatten(2, (h, k))  # (B, C, h, k, w, k)
    return torch.einsum("pi,qj,bchiwj->bchpwq", matrix, matrix, blocks).flatten(4).flatten(2, 3)


@pytest.fixture
def pair():
    return nn.Conv2d(C, D, K, K).double(), nn.ConvTranspose2d(D, C, K, K).double()


def test_ckm_tokens_of_enlarged_patches_are_the_same(pair):
    """PI-resize's identity: <x, w> = <Bx, w'>."""
    model = ot.flexify(nn.Sequential(*pair), "0", "1", patches=(4, 6, 8))
    x = torch.randn(2, C, 12, 20, dtype=torch.float64)
    tokens = model[0](x)
    for size in (6, 8):
        with ot.patch(model, size):
            assert torch.allclose(model[0](upsample_patches(x, K, size)), tokens)


def test_ckm_decodes_the_same_field_at_another_resolution(pair):
    """Encode and decode: at a larger patch the result is that of the base, enlarged."""
    model = ot.flexify(nn.Sequential(*pair), "0", "1", patches=(8,))
    x = torch.randn(2, C, 12, 20, dtype=torch.float64)
    bias = pair[1].bias[:, None, None]
    expected = upsample_patches(model(x) - bias, K, 8)
    kernel = pair[1].weight
    resized = upsample_patches(kernel, K, 8)
    gain = kernel.square().mean().sqrt() / resized.square().mean().sqrt()
    with ot.patch(model, 8):
        got = model(upsample_patches(x, K, 8)) - bias
    assert torch.allclose(got, gain * expected)


def test_paper_rule_keeps_the_sum_of_the_decoder(pair):
    model = ot.flexify(nn.Sequential(*pair), "0", "1", patches=(2, 8), rule="paper")
    tokens = torch.randn(1, D, 1, 1, dtype=torch.float64)
    bias = pair[1].bias[:, None, None]
    total = (model[1](tokens) - bias).sum(dim=(2, 3))
    with ot.patch(model, 8):
        assert torch.allclose((model[1](tokens) - bias).sum(dim=(2, 3)), total)


@pytest.mark.parametrize("mode", ["ckm", "csm"])
@pytest.mark.parametrize("rule", ["keep", "paper"])
@pytest.mark.parametrize("shape", [(24,), (16, 24), (8, 16, 8)])
def test_equal_to_our_own_tokenizers(make_domain, mode, rule, shape):
    """With one stage, the flexified convolutions are what `tokenizers` computes."""
    ndim = len(shape)
    domain = make_domain(shape)
    own = TOKENIZERS[mode](domain, dim=D, kernels=(K,), stage_dim=1, rule=rule)
    nn.init.normal_(own.decoders[0].bias)
    conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[ndim - 1](C, D, K, K)
    transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[ndim - 1](D, C, K, K)
    conv.load_state_dict(own.encoders[0].state_dict())
    transposed.load_state_dict(own.decoders[0].state_dict())
    model = ot.flexify(
        nn.Sequential(conv, transposed), "0", "1", patches=(1, 2, 4), mode=mode, rule=rule
    )
    x = torch.randn(2, C, *shape)
    for size in (1, 2, 4):
        grid = PatchGrid.lay(domain, size)
        tokens = own.encode(x[:, None], grid)
        expected = own.decode(tokens, grid)[:, 0]
        with ot.patch(model, size):
            assert torch.allclose(model[0](x), tokens[:, 0].movedim(-1, 1), atol=1e-5)
            assert torch.allclose(model(x), expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["ckm", "csm"])
@pytest.mark.parametrize("rule", ["keep", "paper"])
@pytest.mark.parametrize("axes", ["p1 p2 c", "c p1 p2", "p2 c p1"])
def test_a_linear_decoder_is_a_transposed_convolution(make_plain, mode, rule, axes):
    """The same kernel written in rows, in any order, gives the same field."""
    linear = make_plain(axes=axes)
    transposed = make_plain(linear=False)
    rest = {k: v for k, v in linear.state_dict().items() if not k.startswith("head")}
    transposed.load_state_dict(rest, strict=False)
    kernel = torch.randn(16, 2, 8, 8)
    order = RowOrder(tuple(axes.split()))
    bias = torch.randn(2)
    with torch.no_grad():
        transposed.head.weight.copy_(kernel)
        transposed.head.bias.copy_(bias)
        linear.head.weight.copy_(order.rows(kernel))
        # a bias that is the same for all cells of a patch
        each = {"c": bias, "p1": torch.ones(8), "p2": torch.ones(8)}
        a, b, c = (each[name] for name in order.axes)
        linear.head.bias.copy_(torch.einsum("i,j,k->ijk", a, b, c).flatten())
    for model, given in ((linear, axes), (transposed, None)):
        ot.flexify(
            model, "embed", "head", patches=(2, 4, 8), mode=mode, rule=rule, decoder_axes=given
        )
    x = torch.randn(2, 2, 32, 48)
    for size in (2, 4, 8):
        with ot.patch(linear, size), ot.patch(transposed, size):
            assert torch.allclose(linear(x), transposed(x), atol=2e-4)


def test_rows_and_kernels_are_inverse():
    for axes in itertools.permutations(["c", "p1", "p2"]):
        order = RowOrder(axes)
        rows = torch.randn(3 * 2 * 5, 7)
        kernel = order.kernel(rows, (2, 5))
        assert kernel.shape == (7, 3, 2, 5)
        assert torch.equal(order.rows(kernel), rows)


def test_csm_bias_of_a_linear_is_the_mean_of_the_taps_that_meet():
    """Brute force over tokens, taps and cells, round the domain."""

    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch_size = 6
            self.embed, self.head = nn.Conv1d(1, 3, 6, 6), nn.Linear(3, 6)

        def forward(self, x):
            return self.head(self.embed(x).mT).flatten(1)

    model = ot.flexify(Rows(), "embed", "head", patches=(4, 6), mode="csm")
    nn.init.zeros_(model.head.weight)
    total, count = torch.zeros(12), torch.zeros(12)
    for token in range(3):
        for tap in range(6):
            cell = (token * 4 - 1 + tap) % 12
            total[cell] += model.head.bias[tap].item()
            count[cell] += 1
    with ot.patch(model, 4):
        assert torch.allclose(model(torch.randn(1, 1, 12))[0], total / count)


@pytest.mark.parametrize("linear", [True, False])
def test_csm_commutes_with_shifts_by_a_patch_round_the_seam(make_plain, linear):
    model = make_plain(linear=linear)
    nn.init.zeros_(model.pos)
    axes = "p1 p2 c" if linear else None
    ot.flexify(model, "embed", "head", patches=(2, 4, 8), mode="csm", decoder_axes=axes)
    x = torch.randn(1, 2, 32, 48)
    for size in (2, 4, 8):
        with ot.patch(model, size):
            moved = model(x.roll((size, -size), dims=(2, 3)))
            assert torch.allclose(moved, model(x).roll((size, -size), dims=(2, 3)), atol=1e-4)


def test_csm_repeats_the_outermost_cells_where_the_domain_ends():
    conv = nn.Conv1d(1, 3, 4, 4)
    model = ot.flexify(
        nn.Sequential(conv, nn.ConvTranspose1d(3, 1, 4, 4)), "0", "1",
        patches=(2, 4), mode="csm", boundaries="wall",
    )  # fmt: skip
    x = torch.randn(1, 1, 16)
    padded = F.pad(x, (1, 1), mode="replicate")
    with ot.patch(model, 2):
        tokens = model[0](x)
        assert torch.allclose(tokens, F.conv1d(padded, conv.weight, conv.bias, stride=2), atol=1e-6)
        assert model(x).shape == x.shape


@pytest.mark.parametrize("mode", ["ckm", "csm"])
def test_groups_are_kept(mode):
    parts = nn.Conv2d(4, 8, 4, 4, groups=2), nn.ConvTranspose2d(8, 4, 4, 4, groups=2)
    model = ot.flexify(nn.Sequential(*parts), "0", "1", patches=(2, 4), mode=mode)
    x = torch.randn(1, 4, 8, 8)
    other = x.clone()
    other[:, :2] = 0  # the second group does not see the first
    with ot.patch(model, 2):
        assert torch.allclose(model(x)[:, 2:], model(other)[:, 2:], atol=1e-6)


def test_csm_keeps_prefix_tokens_out_of_the_field():
    class Prefixed(nn.Module):
        def __init__(self, prefix, on_grid=False):
            super().__init__()
            self.patch_size, self.on_grid = 4, on_grid
            self.cls = nn.Parameter(torch.randn(1, prefix, 3))
            self.embed, self.head = nn.Conv2d(1, 3, 4, 4), nn.Linear(3, 16)

        def forward(self, x):
            z = self.embed(x)
            if self.on_grid:
                return self.head(z.movedim(1, -1)).flatten(1, 2)
            z = torch.cat([self.cls.expand(x.shape[0], -1, -1), z.flatten(2).mT], dim=1)
            return self.head(z)[:, self.cls.shape[1] :]

    models = [Prefixed(2), Prefixed(0), Prefixed(0, on_grid=True)]
    for model in models:
        weights = {k: v for k, v in models[0].state_dict().items() if k != "cls"}
        model.load_state_dict(weights, strict=False)
        ot.flexify(model, "embed", "head", patches=(2, 4), mode="csm")
    x = torch.randn(3, 1, 8, 12)
    for size in (2, 4):
        results = []
        for model in models:
            with ot.patch(model, size):
                results.append(model(x))
        assert torch.allclose(results[0], results[1], atol=1e-6)
        assert torch.allclose(results[0], results[2], atol=1e-6)


def test_csm_refuses_some_of_the_tokens(make_plain):
    model = make_plain()
    ot.flexify(model, "embed", "head", patches=(4, 8), mode="csm", decoder_axes="p1 p2 c")
    with ot.patch(model, 4):
        model.embed(torch.randn(1, 2, 32, 48))
        with pytest.raises(ot.PatchError, match="needs all of the grid"):
            model.head(torch.randn(1, 10, 16))
