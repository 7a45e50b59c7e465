"""Waves: their residuals, their grids, their growth."""

import torch

from overtone.baselines.sinenet import Wave


def test_waves_that_do_nothing_pass_the_features_on(make_baseline):
    model = make_baseline("sinenet")
    fields = torch.randn(1, 6, 16, 24)
    expected = model.head(model.first(fields))
    for wave in model.waves:
        wave.register_forward_hook(lambda *args: torch.zeros_like(args[2]))
    assert torch.allclose(model.network(fields), expected, atol=1e-6)


def test_a_wave_visits_every_grid_and_returns():
    wave = Wave([4, 6, 9], (True, True))
    shapes = []
    for block in [*wave.down, *wave.up]:
        block.register_forward_hook(lambda *args: shapes.append(tuple(args[2].shape[1:])))
    assert wave(torch.randn(1, 4, 8, 12)).shape == (1, 4, 8, 12)
    assert shapes == [(6, 4, 6), (9, 2, 3), (6, 4, 6), (4, 8, 12)]


def test_a_linear_path_leads_to_the_coarsest_grid():
    """What dual means: with the convolutions' branch gone, averages arrive there unbent."""
    wave = Wave([4, 6, 9], (True, True)).double()
    for block in wave.down:
        block.convolutions.register_forward_hook(lambda *args: torch.zeros_like(args[2]))
    coarsest = []
    wave.down[-1].register_forward_hook(lambda *args: coarsest.append(args[2]))
    x = torch.randn(1, 4, 8, 8, dtype=torch.float64)
    for factor in (1, 3):
        wave(factor * x)
    assert torch.allclose(3 * coarsest[0], coarsest[1])
    averages = torch.nn.functional.avg_pool2d(x, 4)
    path = wave.down[1].residual.weight[..., 0, 0] @ wave.down[0].residual.weight[..., 0, 0]
    assert torch.allclose(coarsest[0], torch.einsum("oi,bixy->boxy", path, averages))


def test_channels_grow_towards_coarser_grids(make_baseline):
    model = make_baseline("sinenet", width=10, growth=1.5, levels=3)
    widths = [block.residual.weight.shape[0] for block in model.waves[0].down]
    assert widths == [15, 22, 34]
