"""Random fields without any grid."""

import torch

from overtone.metrics.spectrum import wavenumber_norm


def random_field(shape, slope=0.0, seed=0, num=1, band=None):
    """Gaussian fields `(num, *shape)` with power k^-slope, cut off beyond `band` (cycles/cell)."""
    random = torch.Generator().manual_seed(seed)
    space = tuple(range(-len(shape), 0))
    k = wavenumber_norm(shape)
    scale = k.clamp(min=1 / max(shape)) ** (-slope / 2)
    if band is not None:
        scale = scale * (k <= band)
    noise = torch.randn(num, *shape, generator=random, dtype=torch.float64)
    field = torch.fft.ifftn(torch.fft.fftn(noise, dim=space) * scale, dim=space).real
    return field / field.std()
