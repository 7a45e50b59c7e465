"""The U-Net's levels."""

import pytest
import torch


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
