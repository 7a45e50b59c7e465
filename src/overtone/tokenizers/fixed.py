"""Fixed patching: kernel = stride = the one patch the model was built for."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import PatchError
from overtone.tokenizers.convolution import ConvTokenizer


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
