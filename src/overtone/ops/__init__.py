"""Operations on tensors that know nothing of models: resizing kernels, padding, spectra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def listed(values: Tensor) -> list[Any]:
    """Python's own numbers, nested as the axes are. PyTorch does not say what is in its lists."""
    return values.tolist()
