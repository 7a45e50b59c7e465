import math

import pytest
import torch

from overtone.normalize import (
    CHANGE_FLOOR,
    REST,
    change_share,
    size_of,
    spread_of,
    statistics,
    typical_pace,
    typical_scale,
)


def fields(scale=1.0, frames=5, seed=0, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)
    return scale * torch.randn(2, frames, 3, 8, 9, generator=random, dtype=dtype).cumsum(1)


def test_last_frame_has_the_statistics_of_the_whole_context():
    x = fields()
    stats = statistics(x)
    assert torch.allclose(stats.mean[:, -1], x.mean((1, 3, 4)))
    assert torch.allclose(stats.std[:, -1], x.transpose(1, 2).flatten(2).std(-1, correction=0))
    assert torch.allclose(stats.change[:, -1], x.diff(dim=1).square().mean((1, 3, 4)).sqrt())


def test_every_frame_has_the_statistics_of_its_own_prefix():
    x = fields()
    stats = statistics(x)
    for t in range(1, 6):
        prefix = statistics(x[:, :t])
        assert torch.allclose(stats.mean[:, t - 1], prefix.mean[:, -1])
        assert torch.allclose(stats.std[:, t - 1], prefix.std[:, -1])
        assert torch.allclose(stats.change[:, t - 1], prefix.change[:, -1])


def test_no_frame_knows_a_later_one():
    x = fields()
    changed = x.clone()
    changed[:, -1] *= 100
    before, after = statistics(x), statistics(changed)
    for name in ("mean", "std", "change"):
        assert torch.equal(getattr(before, name)[:, :-1], getattr(after, name)[:, :-1])


@pytest.mark.parametrize("frames", [1, 2, 5])
@pytest.mark.parametrize("pace", [None, torch.tensor([0.1, 0.0, 0.3])])
def test_without_causality_all_frames_share_the_windows_statistics(frames, pace):
    x = 7 + fields(frames=frames)
    shared, own = statistics(x, pace=pace, causal=False), statistics(x, pace=pace)
    for name in ("mean", "std", "change", "unit"):
        values = getattr(shared, name)
        assert values.shape == (2, frames, 3)
        last = getattr(own, name)[:, -1:].expand_as(values)
        torch.testing.assert_close(values, last, rtol=1e-12, atol=0)


@pytest.mark.parametrize("causal", [True, False])
def test_a_large_mean_costs_no_more_digits_than_it_has(causal):
    """1e4 with a standard deviation of 1: squares of the values alone would leave no digit."""
    exact = fields(dtype=torch.float64)
    x = (1e4 + exact).float()
    found, expected = (statistics(y, causal=causal).std for y in (x, x.double()))
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=0)


def test_gradients_go_through_the_statistics():
    x = fields(frames=3).requires_grad_()
    for causal in (True, False):
        assert torch.autograd.gradcheck(lambda y, c=causal: statistics(y, causal=c).unit, x)


def test_inverses_are_exact():
    x, following = fields(seed=1), fields(seed=2)
    stats = statistics(x)
    assert torch.allclose(stats.denormalise(stats.normalise(x)), x, rtol=1e-14, atol=1e-14)
    change = stats.change_between(x, following)
    assert torch.allclose(stats.add_change(x, change), following, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_amplitude_does_not_matter(scale):
    x, reference = fields(scale, dtype=torch.float32), fields(dtype=torch.float32)
    result = statistics(x).normalise(x)
    assert torch.allclose(result, statistics(reference).normalise(reference), rtol=1e-4, atol=1e-5)
    assert result[:, -1].std().item() == pytest.approx(1.0, rel=0.6)


@pytest.mark.parametrize("value", [0.0, 1.0, 273.15, 1e5, 1e-6])
def test_constant_fields_do_not_blow_up(value):
    x = torch.full((1, 4, 1, 16, 16), value)
    stats = statistics(x)
    assert stats.normalise(x).abs().max() < 0.05
    assert torch.isfinite(stats.std).all()
    assert (stats.std > 0).all()
    moved = stats.add_change(x, torch.ones_like(x))[:, -1]
    assert torch.allclose(moved, x[:, -1], rtol=1e-3, atol=1e-3 if value == 0 else 0.0)


def test_steady_windows_do_not_blow_up():
    x = fields(frames=1).expand(-1, 4, -1, -1, -1)
    stats = statistics(x)
    assert torch.allclose(stats.change[:, 1:], CHANGE_FLOOR * stats.std[:, 1:])
    moved = stats.add_change(x, torch.randn_like(x))[:, -1]
    relative = (moved - x[:, -1]).std() / x[:, -1].std()
    assert relative < 1e-3


def test_a_small_field_beside_a_large_one_keeps_its_scale():
    x = fields()
    x[:, :, 0] *= 1e-8
    stats = statistics(x)
    assert stats.normalise(x)[:, -1, 0].std() > 0.3


def test_full_precision_under_autocast():
    x = fields(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        stats = statistics(x)
    assert torch.equal(stats.std, statistics(x).std)


def waves(step, frames=4):
    """Waves of amplitude 1 and 3 that move by `step` of a period each frame."""
    x = torch.arange(48, dtype=torch.float64) / 48
    moving = torch.stack([torch.sin(2 * math.pi * (x - t * step)) for t in range(frames)])
    return torch.stack([moving, 4 + 3 * moving], dim=1)[None]


def test_the_pace_of_waves_is_known():
    shares = torch.cat([change_share(waves(1 / 12)), change_share(waves(1 / 24))])
    slow, fast = 2 * math.sin(math.pi / 24), 2 * math.sin(math.pi / 12)
    expected = torch.full((2,), (slow + fast) / 2, dtype=torch.float64)
    torch.testing.assert_close(typical_pace(shares), expected)


def test_what_rests_at_first_and_rushes_later_has_no_pace():
    shares = torch.tensor([[0.1, 1e-4], [0.2, 1e-1]])
    assert typical_pace(shares).tolist() == pytest.approx([0.15, 0.0])


def test_whether_a_field_has_a_pace_is_told_by_its_own_spread():
    """Measured by a scale, a window at rest seems slower than it is."""
    own = torch.tensor([[0.1, 0.001], [0.2, 0.2]])
    by_scale = torch.tensor([[0.001, 0.1], [0.3, 0.3]])
    assert typical_pace(by_scale, own).tolist() == pytest.approx([0.1505, 0.0])
    assert typical_pace(by_scale).tolist() == pytest.approx([0.0, 0.2])


def test_the_unit_is_the_pace_where_it_is_known():
    pace = torch.tensor([0.25, 0.0])
    stats = statistics(waves(1 / 12), pace=pace)
    own = (stats.change * 0.25 * stats.std).sqrt()
    torch.testing.assert_close(stats.unit[..., 0], own[..., 0])
    assert torch.equal(stats.unit[..., 1], stats.change[..., 1])
    assert torch.equal(stats.last().unit, stats.unit[:, -1:])


def test_a_pace_calls_the_unit_back_where_the_context_runs_faster():
    """What a rollout does to its own context changes the size of its next step by the root."""
    slow, fast = waves(1 / 24), waves(1 / 12)
    without = statistics(fast).unit / statistics(slow).unit
    pace = torch.tensor([0.25, 0.25])
    with_pace = statistics(fast, pace=pace).unit / statistics(slow, pace=pace).unit
    assert without[0, -1].tolist() == pytest.approx([1.983, 1.983], abs=1e-3)
    torch.testing.assert_close(with_pace, without.sqrt())


@pytest.mark.parametrize("unit", [1e-30, 1e-25, 1e20, 1e30])
def test_squares_neither_vanish_nor_overflow(unit):
    x, pace = fields(dtype=torch.float32), torch.tensor([0.2, 0.0, 0.1])
    found, expected = statistics(unit * x, pace=pace), statistics(x, pace=pace)
    for name in ("mean", "std", "change", "unit"):
        wanted = getattr(expected, name).double()
        assert torch.allclose(getattr(found, name).double() / unit, wanted, rtol=1e-5, atol=1e-6)
    assert torch.allclose(change_share(unit * x), change_share(x), rtol=1e-5)


def test_ordinary_numbers_are_what_they_are_without_units():
    """The statistics written out, without the division by a power of two."""
    x = fields(scale=3.7, dtype=torch.float32)
    stats = statistics(x, causal=False)
    mean = x.mean(dim=(1, 3, 4), keepdim=True)
    var = (x - mean).square().mean(dim=(1, 3, 4))
    std = (var + 1e-5**2 * (var + mean.flatten(1).square())).sqrt()
    change = x.diff(dim=1).square().mean(dim=(1, 3, 4))
    step = (change + (CHANGE_FLOOR * std).square()).sqrt()
    torch.testing.assert_close(stats.std[:, -1], std, rtol=1e-6, atol=0)
    torch.testing.assert_close(stats.unit[:, -1], step, rtol=1e-6, atol=0)


def test_what_is_zero_everywhere_has_no_unit_and_stays_zero():
    x = fields()
    x[:, :, 1] = 0
    stats = statistics(x, pace=torch.tensor([0.1, 0.1, 0.0]))
    assert bool((stats.unit[:, :, 1] == 0).all())
    assert bool((stats.add_change(x, torch.ones_like(x))[:, :, 1] == 0).all())
    assert bool(stats.change_between(x, x + 1).isfinite().all())
    assert bool((stats.unit[:, :, [0, 2]] > 0).all())


@pytest.mark.parametrize("causal", [False, True])
def test_fields_are_measured_by_their_own_and_their_usual_spread(causal):
    """Waves of standard deviation √½ and 3·√½, where √2 is usual and where nothing is."""
    stats = statistics(waves(1 / 12), scale=torch.tensor([2**0.5, 0.0]), causal=causal)
    found = stats.std[0, -1].tolist()
    assert found == pytest.approx([1.0, 3 * 0.5**0.5], rel=1e-5)
    seen = stats.normalise(waves(1 / 12))[0, -1, 0]
    assert seen.abs().max() == pytest.approx(1.0, rel=1e-5)


def test_a_scale_shows_what_has_grown_and_calls_it_back():
    """Four times the amplitude looks twice as large, and changes by 4^¾ of the unit, not by 4."""
    x, scale, pace = waves(1 / 12)[:, :, :1], torch.tensor([1.0]), torch.tensor([0.3])
    usual, grown = (statistics(k * x, scale=scale, pace=pace) for k in (1, 4))
    ratio = grown.normalise(4 * x)[0, -1].abs().max() / usual.normalise(x)[0, -1].abs().max()
    assert float(ratio) == pytest.approx(2.0, rel=1e-5)
    assert float(grown.unit[0, -1, 0] / usual.unit[0, -1, 0]) == pytest.approx(4**0.75, rel=1e-5)
    alone = [statistics(k * x, pace=pace) for k in (1, 4)]
    assert float(alone[1].unit[0, -1, 0] / alone[0].unit[0, -1, 0]) == pytest.approx(4.0)


def test_what_rests_can_start_where_its_scale_is_known():
    x = fields()
    x[:, :, 1] = 0
    pace, scale = torch.tensor([0.1, 0.1, 0.1]), torch.tensor([1.0, 2.0, 0.0])
    stats = statistics(x, pace=pace, scale=scale)
    assert stats.std[0, -1, 1] == pytest.approx(2 * REST**0.5)
    assert bool((stats.unit > 0).all())
    assert bool((stats.normalise(x)[:, :, 1] == 0).all())


@pytest.mark.parametrize("unit", [1e-30, 1e-25, 1e20, 1e30])
def test_a_scale_has_the_units_of_its_field(unit):
    x, pace = fields(dtype=torch.float32), torch.tensor([0.2, 0.0, 0.1])
    scale = torch.tensor([0.3, 2.0, 0.0])
    found = statistics(unit * x, pace=pace, scale=unit * scale)
    expected = statistics(x, pace=pace, scale=scale)
    for name in ("mean", "std", "change", "unit"):
        wanted = getattr(expected, name).double()
        assert torch.allclose(getattr(found, name).double() / unit, wanted, rtol=1e-5, atol=1e-6)


def test_the_usual_spread_of_fields():
    found = spread_of(torch.cat([waves(1 / 12), 2 * waves(1 / 24)]))
    expected = 0.5**0.5 * torch.tensor([[1.0, 3.0], [2.0, 6.0]], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(typical_scale(found), expected.mean(dim=0), rtol=1e-5, atol=0)
    zero = torch.zeros_like(waves(1 / 12))
    assert torch.equal(spread_of(zero), torch.zeros(1, 2, dtype=torch.float64))
    at_rest_first = torch.tensor([[0.0], [1e-3], [2.0]])
    assert typical_scale(at_rest_first).tolist() == pytest.approx([0.667], rel=1e-3)


def test_sizes_are_powers_of_two_below_the_largest_value():
    x = torch.tensor([[3.0, -5.0], [0.0, 0.0], [1e-30, 0.0], [-3e38, 1.0], [0.5, 0.25]])
    expected = [4.0, 1.0, 2.0**-100, 2.0**127, 0.5]
    assert size_of(x, dim=(1,)).flatten().tolist() == expected
