"""Readings of the paper's residuals, on flows whose residuals are known."""

import json
import math

import pytest
import torch

import overtone as ot
from studies import residuals

LENGTH = 2 * math.pi
DOMAIN = ot.Domain((32, 32), (LENGTH, LENGTH), "periodic", ("s", "p", "u", "w"), 0.1)
X = torch.arange(32, dtype=torch.float64) * LENGTH / 32


def whirls(stretch=0.0):
    """Taylor-Green whirls that decay as they should, and a stretching of their own."""
    rate = 2 / residuals.REYNOLDS
    sin, cos = torch.sin(X), torch.cos(X)
    u = torch.outer(sin, cos) + stretch * sin[:, None]
    w = -torch.outer(cos, sin)
    pressure = (torch.cos(2 * X)[:, None] + torch.cos(2 * X)[None, :]) / 4
    frames = []
    for step in range(6):
        decay = math.exp(-rate * 0.1 * step)
        frames.append(torch.stack([0 * u, decay**2 * pressure, decay * u, decay * w]))
    return torch.stack(frames)[None]


def test_a_solution_obeys_but_for_what_differences_leave():
    own = residuals.own(whirls(), DOMAIN)
    assert own["spectral"]["mass"] < 1e-10
    assert own["spectral"]["momentum"] < 1e-6
    assert 1e-5 < own["differences"]["momentum"] < 0.02


def test_gaps_are_relative_to_the_truth_and_to_its_terms():
    truth, torn = whirls(0.1), whirls(0.3)
    found = residuals.compare(torn, truth, DOMAIN)
    # The divergence is `stretch cos x`, so three times as much is a deviation of two.
    for name in ("spectral", "differences"):
        assert found[name]["mass"]["deviation"] == pytest.approx(2.0, rel=1e-3)
    terms = residuals.mass(truth, DOMAIN)[1].item()
    decays = torch.tensor([math.exp(-2 / residuals.REYNOLDS * 0.1 * n) for n in range(2, 6)])
    gap = 0.2 * torch.cos(X).abs().mean() * decays.mean()
    assert found["spectral"]["mass"]["balance"] == pytest.approx(gap.item() / terms, rel=1e-6)
    same = residuals.compare(truth, truth, DOMAIN)
    assert same["spacing 1"]["momentum"] == {"deviation": 0.0, "balance": 0.0}


def test_readings_without_a_spacing_count_cells_and_frames():
    unit = residuals.readings(DOMAIN)["spacing 1"]
    assert (unit.spacing, unit.dt) == ((1.0, 1.0), 1.0)
    assert not any(unit.periodic)


def test_the_divergent_share_of_an_error():
    whirl = whirls()
    assert residuals.divergent_share(whirl, DOMAIN) == pytest.approx(0.0, abs=1e-12)
    potential = torch.zeros_like(whirl)
    potential[:, :, 2] = torch.outer(torch.cos(X), torch.sin(X))
    potential[:, :, 3] = torch.outer(torch.sin(X), torch.cos(X))
    assert residuals.divergent_share(potential, DOMAIN) == pytest.approx(1.0)
    noise = torch.randn(4, 2, 4, 32, 32, generator=torch.Generator().manual_seed(0))
    assert residuals.divergent_share(noise, DOMAIN) == pytest.approx(0.5, abs=0.03)


def test_the_file_has_every_model_by_every_reading(tmp_path, monkeypatch):
    def still(num, steps):
        return whirls(0.1)[:, :1].repeat(num, steps, 1, 2, 2).float()

    monkeypatch.setattr(residuals, "flows", still)
    content = json.loads(residuals.run(tmp_path, num=1, steps=2).read_text())
    assert list(content["models"]) == [":".join(pair) for pair in residuals.MODELS]
    for found in content["models"].values():
        assert set(found) == {"spectral", "differences", "spacing 1", "divergent"}
    assert set(content["truth"]) == {"spectral", "differences", "spacing 1"}
