"""Small windows of travelling waves, and a small version of every baseline."""

import math

import pytest
import torch

import overtone as ot
from overtone.baselines import BASELINES

UNTRAINED = ("persistence", "extrapolation", "coarse_solver")
LEARNED = [name for name in BASELINES if name not in UNTRAINED]
NEURALOP = ("fno", "tfno")


def pytest_generate_tests(metafunc):
    """A test that asks for `learned` runs for every baseline with weights."""
    if "learned" in metafunc.fixturenames:
        metafunc.parametrize("learned", LEARNED)


@pytest.fixture
def make_baseline(make_domain):
    def make(name, domain=None, context=3, size="mini", **options):
        if name in NEURALOP:
            pytest.importorskip("neuralop", reason="needs overtone[neuralop]", exc_type=ImportError)
        return ot.baseline(
            name, domain=domain or make_domain((16, 24)), context=context, size=size, **options
        )

    return make


def travelling_waves(domain, frames, *, batch=2, seed=0):
    """A few waves for each sample and field that move at their own speeds, `(B, T, C, *space)`."""
    random = torch.Generator().manual_seed(seed)
    places = [(torch.arange(n) + 0.5) / n * 2 * math.pi for n in domain.shape]
    mesh = torch.meshgrid(*places, indexing="ij")
    time = torch.arange(frames).reshape(-1, *(1,) * domain.ndim)
    result = torch.zeros(batch, frames, len(domain.fields), *domain.shape)
    for b in range(batch):
        for c in range(len(domain.fields)):
            for _ in range(2):
                turns = torch.randint(1, 4, (domain.ndim,), generator=random)
                phase, speed = torch.rand(2, generator=random) * torch.tensor([6.28, 0.6])
                angle = sum(int(k) * x for k, x in zip(turns, mesh, strict=True))
                result[b, :, c] += torch.sin(angle + phase + speed * time)
    return result


@pytest.fixture
def waves():
    return travelling_waves
