"""An emulator whose error is known in closed form, and data for it.

The truth stands still. The error is a multiple e of one pattern that the truth has nothing of, and
a step makes it `propagation · e + added[patch]`: the linear model of `overtone.theory`.
"""

import math

import numpy as np
import pytest
import torch

pytest.importorskip("h5py")

from overtone.data import Header, WellFolder, write_well

CELLS = 16
PATCHES = (2, 4, 8)
AMPLITUDES = (1.0, 2.0, 0.5, 1.5, 3.0, 0.7)


def wave(turns):
    return math.sqrt(2) * np.sin(2 * math.pi * turns * np.arange(CELLS) / CELLS)


class Linear:
    """Errors grow as they are told to."""

    patches = PATCHES
    context = 2
    num_parameters = 0

    def __init__(self, domain, added, propagation=1.0):
        self.domain, self.added, self.propagation = domain, added, propagation
        self.pattern = torch.tensor(wave(3), dtype=torch.float32)
        self.calls = 0

    def __call__(self, window, patch, shift=0):
        self.calls += 1
        frame = window.fields[:, -1]
        error = (frame * self.pattern).mean(dim=-1, keepdim=True)
        # In units of the truth, so that all trajectories have the same VRMSE.
        size = (frame - error * self.pattern).square().mean(dim=-1, keepdim=True).sqrt()
        (own,) = (patch,) if isinstance(patch, int) else patch
        new = self.propagation * error + self.added[own] * size
        return frame + (new - error) * self.pattern

    def errors(self, sequence):
        """Mean VRMSE over the steps of a sequence of patches, exactly."""
        error, total = 0.0, 0.0
        for patch in sequence:
            error = self.propagation * error + self.added[patch]
            total += abs(error)
        return total / len(sequence) * math.sqrt((CELLS - 1) / CELLS)  # the variance is unbiased


@pytest.fixture(scope="session")
def still(tmp_path_factory):
    """A Well folder whose trajectories stand still, in all splits."""
    folder = tmp_path_factory.mktemp("still") / "still"
    values = np.array([[a * wave(1)] * 14 for a in AMPLITUDES], np.float32)
    header = Header("still", (CELLS,), (1.0,), "periodic", 0.5)
    for split in ("train", "valid", "test"):
        write_well(folder / f"data/{split}/a.hdf5", {"u": values}, header)
    return folder


@pytest.fixture(scope="session")
def linear(still):
    """A maker of such emulators."""
    domain = WellFolder(still, "valid").domain
    return lambda fine, middle, coarse, **options: Linear(
        domain, dict(zip(PATCHES, (fine, middle, coarse), strict=True)), **options
    )
