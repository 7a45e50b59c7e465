"""An emulator whose errors are known: a spectral solver that leaves out modes at coarse patches."""

import math

import pytest
import torch

import overtone as ot
from overtone.metrics import vrmse


class Known:
    """Advection in one dimension, exact for the modes that a patch resolves.

    At patch p, modes of more than N/(2p) waves are left where they are. With the grid moved by s
    they go a part of their way, (1 - cos(2πs/p))/2; so at s = p/2 nothing is left out, and a step
    compared with one that is moved by half a patch shows its error exactly. The mean counts frames;
    between two of them, `burst`, all goes faster by `boost`.
    """

    context = 1
    patches = (2, 4, 8, 16)

    def __init__(self, cells=64, speed=0.3, burst=(math.inf, math.inf), boost=1.0, slope=2.5):
        self.domain = ot.Domain(cells, 1.0, "periodic", ("u",), dt=1.0)
        self.waves = torch.fft.fftfreq(cells, 1 / cells, dtype=torch.float64)
        self.speed, self.burst, self.boost, self.slope = speed, burst, boost, slope
        self.calls = []

    def window(self, batch=1, seed=0):
        """A spectrum that falls with the wavenumber, with random phases."""
        random = torch.Generator().manual_seed(seed)
        noise = torch.randn(batch, 1, 1, *self.domain.shape, generator=random).double()
        spectrum = torch.fft.fft(noise) * self.waves.abs().clamp(min=1) ** -self.slope
        spectrum[..., 0] = 0
        return ot.Window(torch.fft.ifft(spectrum).real, self.domain)

    def __call__(self, window, patch, shift=0):
        patch, shift = (v if isinstance(v, int) else v[0] for v in (patch, shift))
        self.calls.append((patch, len(window.fields)))
        return self.advance(window.fields[:, -1], patch, shift)

    def advance(self, fields, patch=1, shift=0):
        """One step, `(B, 1, N)`; exact at patch 1."""
        cells = self.domain.shape[0]
        now = fields.mean(dim=-1, keepdim=True)
        fast = (now >= self.burst[0] - 0.5) & (now < self.burst[1] - 0.5)
        speed = self.speed * torch.where(fast, self.boost, 1.0)
        exact = torch.exp(-2j * math.pi * self.waves * speed / cells)
        part = 0.5 * (1 - math.cos(2 * math.pi * shift / patch))
        resolved = self.waves.abs() <= cells / (2 * patch)
        factor = torch.where(resolved, exact, 1 + part * (exact - 1))
        return torch.fft.ifft(torch.fft.fft(fields) * factor).real + 1

    def error(self, fields, patch):
        """The true error of a step, VRMSE `(B,)`."""
        return vrmse(self.advance(fields, patch), self.advance(fields), ndim=1)[:, 0]


@pytest.fixture
def make_known():
    return Known


@pytest.fixture
def known():
    return Known()
