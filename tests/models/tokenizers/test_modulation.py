"""Encoding and decoding: the grid is kept, nothing is lost at the seam, amplitudes agree."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import overtone as ot
from overtone.grid import PatchGrid
from overtone.models.tokenizers import TOKENIZERS, FixedTokenizer, KernelTokenizer, StrideTokenizer
from overtone.models.tokenizers.modulation import overlap

FRAMES = pytest.mark.parametrize("frames", [1, 3])
"""How many are read as channels."""


def make(kind, domain, kernels=(4, 4), rule="keep", dim=12, stage_dim=6, frames=1):
    return TOKENIZERS[kind](
        domain, dim=dim, kernels=kernels, stage_dim=stage_dim, rule=rule, frames=frames
    )


@st.composite
def domains(draw):
    ndim = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(8, (60, 30, 17)[ndim - 1])] * ndim))
    side = st.sampled_from(["wall", "open"])
    boundaries = draw(st.tuples(*[st.just("periodic") | side | st.tuples(side, side)] * ndim))
    return ot.Domain(shape, (1.0,) * ndim, boundaries, ("u", "v"))


@given(
    data=st.data(),
    domain=domains(),
    kind=st.sampled_from(["csm", "ckm"]),
    frames=st.integers(1, 3),
)
@settings(max_examples=60)
def test_any_grid_patch_boundary_and_shift_keep_the_grid(data, domain, kind, frames):
    patch = data.draw(st.tuples(*[st.sampled_from([1, 2, 3, 4, 6, 8])] * domain.ndim))
    shift = data.draw(st.tuples(*[st.integers(0, 9)] * domain.ndim))
    tokenizer = make(kind, domain, kernels=(4, 3), frames=frames)
    grid = PatchGrid.lay(domain, patch, shift)
    tokens = tokenizer.encode(torch.randn(1, 2, frames * 2, *domain.shape), grid)
    assert tokens.shape == (1, 2, *grid.shape, 12)
    decoded = tokenizer.decode(tokens, grid)
    assert decoded.shape == (1, 2, 2, *domain.shape)
    assert decoded.isfinite().all()


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("kind", ["csm", "ckm"])
@FRAMES
def test_at_stride_equal_to_kernel_every_tokenizer_is_the_fixed_one(ndim, boundary, kind, frames):
    domain = ot.Domain((16, 24, 8)[:ndim], (1.0,) * ndim, boundary, ("u", "v"))
    fixed, flexible = (make(k, domain, kernels=(4, 2), frames=frames) for k in ("fixed", kind))
    flexible.load_state_dict(fixed.state_dict())
    fields = torch.randn(2, 3, 2 * frames, *domain.shape)
    for shift in (0, 3):
        grid = PatchGrid.lay(domain, 8, shift)
        tokens = fixed.encode(fields, grid)
        assert torch.equal(flexible.encode(fields, grid), tokens)
        assert torch.equal(flexible.decode(tokens, grid), fixed.decode(tokens, grid))


@FRAMES
def test_encoding_equals_a_direct_computation_with_circular_padding(frames):
    """Each stage padded by itself, as one would write it without the spans."""
    domain = ot.Domain((24, 32), (1, 1), "periodic", ("u",))
    tokenizer = make("csm", domain, frames=frames)
    fields = torch.randn(1, 1, frames, 24, 32)
    x = F.pad(fields[0], (1, 1, 1, 1), mode="circular")
    x = F.conv2d(x, tokenizer.encoders[0].weight, tokenizer.encoders[0].bias, stride=2)  # pyright: ignore[reportCallIssue]
    x = F.gelu(tokenizer.encoder_norms[0](x.movedim(1, -1))).movedim(-1, 1)
    x = F.pad(x, (1, 1, 1, 1), mode="circular")
    x = F.conv2d(x, tokenizer.encoders[1].weight, tokenizer.encoders[1].bias, stride=2)  # pyright: ignore[reportCallIssue]
    tokens = tokenizer.encode(fields, PatchGrid.lay(domain, 4))
    assert torch.allclose(tokens[0, 0], x[0].movedim(0, -1), atol=1e-5)


def test_single_stage_decoding_is_the_adjoint_of_encoding():
    """With shared kernels and zero bias: <encode x, t> = <x, decode t>, seam included."""
    domain = ot.Domain((24, 32), (1, 1), "periodic", ("u",))
    tokenizer = make("csm", domain, kernels=(8,), rule="paper").double()
    with torch.no_grad():
        tokenizer.decoders[0].weight.copy_(tokenizer.encoders[0].weight)  # pyright: ignore[reportCallIssue]
    for patch, shift in ((4, (0, 0)), (8, (3, 5)), (6, (1, 0)), (2, (0, 1))):
        if 32 % patch:
            continue
        grid = PatchGrid.lay(domain, patch, shift)
        x = torch.randn(1, 1, 1, 24, 32, dtype=torch.float64)
        t = torch.randn(1, 1, *grid.shape, 12, dtype=torch.float64)
        left = (tokenizer.encode(x, grid) * t).sum()
        right = (x * tokenizer.decode(t, grid)).sum()
        assert left.item() == pytest.approx(right.item(), rel=1e-10)


@pytest.mark.parametrize("kind", ["csm", "ckm"])
@pytest.mark.parametrize("patch", [2, 4, 8, 16])
@FRAMES
def test_periodic_tokenizer_commutes_with_shifts_by_whole_patches(kind, patch, frames):
    domain = ot.Domain((32, 48), (1, 1), "periodic", ("u", "v"))
    tokenizer = make(kind, domain, frames=frames).double()
    grid = PatchGrid.lay(domain, patch)
    fields = torch.randn(1, 2, 2 * frames, 32, 48, dtype=torch.float64)
    rolled = torch.roll(fields, (patch, 2 * patch), (-2, -1))
    once = tokenizer.decode(tokenizer.encode(rolled, grid), grid)
    other = tokenizer.decode(tokenizer.encode(fields, grid), grid)
    assert torch.allclose(once, torch.roll(other, (patch, 2 * patch), (-2, -1)), atol=1e-12)


@pytest.mark.parametrize("kind", ["csm", "ckm"])
@FRAMES
def test_a_shifted_grid_equals_shifted_fields_on_a_periodic_domain(kind, frames):
    domain = ot.Domain((32, 48), (1, 1), "periodic", ("u",))
    tokenizer = make(kind, domain, frames=frames).double()
    fields = torch.randn(1, 1, frames, 32, 48, dtype=torch.float64)
    shifted = PatchGrid.lay(domain, 8, (3, 5))
    plain = PatchGrid.lay(domain, 8)
    rolled = torch.roll(fields, (-3, -5), (-2, -1))
    expected = torch.roll(
        tokenizer.decode(tokenizer.encode(rolled, plain), plain), (3, 5), (-2, -1)
    )
    result = tokenizer.decode(tokenizer.encode(fields, shifted), shifted)
    assert torch.allclose(result, expected, atol=1e-12)


class Copy(KernelTokenizer):
    """A one-stage tokenizer whose tokens are the cells of their patch."""

    def __init__(self, domain, patch):
        cells = patch**domain.ndim
        super().__init__(domain, dim=cells, kernels=(patch,), stage_dim=1)
        shape = (patch,) * domain.ndim
        with torch.no_grad():
            self.encoders[0].weight.zero_()  # pyright: ignore[reportCallIssue]
            self.encoders[0].weight[:, 0] = torch.eye(cells).reshape(cells, *shape)
            self.decoders[0].weight[:, 0] = torch.eye(cells).reshape(cells, *shape)


@given(domain=domains(), data=st.data())
def test_shift_and_unshift_are_the_identity_for_an_identity_model(domain, data):
    domain = ot.Domain(domain.shape, domain.extent, domain.boundaries, ("u",))
    shift = data.draw(st.tuples(*[st.integers(0, 9)] * domain.ndim))
    grid = PatchGrid.lay(domain, 3, shift)
    fields = torch.randn(1, 1, 1, *domain.shape)
    tokenizer = Copy(domain, 3)
    assert torch.equal(tokenizer.decode(tokenizer.encode(fields, grid), grid), fields)


@pytest.mark.parametrize("kind", ["csm", "ckm"])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_decoders_amplitude_is_the_same_at_every_patch(kind, boundary, ndim):
    shape = ((256,), (64, 64), (32, 32, 32))[ndim - 1]
    domain = ot.Domain(shape, (1.0,) * ndim, boundary, ("u", "v", "w"))
    tokenizer = make(kind, domain, dim=48, stage_dim=24)
    scales = []
    for patch in (4, 8, 16):
        grid = PatchGrid.lay(domain, patch)
        tokens = torch.randn(16, 1, *grid.shape, 48)
        scales.append(tokenizer.decode(tokens, grid).std().item())
    assert max(scales) / min(scales) < 1.15


def test_smooth_kernels_are_divided_by_the_number_of_overlapping_taps():
    for kernel, stride, counts in (
        (4, 2, [2, 2]),
        (4, 4, [1] * 4),
        (4, 3, [2, 1, 1]),
        (8, 2, [4, 4]),
    ):
        factor = overlap(torch.ones(3, 2, kernel), (stride,))[0, 0]
        assert factor.tolist() == pytest.approx([counts[tap % stride] for tap in range(kernel)])
    factor = overlap(torch.ones(3, 2, 4, 4), (2, 4))
    assert torch.allclose(factor, torch.full((1, 1, 4, 4), 2.0))


def test_the_papers_rule_amplifies_fine_patches():
    """The reason for the other rule; see docs/design_decisions.md."""
    domain = ot.Domain((64, 64), (1, 1), "periodic", ("u", "v", "w"))
    for kind in ("csm", "ckm"):
        tokenizer = make(kind, domain, rule="paper", dim=48, stage_dim=24)
        fine, coarse = (
            tokenizer.decode(torch.randn(4, 1, 64 // p, 64 // p, 48), PatchGrid.lay(domain, p))
            for p in (4, 16)
        )
        assert fine.std() / coarse.std() > 1.5


def test_cells_at_a_wall_have_as_many_taps_as_those_inside():
    domain = ot.Domain((32, 32), (1, 1), "wall", ("u",))
    tokenizer = make("csm", domain, kernels=(4,), rule="paper")
    with torch.no_grad():
        tokenizer.decoders[0].weight.fill_(1.0)  # pyright: ignore[reportCallIssue]
    for patch in (1, 2, 3, 4):
        grid = PatchGrid.lay(domain, patch)
        cells = tokenizer.decode(torch.ones(1, 1, *grid.shape, 12), grid)
        interior = cells[..., 8:20, 8:20]
        assert cells.max() == interior.max()
        assert cells.min() == interior.min()


@FRAMES
def test_boundaries_are_seen_at_every_patch(frames):
    fields = torch.zeros(1, 1, frames, 32, 32)
    for kind in ("csm", "ckm"):
        domain = ot.Domain((32, 32), (1, 1), ("periodic", "wall"), ("u",))
        tokenizer = make(kind, domain, frames=frames)
        for patch in (4, 8, 16):
            tokens = tokenizer.encode(fields, PatchGrid.lay(domain, patch))[0, 0]
            assert not torch.allclose(tokens[:, 0], tokens[:, 1], atol=1e-3)
            assert torch.allclose(tokens[0], tokens[-1])


def test_stride_larger_than_its_kernel_is_refused():
    domain = ot.Domain((64, 64), (1, 1), "periodic", ("u",))
    tokenizer = make("csm", domain)
    with pytest.raises(ot.PatchError, match=r"patch \(32, 32\) needs stride 8.*base kernel 4"):
        tokenizer.encode(torch.zeros(1, 1, 1, 64, 64), PatchGrid.lay(domain, 32))


def test_fixed_tokenizer_refuses_other_patches():
    domain = ot.Domain((32, 32), (1, 1), "periodic", ("u",))
    with pytest.raises(ot.PatchError, match=r"can't make patch \(8, 8\).*'csm' or 'ckm'"):
        make("fixed", domain).strides((8, 8))


def test_names():
    assert {"fixed": FixedTokenizer, "csm": StrideTokenizer, "ckm": KernelTokenizer} == TOKENIZERS


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_smooth_field_gives_the_same_token_at_every_patch(ndim):
    """PI-resize keeps what a kernel says of a field that is resized with it, its sum first."""
    domain = ot.Domain((32,) * ndim, (1.0,) * ndim, "periodic", ("u",))
    tokenizer = make("ckm", domain, kernels=(8,)).double()
    field = torch.ones(1, 1, 1, *domain.shape, dtype=torch.float64)
    base = tokenizer.encode(field, PatchGrid.lay(domain, 8)).flatten(0, -2)[0]
    assert base.abs().max() > 0.1
    for patch in (4, 16):
        tokens = tokenizer.encode(field, PatchGrid.lay(domain, patch)).flatten(0, -2)
        torch.testing.assert_close(tokens, base.expand_as(tokens))


def test_an_enlarged_encoder_meets_a_cubically_enlarged_field_alike():
    """A token of a patch, and of the same patch interpolated to twice as many cells."""
    small, large = (ot.Domain((n, n), (1.0, 1.0), "periodic", ("u",)) for n in (4, 8))
    tokenizer = make("ckm", small, kernels=(4,)).double()
    field = torch.randn(1, 1, 4, 4, dtype=torch.float64)
    fine = F.interpolate(field, size=(8, 8), mode="bicubic")
    one = tokenizer.encode(field[None], PatchGrid.lay(small, 4))
    other = tokenizer.encode(fine[None], PatchGrid.lay(large, 8))
    assert one.abs().max() > 0.1
    torch.testing.assert_close(other, one)


def passed_by(kind, boundary, fields, shift=0):
    """What details alone write at patch 8, from one field `(64,)`, in three stages of 2."""
    torch.manual_seed(0)
    domain = ot.Domain((64,), (1.0,), boundary, ("u",))
    sizes = {"kernels": (4, 4, 4) if kind == "csm" else (2, 2, 2), "stage_dim": 5, "dim": 6}
    tokenizer = TOKENIZERS[kind](domain, **sizes, skip=True).double()
    grid = PatchGrid.lay(domain, 8, shift)
    tokens, details = tokenizer.encode_with_details(fields.reshape(1, 1, 1, 64), grid)
    num = len(tokens[0, 0])
    assert [detail.shape[-1] for detail in details] == [4 * num, 2 * num]
    return tokenizer.decode(torch.zeros_like(tokens), grid, details)[0, 0, 0]


@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("kind", ["csm", "ckm"])
@pytest.mark.parametrize("cell", [3, 40, 61])
def test_details_come_back_where_they_were_read(kind, boundary, cell):
    """Of three stages; each joins its own, so what one cell says is written around it."""
    field = torch.randn(64, dtype=torch.float64)
    other = field.clone()
    other[cell] += 1
    for shift in (0, 3):
        one, two = (passed_by(kind, boundary, x, shift) for x in (field, other))
        distance = (torch.arange(64) - cell).abs()
        if boundary == "periodic":
            distance = torch.minimum(distance, 64 - distance)
        changed = (one != two).nonzero().flatten()
        assert distance[changed].max() < (24 if kind == "csm" else 4)
        assert cell in changed


@pytest.mark.parametrize("kind", ["csm", "ckm"])
def test_details_know_no_seam_on_a_periodic_axis(kind):
    field = torch.randn(64, dtype=torch.float64)
    whole, moved = passed_by(kind, "periodic", field), passed_by(kind, "periodic", field.roll(24))
    torch.testing.assert_close(moved, whole.roll(24))
