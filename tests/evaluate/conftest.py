"""Data whose future is known, and steppers that know it, or get it wrong in a known way."""

import numpy as np
import pytest
import torch

pytest.importorskip("h5py")

from overtone.data import Header, WellFolder, write_well
from overtone.evaluate import Candidate

SHAPE = (16, 32)
FRAMES = 16


class Roller:
    """The truth itself: patterns move by one cell along both axes, the clock ticks."""

    patches = (4, 8)
    context = 2
    num_parameters = 0

    def __init__(self, domain):
        self.domain = domain

    def __call__(self, window, patch, shift=0):
        frame = window.fields[:, -1].roll((1, 1), dims=(-2, -1))
        frame[:, 1] += 1
        return frame


class Persistent(Roller):
    """Nothing ever changes."""

    def __call__(self, window, patch, shift=0):
        return window.fields[:, -1]


class Exploding(Roller):
    """Right until a moment at which one trajectory, known by its amplitude, is lost."""

    def __init__(self, domain, amplitudes=(2.0,), moment=8.0, value=torch.nan):
        super().__init__(domain)
        self.amplitudes, self.moment, self.value = amplitudes, moment, value

    def __call__(self, window, patch, shift=0):
        assert window.fields.isfinite().all(), "a lost trajectory came back"
        frame = super().__call__(window, patch, shift)
        for sample in frame:
            amplitude = round(sample[0].square().mean().sqrt().item())
            if amplitude in self.amplitudes and sample[1].mean() >= self.moment:
                sample[0, 3, 4] = self.value
        return frame


def pattern(amplitude, seed):
    """A smooth field of zero mean and root mean square `amplitude`, float64."""
    random = np.random.default_rng(seed)
    modes = np.zeros(SHAPE, complex)
    modes[:4, :4] = random.standard_normal((4, 4)) + 1j * random.standard_normal((4, 4))
    modes[0, 0] = 0
    field = np.fft.ifft2(modes).real
    return amplitude * field / np.sqrt((field**2).mean())


def moving(amplitudes, seed=0):
    """Patterns that move, and a clock, `(n, T, *shape)` each."""
    fields = [pattern(amplitude, seed + i) for i, amplitude in enumerate(amplitudes)]
    frames = [[np.roll(f, (n, n), axis=(0, 1)) for n in range(FRAMES)] for f in fields]
    clock = np.broadcast_to(np.arange(FRAMES)[:, None, None], (len(fields), FRAMES, *SHAPE))
    return {"a": np.array(frames, np.float32), "clock": np.array(clock, np.float32)}


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """A Well folder with five test trajectories of amplitudes 1 to 5 in two files."""
    folder = tmp_path_factory.mktemp("toy_data") / "toy"
    for number, amplitudes in enumerate([(1.0, 2.0, 3.0), (4.0, 5.0)]):
        header = Header("toy", SHAPE, (1.0, 2.0), "periodic", 0.5, parameters={"wind": number + 1})
        path = folder / "data" / "test" / f"toy_{number}.hdf5"
        write_well(path, moving(amplitudes, 10 * number), header)
    return folder


@pytest.fixture(scope="session")
def toy_domain(toy):
    return WellFolder(toy, "test").domain


@pytest.fixture(scope="session")
def emulator(toy_domain):
    """A small, untrained emulator that does something."""
    import overtone as ot

    torch.manual_seed(1)
    small = {"width": 16, "heads": 2, "blocks": 1, "mlp_dim": 16, "context": 3}
    return ot.build("axial", domain=toy_domain, patches=(4, 8), **small)


@pytest.fixture
def roller(toy_domain):
    return Candidate("roller", Roller(toy_domain))


@pytest.fixture
def steppers(toy_domain):
    """Makers of steppers by name."""
    return {
        kind.__name__: lambda *a, kind=kind, **k: kind(toy_domain, *a, **k)
        for kind in (Roller, Persistent, Exploding)
    }
