"""Grid artifacts: does a residual have power on the lattice of a patch grid?

A patch grid of period p leaves its mark at multiples of 1/p (section "Harmonic Error Analysis" of
the paper). `harmonic_excess` says how far these modes stand above their neighbourhood:

1. log-power of every mode, less its radial profile, so that a steep spectrum becomes flat;
2. for each lattice mode, its height above the median of the off-lattice modes around it
   (see `lattice.py`);
3. the mean over the lattice, less the same mean over the neighbours: the *excess*, in dB. Logs
   make every harmonic count the same, at whatever scale.

Significance: under the null that lattice modes are like their neighbours, the same mean over
shuffled lattices (each mode replaced by one of its neighbours) has a known mean and spread. `z` is
the distance from that mean in units of that spread. But modes need not be independent: spectra have
ridges, waves and edges. Shifted lattices (all modes moved by one offset) have them as well. So a
patch lattice must stand out of all shifted ones, and `z` is the distance to the highest of them if
that says less. Heights are clipped at 30 dB for `z`, so that one strong wave of the flow is not
taken for a lattice.

What this does not see: an artifact whose sign changes at random from patch to patch has no lines.
Its energy does; `periods.py` looks for both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from overtone.errors import DomainError
from overtone.metrics.artifacts.lattice import Lattice, Look, check_patch, patch_power
from overtone.metrics.artifacts.thresholds import CLIP, MARGIN, MIN_MODES, MIN_SPREAD
from overtone.metrics.spectrum import CLIFF, Periodic, wrapping

Patch = int | tuple[int, ...]

DECIBEL = 10 / math.log(10)
"""dB of one e-fold of power."""

FLOOR = 1e-20
"""Power of white noise, as a share of the residual's, that is added to hide rounding errors."""

CHUNK = 4_000_000
"""Largest number of neighbours looked at in one go."""


@dataclass(frozen=True)
class HarmonicExcess:
    """How far the lattice of a patch stands out of residuals `(..., *space)`.

    Attributes:
        patch: the patch, one for each axis.
        excess: `(...)` dB above the neighbourhood. About 0 without artifact; the larger one of
            all lattice modes and of those along the axes, so a little above 0 on average.
        z: `(...)` standard deviations of the null.
        p_value: `(...)` chance of such a `z` without artifact.
        power: `(...)` mean square of the artifact: power on the lattice above the neighbourhood's.
        share: `(...)` `power` as a fraction of the residual's variance.
    """

    patch: tuple[int, ...]
    excess: Tensor
    z: Tensor
    p_value: Tensor
    power: Tensor
    share: Tensor


def harmonic_excess(
    residual: Tensor, patch: Patch, *, ndim: int, periodic: Periodic = True
) -> HarmonicExcess:
    """How far the power on the lattice of a patch stands above its neighbourhood.

    Args:
        residual: prediction minus truth, `(..., *space)`.
        patch: period of the grid in cells, one for all axes or one for each.
        ndim: number of spatial axes.
        periodic: axes that are not are windowed.

    Returns:
        One verdict for each leading index.
    """
    patches = check_patch(patch, grid_of(residual, ndim))
    power, lattice = patch_power(residual, patches, wrapping(periodic, ndim))
    return judge_power(power, lattice, patches)


def judge_power(power: Tensor, lattice: Lattice, patch: tuple[int, ...]) -> HarmonicExcess:
    """`harmonic_excess` of a power spectrum `(..., N)` that is known already."""
    lead = power.shape[:-1]
    rows = power.reshape(-1, power.shape[-1])
    size = max(1, CHUNK // lattice.neighbours.numel())
    parts = [_judge_rows(chunk, lattice) for chunk in torch.split(rows, size)]
    excess, z, artifact = (torch.cat(column).reshape(lead) for column in zip(*parts, strict=True))
    variance = power[..., 1:].sum(dim=-1)
    share = torch.where(variance > 0, artifact / variance.clamp(min=1e-300), 0.0)
    p_value = (max(len(lattice.looks), 1) * upper_tail(z)).clamp(max=1.0)
    return HarmonicExcess(patch, excess, z, p_value, artifact, share)


def pool_power(power: Tensor) -> Tensor:
    """The mean spectrum `(N,)` of `(..., N)`, each scaled to unit variance first."""
    rows = power.reshape(-1, power.shape[-1])
    variance = rows[:, 1:].sum(dim=1, keepdim=True)
    return torch.where(variance > 0, rows / variance.clamp(min=1e-300), 0.0).mean(dim=0)


def upper_tail(z: Tensor) -> Tensor:
    """Chance that a standard normal variable exceeds `z`."""
    return torch.erfc(z.double() / math.sqrt(2)) / 2


def grid_of(residual: Tensor, ndim: int) -> tuple[int, ...]:
    """The grid of a residual; an error where it is none or holds values that are not finite."""
    if not 1 <= ndim <= min(3, residual.dim()):
        raise DomainError(f"residual has shape {tuple(residual.shape)}, ndim is {ndim}")
    if not bool(residual.isfinite().all()):
        raise DomainError(
            "the residual holds values that are NaN or infinite; look at the steps before those"
        )
    return tuple(residual.shape[-ndim:])


def _judge_rows(power: Tensor, lattice: Lattice) -> tuple[Tensor, Tensor, Tensor]:
    """Excess in dB, z and the artifact's power of rows `(B, N)`."""
    white = flatten_power(power, lattice)
    excess, z = best_look(white, lattice.looks)
    return excess, z, _artifact_power(power, white, lattice)


def best_look(
    white: Tensor, looks: tuple[Look, ...], *, margin: float = MARGIN
) -> tuple[Tensor, Tensor]:
    """Excess in dB and z of a lattice at its most conspicuous, 0 if there is nothing to look at.

    Args:
        white: flattened log-spectra `(B, N)`.
        looks: modes to look at, and what to compare them with.
        margin: how far to stand above the highest shifted lattice, in e-folds.
    """
    if not looks:
        return white.new_zeros(len(white)), white.new_zeros(len(white))
    seen = [_stand_out(white, look, margin) for look in looks]
    # Few modes have a large excess by chance, so single axes count for significance only.
    excess = torch.stack([excess for excess, _ in seen[:2]]).amax(dim=0)
    return excess, torch.stack([z for _, z in seen]).amax(dim=0)


def flatten_power(power: Tensor, lattice: Lattice) -> Tensor:
    """Log-power `(B, N)` less its radial profile; NaN at a cliff of the spectrum."""
    total = power.sum(dim=-1, keepdim=True)
    floor = FLOOR * total / power.shape[-1] + 1e-300
    return lattice.flatten((power + floor).log())


def _stand_out(white: Tensor, look: Look, margin: float) -> tuple[Tensor, Tensor]:
    """Excess in dB and z of some lattice modes in flattened log-spectra `(B, N)`."""
    around = white[:, look.neighbours].sort(dim=-1)[0]
    num_shifts = around.shape[-1]
    middle = around[..., (num_shifts - 1) // 2]
    spread = around[..., 3 * num_shifts // 4] - around[..., num_shifts // 4]
    known = around.isfinite().all(dim=-1) & white[:, look.modes].isfinite()
    steady = known & (spread < CLIFF)
    num_modes = steady.sum(dim=-1).double()

    def mean(values: Tensor) -> Tensor:
        """Over the modes whose neighbourhood has no cliff, `(B, M)` or `(B, M, K)`."""
        chosen = steady.reshape(*steady.shape, *(1,) * (values.dim() - 2))
        count = num_modes.clamp(min=1).reshape(-1, *(1,) * (values.dim() - 2))
        return torch.where(chosen, values, 0.0).sum(dim=1) / count

    around = (white[:, look.neighbours] - middle[..., None]).clamp(-CLIP, CLIP)
    height = (white[:, look.modes] - middle).clamp(min=-CLIP)
    shifted = mean(around)
    level = shifted.mean(dim=-1)
    # Chance is what differs between the modes of one shifted lattice. What differs between shifted
    # lattices is structure, such as the skirts of an artifact that the flow modulates.
    variance = mean((around - shifted[:, None]).square()).mean(dim=-1)
    noise = (variance / (num_modes - 1).clamp(min=1)).sqrt().clamp(min=MIN_SPREAD)
    score = mean(height.clamp(max=CLIP))
    # The level is uncertain, too, the more so the fewer modes it comes from.
    typical = (score - level) / (noise * (1 + num_modes / look.distinct).sqrt())
    # The highest of so many normal variables, of which half are distinct, lies about so high.
    usual = math.sqrt(2 * math.log(max(num_shifts / 2, 2)))
    highest = (score - shifted.amax(dim=-1) - margin) / noise + usual
    freedom = (num_modes * (num_shifts - 1) / 2).clamp(1, look.distinct - 1)
    z = normal_score(torch.minimum(typical, highest), freedom)
    # A flat spectrum, such as that of a constant, has nothing to stand out of.
    judged = (num_modes >= MIN_MODES) & (steady & (height != 0)).any(dim=-1)
    return DECIBEL * (mean(height) - level), torch.where(judged, z, 0.0)


def normal_score(t: Tensor, freedom: Tensor) -> Tensor:
    """The normal variable with the tail of Student's t (Wallace's approximation)."""
    shrink = (8 * freedom + 1) / (8 * freedom + 3)
    return t.sign() * shrink * (freedom * torch.log1p(t.square() / freedom)).sqrt()


def _artifact_power(power: Tensor, white: Tensor, lattice: Lattice) -> Tensor:
    """Power on the lattice above what its neighbourhood lets expect."""
    white = white.nan_to_num(0.0)
    around = white[:, lattice.neighbours]
    middle = around.median(dim=-1, keepdim=True)[0]
    mean = (around - middle).clamp(-CLIP, CLIP).exp().mean(dim=-1) * middle[..., 0].exp()
    on_lattice = power[:, lattice.modes]
    # power / exp(white) is the radial profile; the floor drops out where there is any power.
    ratio = mean / white[:, lattice.modes].exp()
    return ((on_lattice - on_lattice * ratio) * lattice.weight).sum(dim=-1).clamp(min=0.0)
