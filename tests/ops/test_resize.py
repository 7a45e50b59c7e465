"""PI-resize: identities, and equality with a computation that builds the full matrix."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import PatchError
from overtone.ops.resize import interpolate, interpolation_matrix, pi_resize


def full_matrix(old, new):
    """Interpolate every basis patch with torch's own 2D bicubic, `(prod new, prod old)`."""
    columns = []
    for index in itertools.product(*map(range, old)):
        basis = torch.zeros(old, dtype=torch.float64)
        basis[index] = 1
        resized = F.interpolate(basis[None, None], size=new, mode="bicubic", align_corners=False)
        columns.append(resized.flatten())
    return torch.stack(columns, dim=1)


@given(ndim=st.integers(1, 3), kernel=st.integers(1, 9))
def test_same_size_is_the_identity(ndim, kernel):
    weight = torch.randn(3, 2, *(kernel,) * ndim)
    assert torch.equal(pi_resize(weight, kernel), weight)
    assert torch.equal(interpolate(weight, kernel), weight)


@given(data=st.data(), ndim=st.integers(1, 3))
def test_enlarged_kernel_meets_the_enlarged_patch_alike(data, ndim):
    old = data.draw(st.tuples(*[st.integers(2, 5)] * ndim))
    new = tuple(data.draw(st.integers(n, n + 6)) for n in old)
    random = torch.Generator().manual_seed(data.draw(st.integers(0, 999)))
    weight = torch.randn(2, 3, *old, generator=random, dtype=torch.float64)
    patch = torch.randn(old, generator=random, dtype=torch.float64)
    enlarged = patch
    for axis, (a, b) in enumerate(zip(old, new, strict=True)):
        matrix = interpolation_matrix(a, b)
        enlarged = torch.tensordot(matrix, enlarged, dims=([1], [axis])).movedim(0, axis)
    before = (weight * patch).flatten(2).sum(-1)
    after = (pi_resize(weight, new) * enlarged).flatten(2).sum(-1)
    assert torch.allclose(before, after, atol=1e-5)


@pytest.mark.parametrize("sizes", [((4, 4), (2, 2)), ((4, 4), (8, 8)), ((16, 16), (4, 8)),
                                   ((3, 5), (7, 2))])  # fmt: skip
def test_equals_the_pseudo_inverse_of_the_full_2d_matrix(sizes):
    old, new = sizes
    weight = torch.randn(3, 2, *old, dtype=torch.float64)
    reference = weight.flatten(2) @ torch.linalg.pinv(full_matrix(old, new).T).T
    assert torch.allclose(pi_resize(weight, new).flatten(2), reference, atol=1e-9)


def test_antialiased_matrix_is_torchs_own():
    basis = torch.eye(16, dtype=torch.float64)[None, None]
    reference = F.interpolate(basis, size=(4, 16), mode="bicubic", antialias=True)[0, 0]
    assert torch.equal(interpolation_matrix(16, 4, antialias=True), reference)


def test_pi_resize_keeps_the_sum_and_interpolation_the_value():
    constant = torch.ones(1, 1, 4, 4)
    for size in (2, 8):
        assert pi_resize(constant, size).sum() == pytest.approx(16, rel=1e-5)
        assert torch.allclose(interpolate(constant, size), torch.ones(1, 1, size, size))


def test_gradients_reach_the_base_kernel():
    weight = torch.randn(2, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: pi_resize(w, (2, 7)), weight)


def test_full_precision_under_autocast():
    weight = torch.randn(2, 2, 4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        resized = pi_resize(weight, 2)
    assert torch.equal(resized, pi_resize(weight, 2))


@pytest.mark.parametrize("size", [(2,), 0, (2, 2, 2)])
def test_wrong_size(size):
    with pytest.raises(PatchError, match="one positive int for each kernel axis"):
        pi_resize(torch.randn(1, 1, 4, 4), size)


def test_unknown_mode():
    with pytest.raises(PatchError, match="'lanczos'; expected one of"):
        pi_resize(torch.randn(1, 1, 4), 2, mode="lanczos")


@pytest.mark.parametrize("resize", [pi_resize, interpolate])
def test_cubic_is_what_nobody_has_to_ask_for(resize):
    weight = torch.randn(3, 2, 4, 4, dtype=torch.float64)
    for size in (2, 8):
        assert torch.equal(resize(weight, size), resize(weight, size, mode="bicubic"))
        assert not torch.allclose(resize(weight, size), resize(weight, size, mode="bilinear"))
