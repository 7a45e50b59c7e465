"""ConvNeXt blocks."""

import torch

from overtone.baselines.cnext_unet import Block


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
