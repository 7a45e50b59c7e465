"""Orthogonal steps: by singular values, and beside torch's own."""

import pytest
import torch
from torch import nn

from overtone.train.muon import Muon, orthogonal


def stretched(rows, columns, smallest=0.05):
    """Two matrices `(2, rows, columns)` with singular values from 1 down to the smallest."""
    generator = torch.Generator().manual_seed(rows + columns)
    rank = min(rows, columns)
    left = torch.linalg.qr(torch.randn(2, rows, rank, generator=generator))[0]
    right = torch.linalg.qr(torch.randn(2, columns, rank, generator=generator))[0]
    return left * torch.linspace(smallest, 1.0, rank) @ right.transpose(1, 2)


@pytest.mark.parametrize("shape", [(6, 6), (4, 19), (19, 4), (1, 5)])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_directions_stay_and_lengths_become_alike(shape, scale):
    given = stretched(*shape)
    found = orthogonal(scale * given)
    lengths = torch.linalg.svdvals(found)
    assert lengths.min() > 0.65
    assert lengths.max() < 1.25
    # U f(S) V^T: then x^T y is V S f(S) V^T, which is symmetric.
    product = given.transpose(1, 2) @ found
    torch.testing.assert_close(product, product.transpose(1, 2), atol=2e-5, rtol=0)


def test_nothing_stays_nothing():
    assert torch.equal(orthogonal(torch.zeros(1, 3, 4)), torch.zeros(1, 3, 4))


def plain(matrices, **options):
    return torch.optim.Muon(matrices, adjust_lr_fn="match_rms_adamw", **options)


def ours(matrices, **options):
    return Muon(matrices, [], betas=(0.9, 0.999), **options)


def steps_of(make, num=3):
    generator = torch.Generator().manual_seed(0)
    # Two of one shape, which are stepped together, and one tall one.
    shapes = ((8, 8), (8, 8), (20, 6))
    matrices = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    optimizer = make(matrices, lr=0.1, weight_decay=0.5)
    for _ in range(num):
        for matrix in matrices:
            matrix.grad = torch.randn(matrix.shape, generator=generator)
        optimizer.step()
    return [matrix.detach() for matrix in matrices]


def test_steps_are_those_of_torchs_muon():
    # Its iteration has the eight bits of bfloat16.
    for own, theirs in zip(steps_of(ours), steps_of(plain), strict=True):
        torch.testing.assert_close(own, theirs, atol=5e-3, rtol=0)


def test_all_others_step_as_adamw_does():
    def make(kind):
        torch.manual_seed(0)
        matrix, vector = nn.Parameter(torch.randn(3, 3)), nn.Parameter(torch.randn(3))
        rest = [{"params": [vector], "weight_decay": 0.5}]
        options = {"lr": 0.1, "betas": (0.8, 0.9)}
        optimizer = kind([matrix], rest, **options)
        for turn in range(4):
            for group in optimizer.param_groups:
                group["lr"] = 0.1 / (1 + turn)
            matrix.grad, vector.grad = torch.ones(3, 3), torch.randn(3)
            optimizer.step()
        return vector.detach()

    found = make(lambda matrices, rest, **options: Muon(matrices, rest, weight_decay=0, **options))
    expected = make(lambda matrices, rest, **options: torch.optim.AdamW(rest, **options))
    torch.testing.assert_close(found, expected)


def test_without_a_gradient_there_is_no_step():
    matrix = nn.Parameter(torch.ones(2, 2))
    ours([matrix], lr=0.1, weight_decay=0.5).step()
    assert torch.equal(matrix.detach(), torch.ones(2, 2))


def test_a_closure_is_asked_for_the_loss():
    matrix = nn.Parameter(torch.eye(2))
    optimizer = ours([matrix], lr=0.1, weight_decay=0.0)

    def closure():
        optimizer.zero_grad()
        loss = matrix.sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) == 2.0
    assert not torch.equal(matrix.detach(), torch.eye(2))
