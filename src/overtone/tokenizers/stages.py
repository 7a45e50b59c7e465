"""How a patch is split over convolution stages, and which cells each stage must see.

A stage with kernel `k` and stride `s` places output `j` over the inputs

    j·s - (k - s)//2  …  j·s - (k - s)//2 + k - 1,

centred on the `s` cells that are its own. Encoding reads that range and decoding writes it. Ranges
of ranges give what a stack of stages needs, so that the whole stack is padded once, every output
has all its taps, and nothing is lost or added at the seam.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import PatchError
from overtone.ops.padding import Span


def split(patch: int, num_stages: int) -> tuple[int, ...]:
    """Factor a patch over stages, the larger factors first: 8 = 4·2, 16 = 4·4, 32 = 8·4.

    Each stage takes the smallest divisor that is at least its equal share, so that a prime patch
    is one stage of its own size and stages of 1.
    """
    if patch < 1 or num_stages < 1:
        raise PatchError(f"can't split patch {patch} over {num_stages} stages; both must be >= 1")
    factors = []
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
