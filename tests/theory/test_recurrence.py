"""Closed forms, and a simulation that agrees with them."""

import math
from fractions import Fraction
from pathlib import Path

import pytest
import torch

import overtone as ot
from overtone.theory import ErrorModel, coherence, expected_energy, growth, simulate

DOCS = Path(__file__).parents[2] / "docs"
SCHEDULES = ("16", "8", "4", "4-8-16", "16+shift", "4-8-16+shift")
HARMONICS = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4))
STEPS = 384
MODELS = {"phase-locked": ErrorModel(), "r = 0.8": ErrorModel(persistence=0.8)}


def at(*values):
    return tuple(Fraction(v) for v in values)


def table():
    """The table of docs/theory.md."""
    heads = [f"{name}: {f}" for name in MODELS for f in HARMONICS]
    lines = ["| schedule | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for text in SCHEDULES:
        cells = []
        for model in MODELS.values():
            result = growth(
                ot.parse_schedule(text), STEPS, model=model, frequencies=[(f,) for f in HARMONICS]
            )
            by = {f: i for i, (f,) in enumerate(result.frequencies)}
            for f in HARMONICS:
                peak, slope = result.peak[by[f]], result.exponent[by[f]]
                # Adding 0 turns a slope that rounds to -0.0 into 0.0.
                cells.append(f"{peak:.0f} ({round(slope, 1) + 0:.1f})" if peak else "–")
        lines.append(f"| `{text}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def test_the_table_in_the_docs():
    assert table() in (DOCS / "theory.md").read_text()


def test_a_constant_grid_grows_with_the_square():
    result = growth(ot.Constant(8), 50)
    n = torch.arange(1, 51.0)
    assert torch.allclose(torch.tensor(result.energy), (n**2).expand(5, 50))
    assert result.exponent == pytest.approx([2.0] * 5, abs=0.03)
    assert result.coherence == pytest.approx([1.0] * 5)
    # Eight harmonics, the mean left out.
    assert result.total[-1] == pytest.approx(7 * 50**2)


@pytest.mark.parametrize("propagation", [0.7, 0.9j, 1.1, 0.5 - 0.5j])
def test_geometric_sums_of_a_constant_grid(propagation):
    energy = expected_energy(ot.Constant(4), at("1/4"), 20, ErrorModel(propagation))
    n = torch.arange(1, 21)
    series = (1 - torch.tensor(propagation, dtype=torch.complex128) ** n) / (1 - propagation)
    assert torch.allclose(energy, series.abs().square())
    walk = expected_energy(ot.Constant(4), at("1/4"), 20, ErrorModel(propagation, persistence=0))
    square = abs(propagation) ** 2
    assert torch.allclose(walk, (1 - square ** n.double()) / (1 - square))


def test_the_papers_identity_by_lags():
    """Its sum over lags for a stationary coherence, here persistence^τ."""
    schedule, f, steps, r, lam = ot.Constant(4), at("1/4"), 15, 0.6, 0.9 + 0.2j
    energy = expected_energy(schedule, f, steps, ErrorModel(lam, persistence=r))
    gamma = coherence(schedule, f, steps, ErrorModel(persistence=r))
    assert torch.allclose(gamma.real, r ** torch.arange(steps).double())
    powers = [abs(lam) ** (2 * k) for k in range(steps)]
    for n in (1, 7, 15):
        expected = sum(powers[:n])
        for lag in range(1, n):
            expected += 2 * sum(powers[: n - lag]) * (lam**lag * gamma[lag].item()).real
        assert energy[n - 1].item() == pytest.approx(expected)


def test_a_cycle_thins_what_one_patch_alone_excites():
    result = growth(ot.Cycle(4, 8, 16), 96)
    by = dict(zip(result.frequencies, range(len(result.frequencies)), strict=True))
    assert result.common == (4,)
    for harmonic, injections in (("1/16", 32), ("1/8", 64), ("1/4", 96), ("0", 96)):
        i = by[at(harmonic)]
        assert result.injections[i] == injections
        assert result.energy[i][-1] == pytest.approx(injections**2)
        assert result.exponent[i] == pytest.approx(2, abs=0.1)
    apart = growth(ot.Cycle(4, 8, 16), 96, model=ErrorModel(agreement=0.0))
    assert apart.energy[by[at("1/4")]][-1] == pytest.approx(96**2 / 3)
    assert apart.energy[by[at("1/16")]][-1] == pytest.approx(32**2)


def test_errors_with_memory_end_in_a_random_walk():
    n, r = 600, 0.5
    energy = expected_energy(ot.Constant(4), at("1/4"), n, ErrorModel(persistence=r))
    assert energy[-1].item() / n == pytest.approx((1 + r) / (1 - r), rel=0.01)


def test_stratified_shifts_cancel_over_every_round():
    schedule = ot.Shifted(ot.Constant(16))
    for m in range(1, 16):
        energy = expected_energy(schedule, (Fraction(m, 16),), 160)
        assert energy[15::16].max() < 1e-9
        assert energy.max() < 8**2 + 1e-9
    assert expected_energy(schedule, at(0), 160)[-1] == 160**2


def test_random_shifts_are_a_random_walk_on_average():
    curves = [
        expected_energy(ot.Shifted(ot.Constant(8), kind="random", seed=s), at("3/8"), 64)
        for s in range(300)
    ]
    mean = torch.stack(curves).mean(dim=0)
    n = torch.arange(1, 65.0).double()
    assert torch.allclose(mean, n, rtol=0.25)
    assert mean[-1].item() == pytest.approx(64, rel=0.15)


def test_a_shift_by_whole_patches_is_no_shift():
    moved = ot.Shifted(ot.Constant(8), offsets=[(0,), (8,), (16,)])
    still = expected_energy(ot.Constant(8), at("3/8"), 30)
    assert torch.equal(expected_energy(moved, at("3/8"), 30), still)


@pytest.mark.parametrize(
    "text", ["16", "4-8-16", "4-8-16+shift", "16+shift:random:3", "bursts:16:4:5"]
)
@pytest.mark.parametrize(
    "model",
    [ErrorModel(), ErrorModel(0.9 + 0.3j, 0.7, 0.4), ErrorModel(0.95, 0.0, 0.0)],
    ids=["locked", "partly", "fresh"],
)
def test_simulation_agrees_with_the_closed_form(text, model):
    schedule, steps, trials = ot.parse_schedule(text), 30, 4000
    for f in (at("1/4"), at("1/16")):
        samples = simulate(schedule, f, steps, model=model, trials=trials, seed=1)
        expected = expected_energy(schedule, f, steps, model)
        # |e|² of a complex Gaussian is as spread as its mean; five standard errors of it.
        error = (samples.mean(dim=0) - expected).abs()
        assert bool((error <= 5 * expected / math.sqrt(trials) + 1e-12).all())


def test_two_dimensions_use_both_offsets():
    f = at("1/8", "3/8")
    moved = ot.Shifted(ot.Constant(8), offsets=[(3, 7), (0, 0)])
    energy = expected_energy(moved, f, 2)
    turn = (3 / 8 + 21 / 8) * 2 * math.pi
    assert energy[1].item() == pytest.approx(abs(complex(math.cos(turn) + 1, math.sin(turn))) ** 2)
    result = growth(ot.Constant(4), 10, ndim=2)
    assert result.total[-1] == pytest.approx(15 * 100)


def test_bad_input():
    with pytest.raises(ot.OvertoneError, match="persistence is 1.5"):
        ErrorModel(persistence=1.5)
    with pytest.raises(ot.OvertoneError, match="steps is 0"):
        growth(ot.Constant(4), 0)
    with pytest.raises(ot.OvertoneError, match="fewer than 2 entries"):
        growth(ot.Shifted(ot.Constant(4), offsets=[(1,)]), 4, ndim=2)


def test_what_does_not_fit_is_refused_before_anything_is_made(monkeypatch):
    with pytest.raises(ot.OvertoneError, match="300000000 cells has 300000000 harmonics"):
        growth(ot.parse_schedule("300000000+shift"), 4)
    with pytest.raises(ot.OvertoneError, match="steps is 1000000000; .* at most 100000 steps"):
        growth(ot.Constant(4), 10**9)
    monkeypatch.setenv("OVERTONE_MAX_MEMORY", "1GB")
    with pytest.raises(ot.OvertoneError, match=r"covariance of 90000 steps takes 777\.6 GB, but"):
        expected_energy(ot.Constant(4), (Fraction(1, 4),), 90_000)
