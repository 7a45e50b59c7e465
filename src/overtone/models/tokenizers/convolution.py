"""The convolutional tokenizer: what fixed, CSM and CKM tokenizers have in common.

Encoder and decoder are stacks of convolution stages (two in the paper, after hMLP); a patch is
split over them. Subclasses say how a stage's base kernel meets the stride that it is asked for.

A stage with kernel `k` and stride `s` places output `j` over the inputs

    j·s - (k - s)//2  …  j·s - (k - s)//2 + k - 1,

centred on the `s` cells that are its own. Encoding reads that range and decoding writes it. Ranges
of ranges give what a stack of stages needs: so the input is padded once, before the first stage,
and the tokens once, before the first transposed stage. Every token and every cell has all its taps,
nothing is lost or added at the seam, and the output is cropped to exactly the input's grid.

What is finer than a token can pass it by: with `skip`, what each encoder stage but the last one has
read joins what the decoder writes at the same places. A norm follows, so that the detail of a step
stays bounded. The next step is better by it; long rollouts are not, since what passes by learns to
carry on whatever is there, the model's own errors among it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.domain import Domain
from overtone.errors import PatchError
from overtone.grid import PatchGrid
from overtone.ops.padding import Span, boundary_markers, follow, take

DecoderRule = Literal["paper", "keep"]
"""How the decoder's kernels meet a patch: as in the paper, or keeping the output's amplitude."""

DECODER_RULES: tuple[DecoderRule, ...] = ("paper", "keep")

Modulation = Callable[[Tensor, tuple[int, ...]], Tensor]
"""From a base kernel and a stride to the kernel that meets it."""

OUTPUT_GAIN = 0.1
"""Scale of the last kernel at initialisation: an untrained model stays close to persistence."""

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


class Stage(nn.Module):
    """A convolution, or transposed convolution, whose kernel is made for each stride.

    Args:
        in_dim, out_dim: channels.
        taps: base kernel, one for each axis.
        transposed: whether it writes (decoder) or reads (encoder).
        gain: scale of its output at initialisation.
    """

    def __init__(
        self, in_dim: int, out_dim: int, taps: tuple[int, ...], *, transposed: bool, gain: float
    ):
        super().__init__()
        self.transposed = transposed
        # A token is a sum over all taps, a cell (at stride = kernel) over one.
        shape, fan_in = (out_dim, in_dim), in_dim * math.prod(taps)
        if transposed:
            shape, fan_in = (in_dim, out_dim), in_dim
        self.weight = nn.Parameter(torch.randn(*shape, *taps) * gain * fan_in**-0.5)
        self.bias = nn.Parameter(torch.zeros(out_dim))

    def forward(self, x: Tensor, stride: tuple[int, ...], modulate: Modulation) -> Tensor:
        """`(N, in_dim, *cells)` to `(N, out_dim, *cells)`, without padding."""
        convolve = (CONV_TRANSPOSE if self.transposed else CONV)[len(stride)]
        return convolve(x, modulate(self.weight, stride), self.bias, stride=stride)


class ConvTokenizer(nn.Module):
    """Fields to tokens and back, at any patch that the kernels allow.

    Args:
        domain: gives the number of axes, the fields, and the kinds of boundary to know.
        dim: width of a token.
        kernels: base kernel of each encoder stage; the decoder mirrors them.
        stage_dim: width between stages.
        rule: how the decoder's kernels meet a patch.
        frames: number of frames F that a token reads, as channels; it writes one.
        skip: whether details go round the tokens, from stage to stage.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        dim: int,
        kernels: Sequence[int],
        stage_dim: int,
        rule: DecoderRule = "keep",
        frames: int = 1,
        skip: bool = False,
    ):
        super().__init__()
        self.ndim = domain.ndim
        self.kernels = tuple(kernels)
        self.kinds = domain.kinds
        self.rule: DecoderRule = rule
        num_fields = len(domain.fields)
        between = [stage_dim] * (len(self.kernels) - 1)
        self.encoders = self._stages([frames * num_fields + len(self.kinds), *between, dim])
        self.encoder_norms = nn.ModuleList(nn.LayerNorm(width) for width in between)
        self.decoders = self._stages([dim, *between, num_fields], transposed=True)
        self.decoder_norms = nn.ModuleList(nn.LayerNorm(width) for width in between)
        skips = [nn.Linear(n, n, bias=False) for n in between if skip]
        for layer in skips:
            nn.init.normal_(layer.weight, std=stage_dim**-0.5)
        self.skips = nn.ModuleList(skips)

    def _stages(self, widths: list[int], *, transposed: bool = False) -> nn.ModuleList:
        kernels = self.kernels[::-1] if transposed else self.kernels
        gains = [1.0] * (len(kernels) - 1) + [OUTPUT_GAIN if transposed else 1.0]
        return nn.ModuleList(
            Stage(*width, (kernel,) * self.ndim, transposed=transposed, gain=gain)
            for width, kernel, gain in zip(pairwise(widths), kernels, gains, strict=True)
        )

    def strides(self, patch: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Stride of each encoder stage along each axis."""
        by_axis = [split(size, len(self.kernels)) for size in patch]
        return tuple(zip(*by_axis, strict=True))

    def encoder_kernel(self, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
        """The kernel `(out, in, *taps)` with which a stage reads at a stride: the base kernel."""
        return weight

    def decoder_kernel(self, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
        """The kernel `(in, out, *taps)` with which a transposed stage writes: the base kernel."""
        return weight

    def taps(self, kernel: int, stride: int) -> int:
        """Number of taps along an axis that a base kernel has at a stride: all of them."""
        return kernel

    def encode(self, fields: Tensor, grid: PatchGrid) -> Tensor:
        """Tokens of every frame.

        Args:
            fields: normalised fields `(B, T, F · C, *space)`.
            grid: the patch grid.

        Returns:
            `(B, T, *grid.shape, dim)`.
        """
        return self.encode_with_details(fields, grid)[0]

    def encode_with_details(self, fields: Tensor, grid: PatchGrid) -> tuple[Tensor, list[Tensor]]:
        """Tokens as of `encode`, and what the stages before the last have read.

        Returns:
            Tokens, and for each of those stages `(B, T, stage_dim, *cells)`, the stage's cells of
            the patch grid; none without `skip`.
        """
        strides, frames = self.strides(grid.patch), fields.shape[:2]
        spans = self._encoder_spans(grid, strides)
        x = self._pad_cells(fields.flatten(0, 1), grid, spans[0])
        details: list[Tensor] = []
        for i, (stage, stride) in enumerate(zip(self.encoders, strides, strict=True)):
            x = stage(x, stride, self.encoder_kernel).movedim(1, -1)
            if i < len(self.encoder_norms):
                x = F.gelu(self.encoder_norms[i](x)).movedim(-1, 1)
            if i < len(self.skips):
                cells = self._cells(grid, strides[i + 1 :])
                read = _cut(x, spans[i + 1], cells)
                details.append(cast("Tensor", read.unflatten(0, frames)))
        return cast("Tensor", x.unflatten(0, frames)), details

    def decode(self, tokens: Tensor, grid: PatchGrid, details: Sequence[Tensor] = ()) -> Tensor:
        """Fields of every frame, on exactly the domain's grid.

        Args:
            tokens: `(B, T, *grid.shape, dim)`.
            grid: the patch grid they were encoded on.
            details: of the same frames, from `encode_with_details`.

        Returns:
            `(B, T, C, *space)`.
        """
        strides = self.strides(grid.patch)[::-1]
        spans = self._decoder_spans(grid, strides)
        x = tokens.flatten(0, 1).movedim(-1, 1)
        for axis, wraps in enumerate(grid.domain.periodic):
            x = take(x, axis + 2, spans[0][axis], periodic=wraps, ghosts="edge")
        for i, (stage, stride) in enumerate(zip(self.decoders, strides, strict=True)):
            x = stage(x, stride, self.decoder_kernel)
            x = self._crop(x, self.kernels[-1 - i], stride, spans[i], spans[i + 1])
            if i < len(self.skips):
                x = x + self._detail(details[-1 - i], i, grid, spans[i + 1])
            if i < len(self.decoder_norms):
                x = F.gelu(self.decoder_norms[i](x.movedim(1, -1))).movedim(-1, 1)
        return cast("Tensor", _unshift(x, grid).unflatten(0, tokens.shape[:2]))

    def _encoder_spans(
        self, grid: PatchGrid, strides: tuple[tuple[int, ...], ...]
    ) -> list[list[Span]]:
        """What each encoder stage reads, by axis, in cells of the patch grid; last, the tokens."""
        spans = [[(0, count) for count in grid.shape]]
        for kernel, stride in zip(self.kernels[::-1], strides[::-1], strict=True):
            spans.append(
                [
                    footprint(span, self.taps(kernel, s), s)
                    for span, s in zip(spans[-1], stride, strict=True)
                ]
            )
        return spans[::-1]

    def _pad_cells(self, x: Tensor, grid: PatchGrid, read: list[Span]) -> Tensor:
        """Append the markers and take all cells that the tokens read, `(N, C + kinds, *cells)`."""
        spans: list[Span] = []
        x = follow(x, grid)
        for axis, (start, span) in enumerate(zip(grid.start, read, strict=True)):
            spans.append((span[0] + start, span[1] + start))
            x = take(x, axis + 2, spans[-1], periodic=grid.domain.periodic[axis])
        if not self.kinds:
            return x
        markers = boundary_markers(grid.domain, tuple(spans), x)
        return torch.cat([x, markers.expand(x.shape[0], *markers.shape)], dim=1)

    def _cells(self, grid: PatchGrid, strides: tuple[tuple[int, ...], ...]) -> list[Span]:
        """The cells of the patch grid, by axis, as the stage sees them that these ones follow."""
        return [
            (0, count * math.prod([stride[axis] for stride in strides]))
            for axis, count in enumerate(grid.shape)
        ]

    def _detail(self, detail: Tensor, index: int, grid: PatchGrid, wanted: list[Span]) -> Tensor:
        """What a detail adds to the decoder's stage, `(N, stage_dim, *cells)`."""
        x = detail.flatten(0, 1)
        x = self.skips[index](x.movedim(1, -1)).movedim(-1, 1)
        for axis, wraps in enumerate(grid.domain.periodic):
            x = take(x, axis + 2, wanted[axis], periodic=wraps, ghosts="edge")
        return x

    def _decoder_spans(
        self, grid: PatchGrid, strides: tuple[tuple[int, ...], ...]
    ) -> list[list[Span]]:
        """For each transposed stage the tokens to start from, by axis; last, the cells to reach."""
        spans = [[(0, n * p) for n, p in zip(grid.shape, grid.patch, strict=True)]]
        for kernel, stride in zip(self.kernels, strides[::-1], strict=True):
            spans.append(
                [
                    sources(span, self.taps(kernel, s), s)
                    for span, s in zip(spans[-1], stride, strict=True)
                ]
            )
        return spans[::-1]

    def _crop(
        self,
        x: Tensor,
        kernel: int,
        stride: tuple[int, ...],
        written: list[Span],
        wanted: list[Span],
    ) -> Tensor:
        """Keep the wanted cells of those that a transposed stage wrote from tokens."""
        covered = [
            footprint(span, self.taps(kernel, s), s)
            for span, s in zip(written, stride, strict=True)
        ]
        return _cut(x, covered, wanted)


MAX_KERNEL = 2**20
"""Largest patch that is split over stages."""


def split(patch: int, num_stages: int) -> tuple[int, ...]:
    """Factor a patch over stages, the larger factors first: 8 = 4·2, 16 = 4·4, 32 = 8·4.

    Each stage takes the smallest divisor that is at least its equal share, so that a prime patch
    is one stage of its own size and stages of 1.
    """
    if not 1 <= patch <= MAX_KERNEL or num_stages < 1:
        raise PatchError(
            f"can't split patch {patch} over {num_stages} stages; expected a patch of 1 to "
            f"{MAX_KERNEL} cells, and at least one stage"
        )
    factors: list[int] = []
    for stages_left in range(num_stages, 1, -1):
        factor = next(d for d in range(1, patch + 1) if patch % d == 0 and d**stages_left >= patch)
        factors.append(factor)
        patch //= factor
    return (*factors, patch)


def base_kernels(patches: Sequence[int], num_stages: int) -> tuple[int, ...]:
    """The smallest kernel for each stage that covers the strides of all patches."""
    return tuple(map(max, zip(*(split(patch, num_stages) for patch in patches), strict=True)))


def footprint(span: Span, kernel: int, stride: int) -> Span:
    """Cells that the tokens `span` of a stage read when encoding and write when decoding."""
    offset = (kernel - stride) // 2
    return span[0] * stride - offset, (span[1] - 1) * stride - offset + kernel


def sources(span: Span, kernel: int, stride: int) -> Span:
    """All tokens of a stage whose footprint touches one of the cells `span`."""
    offset = (kernel - stride) // 2
    first = (span[0] + offset - kernel) // stride + 1
    last = (span[1] - 1 + offset) // stride
    return first, last + 1


def rms(x: Tensor, dim: tuple[int, ...] | None = None) -> Tensor:
    """Root mean square over some dimensions (all by default), kept as 1; never quite zero."""
    dim = tuple(range(x.dim())) if dim is None else dim  # written out, since ONNX knows no None
    return x.square().mean(dim=dim, keepdim=True).clamp(min=1e-12).sqrt()


def _cut(x: Tensor, covered: Sequence[Span], wanted: Sequence[Span]) -> Tensor:
    """Keep the wanted ones of the cells that `(N, C, *cells)` covers along each axis."""
    for axis, (have, want) in enumerate(zip(covered, wanted, strict=True)):
        x = x.narrow(axis + 2, want[0] - have[0], want[1] - want[0])
    return x


def _unshift(x: Tensor, grid: PatchGrid) -> Tensor:
    """From cells in the patch grid's order, `(N, C, *cells)`, to the domain's, `(N, C, *space)`."""
    for axis, (start, n) in enumerate(zip(grid.start, grid.domain.shape, strict=True)):
        if grid.domain.periodic[axis]:
            x = take(x.narrow(axis + 2, 0, n), axis + 2, (-start, n - start), periodic=True)
        else:
            x = x.narrow(axis + 2, -start, n)
    return follow(x, grid, back=True)
