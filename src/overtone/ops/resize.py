"""Resizing convolution kernels: PI-resize and plain interpolation (paper: appendix on PI-resize).

Let `B` (new × old) be the matrix that interpolates a signal `x` from `old` to `new` cells. A
kernel `w` that met `x` should give the same product when, resized, it meets `Bx`:

    ⟨x, w⟩ = ⟨Bx, w'⟩ for all x   ⟸   w' = pinv(Bᵀ) w

exactly when enlarging, in the least-squares sense when shrinking. Interpolation is separable, so
`B` is a Kronecker product of one small matrix for each axis, and so is its pseudo-inverse: each
axis gets its own matrix and 1D, 2D and 3D are the same code.

PI-resize keeps a kernel's *sum*, which is right where the kernel meets the input. A decoder's
kernel *is* the output; there `interpolate`, which keeps its values, is the amplitude-keeping rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from overtone.errors import PatchError
from overtone.ops.constants import constant, full_precision

MODES = ("nearest", "bilinear", "bicubic", "area")


def pi_resize(
    weight: Tensor, size: int | Sequence[int], *, mode: str = "bicubic", antialias: bool = False
) -> Tensor:
    """Resize kernels so that they respond to a resized patch as they did to the original.

    Args:
        weight: kernels, `(out, in, *kernel)` with one to three kernel axes.
        size: new number of taps along each kernel axis, or one for all.
        mode: interpolation along each axis: `"bicubic"`, `"bilinear"`, `"nearest"` or `"area"`.
        antialias: low-pass filter the interpolation when shrinking (bilinear and bicubic only).

    Returns:
        `(out, in, *size)`, differentiable with respect to `weight`.
    """
    return _apply(weight, size, pi_matrix, mode, antialias)


def interpolate(
    weight: Tensor, size: int | Sequence[int], *, mode: str = "bicubic", antialias: bool = False
) -> Tensor:
    """Resize kernels by plain interpolation, which keeps their amplitude.

    Arguments and result are those of `pi_resize`.
    """
    return _apply(weight, size, interpolation_matrix, mode, antialias)


def _apply(
    weight: Tensor,
    size: int | Sequence[int],
    matrix_of: Callable[[int, int, str, bool], Tensor],
    mode: str,
    antialias: bool,
) -> Tensor:
    num_axes = weight.dim() - 2
    sizes = (size,) * num_axes if isinstance(size, int) else tuple(size)
    if not 1 <= num_axes <= 3 or len(sizes) != num_axes or min(sizes) < 1:
        raise PatchError(
            f"can't resize a weight of shape {tuple(weight.shape)} to kernel size {size!r}; "
            "expected (out, in, *kernel) and one positive int for each kernel axis"
        )
    if mode not in MODES:
        raise PatchError(f"interpolation is {mode!r}; expected one of {MODES}")
    with full_precision(weight):
        for axis, (old, new) in enumerate(zip(weight.shape[2:], sizes, strict=True)):
            if old != new:
                key = (old, new, mode, antialias)
                matrix = constant(matrix_of, key, weight.device, weight.dtype)
                weight = (weight.movedim(axis + 2, -1) @ matrix.T).movedim(-1, axis + 2)
    return weight


def interpolation_matrix(
    old: int, new: int, mode: str = "bicubic", antialias: bool = False
) -> Tensor:
    """The matrix `(new, old)`, float64, that interpolates `old` cells of an axis to `new`."""
    basis = torch.eye(old, dtype=torch.float64)[None, None]
    options = {"antialias": antialias} if mode in ("bilinear", "bicubic") else {}
    return F.interpolate(basis, size=(new, old), mode=mode, **options)[0, 0]


def pi_matrix(old: int, new: int, mode: str = "bicubic", antialias: bool = False) -> Tensor:
    """The matrix `(new, old)`, float64, that PI-resizes kernels along an axis."""
    return torch.linalg.pinv(interpolation_matrix(old, new, mode, antialias).T)
