"""How a base kernel meets a patch: one tokenizer for each way (paper: Methods).

CSM, convolutional stride modulation: fixed kernels, variable stride. At a stride below the kernel,
patches overlap: each cell is read by several tokens and, in the decoder, written by several taps.
Two rules for the decoder:

- `"paper"`: the taps add up, so a finer stride writes larger values.
- `"keep"`: they are divided by how much they add up to, so that the output has the same amplitude
  at every patch. `n` taps that are alike, as in a smooth kernel, add up to `n` times one tap, and
  `n` that are unlike to about `√n`; so the sum is measured on the kernel itself, for each cell of
  the stride, as a root mean square over channels.

CKM, convolutional kernel modulation: one base kernel, resized to the patch. The stride always
equals the resized kernel, so patches never overlap. The encoder PI-resizes, so that a smooth field
gives the same token at every patch. The decoder's two rules:

- `"paper"`: PI-resize as well. It keeps the kernel's sum, so a kernel shrunk from 4 to 2 taps
  writes four times as much into each cell of a 2D field.
- `"keep"`: interpolate, and scale to the base kernel's root mean square, so that the output has
  the same amplitude at every patch.

Fixed patching has no choice to make: kernel = stride = the one patch the model was built for.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from overtone.errors import PatchError
from overtone.models.tokenizers.convolution import ConvTokenizer, DecoderRule, rms
from overtone.ops.constants import constant, full_precision
from overtone.ops.resize import interpolate, pi_resize


class StrideTokenizer(ConvTokenizer):
    """Overlapping patches: the same kernels at any stride up to their size."""

    def strides(self, patch: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Stride of each encoder stage along each axis; none may exceed its kernel."""
        strides = super().strides(patch)
        for kernel, sizes in zip(self.kernels, strides, strict=True):
            if max(sizes) > kernel:
                raise PatchError(
                    f"patch {tuple(patch)} needs stride {max(sizes)}, larger than the base kernel "
                    f"{kernel}: cells between would be ignored; build the model with a larger "
                    "base_kernel"
                )
        return strides

    def decoder_kernel(self, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
        """The base kernel, by the tokenizer's rule divided by what its taps add up to."""
        return overlapping_kernel(weight, stride, self.rule)


def overlapping_kernel(weight: Tensor, stride: tuple[int, ...], rule: DecoderRule) -> Tensor:
    """A decoder's kernel `(in, out, *taps)` for a stride that may be smaller, by a rule."""
    if rule == "paper" or tuple(weight.shape[2:]) == stride:
        return weight
    return weight / overlap(weight, stride)


def overlap(weight: Tensor, stride: tuple[int, ...]) -> Tensor:
    """How many times larger than one tap the sum of those is that write into the same cell.

    Args:
        weight: kernels `(in, out, *taps)`.
        stride: along each axis.

    Returns:
        `(1, 1, *taps)`: for each tap, the number of the cell that it writes into.
    """
    with full_precision(weight):
        folds = [
            constant(_fold, (taps, step), weight.device, weight.dtype)
            for taps, step in zip(weight.shape[2:], stride, strict=True)
        ]
        cells = weight
        for axis, fold in enumerate(folds, start=2):
            cells = (cells.movedim(axis, -1) @ fold).movedim(-1, axis)
        sums = rms(cells, dim=(0, 1)) / rms(weight)
        for axis, fold in enumerate(folds, start=2):
            sums = (sums.movedim(axis, -1) @ fold.T).movedim(-1, axis)
        return sums


def _fold(taps: int, step: int) -> Tensor:
    """The matrix `(taps, step)` that adds up the taps which write into the same cell."""
    return torch.eye(step, dtype=torch.float64)[torch.arange(taps) % step]


class KernelTokenizer(ConvTokenizer):
    """Non-overlapping patches of any size, by resizing the kernels."""

    def taps(self, kernel: int, stride: int) -> int:
        """As many taps as the stride."""
        return stride

    def encoder_kernel(self, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
        """The base kernel, PI-resized to the stride."""
        return pi_resize(weight, stride)

    def decoder_kernel(self, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
        """The base kernel, resized to the stride by the tokenizer's rule."""
        return resized_kernel(weight, stride, self.rule)


def resized_kernel(weight: Tensor, stride: tuple[int, ...], rule: DecoderRule) -> Tensor:
    """A decoder's kernel `(in, out, *taps)` with as many taps as the stride, by a rule."""
    if rule == "paper" or tuple(weight.shape[2:]) == stride:
        return pi_resize(weight, stride)
    resized = interpolate(weight, stride)
    return resized * (rms(weight) / rms(resized))


class FixedTokenizer(ConvTokenizer):
    """Non-overlapping patches of one size."""

    def strides(self, patch: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The kernels themselves; any other patch is refused."""
        strides = super().strides(patch)
        if any(size != kernel for kernel, sizes in zip(self.kernels, strides, strict=True)
               for size in sizes):  # fmt: skip
            raise PatchError(
                f"a fixed tokenizer with kernels {self.kernels} can't make patch {tuple(patch)}; "
                "build with tokenizer='csm' or 'ckm' for more than one patch"
            )
        return strides
