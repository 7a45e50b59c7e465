"""CKM, convolutional kernel modulation: one base kernel, resized to the patch (paper: Methods).

The stride always equals the resized kernel, so patches never overlap. The encoder PI-resizes, so
that a smooth field gives the same token at every patch. For the decoder there are two rules:

- `"paper"`: PI-resize as well. It keeps the kernel's sum, so a kernel shrunk from 4 to 2 taps
  writes four times as much into each cell of a 2D field.
- `"keep"`: interpolate, and scale to the base kernel's root mean square, so that the output has
  the same amplitude at every patch.
"""

from __future__ import annotations

from torch import Tensor

from overtone.ops.resize import interpolate, pi_resize
from overtone.tokenizers.convolution import ConvTokenizer, DecoderRule, rms


class KernelTokenizer(ConvTokenizer):
    """Non-overlapping patches of any size, by resizing the kernels."""

    def taps(self, kernel: int, stride: int) -> int:
        """As many as the stride."""
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
