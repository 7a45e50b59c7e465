"""The U-Net's levels, and the blocks of its ConvNeXt sibling."""

import pytest
import torch

from overtone.baselines.unet import Block


def test_a_level_more_is_four_times_the_parameters_and_a_coarser_grid(make_baseline):
    few, more = (make_baseline("unet", width=8, levels=n) for n in (2, 3))
    assert more.num_parameters == pytest.approx(4 * few.num_parameters, rel=0.1)
    sizes = []
    more.down[-1].register_forward_hook(lambda *args: sizes.append(tuple(args[2].shape)))
    more.network(torch.randn(1, 6, 16, 24))
    assert sizes == [(1, 64, 2, 3)]


def test_bridges_carry_the_finest_grid(make_baseline, make_window):
    """A change in one cell reaches its own cell through the bridge although the neck is cut."""
    model = make_baseline("unet")
    with torch.no_grad():
        for module in model.grow:
            module.weight.zero_()
    fields = make_window(model.domain).fields.flatten(1, 2)
    other = fields.clone()
    other[..., 5, 5] += 1
    change = (model.network(other) - model.network(fields)).abs().amax(dim=(0, 1))
    assert change[5, 5] > 0
    assert change[5, 17] == 0  # four convolutions reach four cells


def test_a_block_without_scale_is_the_identity():
    x = torch.randn(2, 4, 6, 5)
    assert torch.equal(Block(4, (True, False), 0.0)(x), x)


def test_a_block_reaches_three_cells_and_wraps_on_periodic_axes():
    block = Block(4, (True, False), 1.0)
    x = torch.randn(1, 4, 12, 12)
    other = x.clone()
    other[:, 0, 0, 0] += 1
    moved = (block(other) - block(x)).abs().amax(dim=(0, 1)) > 1e-7
    rows, columns = moved.any(dim=1).nonzero().flatten(), moved.any(dim=0).nonzero().flatten()
    assert rows.tolist() == [0, 1, 2, 3, 9, 10, 11]
    assert columns.tolist() == [0, 1, 2, 3]


def test_the_coarsest_grid_has_the_neck_and_the_first_stage_up(make_baseline):
    model = make_baseline("cnext_unet", width=4, levels=2, blocks=2, neck=3)
    dims = [module.gamma.numel() for module in model.modules() if isinstance(module, Block)]
    assert sorted(dims) == [4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 16]
