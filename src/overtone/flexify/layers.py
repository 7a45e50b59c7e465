"""Encoders and decoders of other people's models, at patches other than their base.

Encoders are convolutions with stride = kernel. Decoders are transposed convolutions of that kind,
or a `Linear` that gives each token all values of its patch. That one is a transposed convolution
too, whose kernel is written in rows; only the order of the rows differs between models, and that
is what `RowOrder` is told. A convolution whose channels a `PixelShuffle` lays out as cells is a
`Linear` of a token, or of its neighbourhood, whose order of rows is known.

- CKM: the kernel is resized to the patch, as in `tokenizers/modulation.py`.
- CSM: the kernel stays, the stride is the patch. The input is padded (encoder) or the tokens are
  (decoder) so that every token and cell has all its taps, as in `tokenizers/convolution.py`.

A bias for each cell of a patch, as a `Linear` has, does not come from a kernel: it is interpolated
(CKM), or averaged over the taps that meet in a cell (CSM).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from overtone.errors import PatchError
from overtone.flexify.patching import Patching
from overtone.models.tokenizers.convolution import CONV, CONV_TRANSPOSE, footprint, sources
from overtone.models.tokenizers.modulation import overlapping_kernel, resized_kernel
from overtone.ops.padding import take
from overtone.ops.resize import interpolate, pi_resize

Conv = nn.Conv1d | nn.Conv2d | nn.Conv3d
ConvTranspose = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d


def read_patches(conv: Conv, x: Tensor, patching: Patching) -> Tensor:
    """The encoder: fields `(B, C, *cells)` to tokens `(B, D, *tokens)`."""
    patching.see(tuple(x.shape[-patching.ndim :]))
    weight = conv.weight
    if patching.mode == "ckm":
        weight = pi_resize(weight, patching.patch)
    else:
        x = _pad_cells(x, patching)
    convolve = CONV[patching.ndim]
    return convolve(x, weight, conv.bias, stride=patching.patch, groups=conv.groups)


def write_patches(conv: ConvTranspose, x: Tensor, patching: Patching) -> Tensor:
    """The decoder: tokens `(B, D, *tokens)` to fields `(B, C, *cells)`."""
    return _write(x, conv.weight, conv.bias, patching, conv.groups)


@dataclass(frozen=True)
class WriteRows:
    """The decoder as a `Linear`: each token's row of values at a patch.

    Attributes:
        order: how a row is ordered.
    """

    order: RowOrder

    def __call__(self, linear: nn.Linear, x: Tensor, patching: Patching) -> Tensor:
        """Tokens `(..., D)` to rows `(..., C * cells of a patch)`."""
        kernel = self.order.kernel(linear.weight, patching.base)
        bias = None
        if linear.bias is not None:
            bias = self.order.kernel(linear.bias[:, None], patching.base)
        if patching.mode == "ckm":
            rows = self.order.rows(resized_kernel(kernel, patching.patch, patching.rule))
            if bias is not None:
                bias = self.order.rows(interpolate(bias, patching.patch))[:, 0]
            return F.linear(x, rows, bias)
        return self._overlap(x, kernel, bias, patching)

    def _overlap(
        self, x: Tensor, kernel: Tensor, bias: Tensor | None, patching: Patching
    ) -> Tensor:
        """Write all tokens with overlap, then cut the field into rows again."""
        grid = patching.tokens
        tokens, prefix = _on_grid(x, grid)
        field = _write(tokens.movedim(-1, 1), kernel, None, patching)
        blocks = _cut(field, grid, patching.patch)
        if bias is not None:
            blocks = blocks + _mean_of_taps(bias, patching)
        rows = self.order.rows(blocks).T.unflatten(0, (tokens.shape[0], math.prod(grid)))
        # Class and register tokens have no place in the field; whoever reads patches drops them.
        rows = F.pad(rows, (0, 0, prefix, 0))
        return rows.reshape(*x.shape[:-1], rows.shape[-1])


def write_shuffled(conv: nn.Conv2d, x: Tensor, patching: Patching) -> Tensor:
    """The decoder before a `PixelShuffle`: `(B, D, *tokens)` to `(B, C * cells, *tokens)`."""
    order = RowOrder(("c", "p1", "p2"))
    kernel = order.kernel(conv.weight.flatten(1), patching.base)  # (D * taps, C, *base)
    bias = None if conv.bias is None else order.kernel(conv.bias[:, None], patching.base)
    reach = tuple(size // 2 for size in conv.kernel_size)
    if patching.mode == "ckm":
        rows = order.rows(resized_kernel(kernel, patching.patch, patching.rule))
        if bias is not None:
            bias = order.rows(interpolate(bias, patching.patch))[:, 0]
        return F.conv2d(x, rows.unflatten(1, conv.weight.shape[1:]), bias, padding=reach)
    around = F.unfold(x, conv.kernel_size, padding=reach).unflatten(2, x.shape[2:])
    field = _write(around, kernel, None, patching)
    if bias is not None:
        field = field + _mean_of_taps(bias, patching).repeat(1, 1, *x.shape[2:])
    return F.pixel_unshuffle(field, patching.patch[0])


@dataclass(frozen=True)
class RowOrder:
    """In which order a row holds the values of a patch, outermost axis first.

    Attributes:
        axes: `"c"` and one of `"p1"`, `"p2"`, … for each axis, such as `("p1", "p2", "c")`.
    """

    axes: tuple[str, ...]

    @classmethod
    def read(cls, text: str, ndim: int) -> RowOrder:
        """From a string such as `"p1 p2 c"`."""
        axes = tuple(text.split())
        expected = [f"p{axis + 1}" for axis in range(ndim)]
        if sorted(axes) != sorted(["c", *expected]):
            patch = " ".join(expected)
            raise PatchError(
                f"decoder_axes is {text!r}; expected the names {patch} and c in the order in which "
                f"the model unfolds the decoder's output, such as '{patch} c' or 'c {patch}'"
            )
        return cls(axes)

    def kernel(self, rows: Tensor, patch: tuple[int, ...]) -> Tensor:
        """Rows `(C * cells, N)` as a kernel `(N, C, *patch)`."""
        num_channels = rows.shape[0] // math.prod(patch)
        sizes = [num_channels if axis == "c" else patch[int(axis[1:]) - 1] for axis in self.axes]
        split = rows.T.unflatten(1, sizes)
        return split.permute(0, *(1 + self.axes.index(name) for name in self._names))

    def rows(self, kernel: Tensor) -> Tensor:
        """The inverse: a kernel `(N, C, *patch)` as rows `(C * cells, N)`."""
        ordered = kernel.permute(0, *(1 + self._names.index(name) for name in self.axes))
        return ordered.flatten(1).T

    @property
    def _names(self) -> list[str]:
        return ["c", *(f"p{axis}" for axis in range(1, len(self.axes)))]


def _write(
    x: Tensor, weight: Tensor, bias: Tensor | None, patching: Patching, groups: int = 1
) -> Tensor:
    patch, ndim = patching.patch, patching.ndim
    write = CONV_TRANSPOSE[ndim]
    if patching.mode == "ckm":
        kernel = resized_kernel(weight, patch, patching.rule)
        return write(x, kernel, bias, stride=patch, groups=groups)
    kernel = overlapping_kernel(weight, patch, patching.rule)
    return _write_overlapping(x, kernel, bias, patching, groups)


def _write_overlapping(
    x: Tensor, kernel: Tensor, bias: Tensor | None, patching: Patching, groups: int = 1
) -> Tensor:
    """Transposed convolution whose stride may be smaller than its kernel, cropped to the grid."""
    first_dim, spans = x.dim() - patching.ndim, []
    for axis, (taps, step) in enumerate(zip(kernel.shape[2:], patching.patch, strict=True)):
        dim = first_dim + axis
        size = x.shape[dim] * step
        tokens = sources((0, size), taps, step)
        spans.append((dim, footprint(tokens, taps, step)[0], size))
        x = take(x, dim, tokens, periodic=patching.periodic[axis], ghosts="edge")
    x = CONV_TRANSPOSE[patching.ndim](x, kernel, bias, stride=patching.patch, groups=groups)
    for dim, start, size in spans:
        x = x.narrow(dim, -start, size)
    return x


def _pad_cells(x: Tensor, patching: Patching) -> Tensor:
    """All cells that the tokens read at a stride smaller than the kernel."""
    for axis, (taps, step) in enumerate(zip(patching.base, patching.patch, strict=True)):
        dim = x.dim() - patching.ndim + axis
        span = footprint((0, x.shape[dim] // step), taps, step)
        x = take(x, dim, span, periodic=patching.periodic[axis], ghosts="edge")
    return x


def _mean_of_taps(bias: Tensor, patching: Patching) -> Tensor:
    """From a value for each tap `(1, C, *taps)` to one for each cell of the stride."""
    one = bias.new_ones((1, 1) + (1,) * patching.ndim)
    total = _write_overlapping(one, bias, None, patching)
    return total / _write_overlapping(one, bias.new_ones((1, 1, *bias.shape[2:])), None, patching)


def _on_grid(x: Tensor, grid: tuple[int, ...]) -> tuple[Tensor, int]:
    """Tokens `(..., N, D)` or `(..., *grid, D)` as `(B, *grid, D)`, and how many came before."""
    if tuple(x.shape[-len(grid) - 1 : -1]) == grid:
        return x.reshape(-1, *grid, x.shape[-1]), 0
    num_tokens = math.prod(grid)
    prefix = x.shape[-2] - num_tokens if x.dim() > 1 else -1
    if prefix < 0:
        raise PatchError(
            f"the decoder got tokens of shape {tuple(x.shape)}; with overlapping patches it needs "
            f"all of the grid {grid}, as (..., {num_tokens}, D) or (..., *grid, D). Use mode='ckm' "
            "for models that decode some of their tokens"
        )
    tokens = x.reshape(-1, *x.shape[-2:])[:, prefix:]
    return tokens.unflatten(1, grid), prefix


def _cut(field: Tensor, grid: tuple[int, ...], patch: tuple[int, ...]) -> Tensor:
    """A field `(B, C, *cells)` cut into patches `(B * tokens, C, *patch)`."""
    ndim = len(grid)
    for axis in reversed(range(ndim)):
        field = field.unflatten(2 + axis, (grid[axis], patch[axis]))
    tokens, cells = range(2, 2 + 2 * ndim, 2), range(3, 3 + 2 * ndim, 2)
    return field.permute(0, *tokens, 1, *cells).flatten(0, ndim)
