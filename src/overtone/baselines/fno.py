"""Fourier neural operators, by the neuraloperator library (extra `neuralop`).

A layer multiplies the lowest Fourier modes by a learned complex matrix each and adds a linear map
of the channels (Li et al. 2021); TFNO keeps those matrices as a Tucker factorisation (Kossaifi et
al. 2023). All layers, their weights and their defaults are the library's; this file connects them
to windows and boundaries. Fourier modes suit periodic axes. Along others the features are padded
with zeros on both sides before the layers, as the library's domain padding does.

The library's model object adds metadata to its state dict, which is neither a tensor nor wanted in
a safetensors file; so its layers are taken, and called here in its order.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from torch import Tensor, nn

from overtone.baselines.base import Network, Sizes
from overtone.domain import Domain
from overtone.errors import OvertoneError
from overtone.models.architecture import require_weights
from overtone.ops.constants import full_precision
from overtone.ops.padding import take

PAPER = {"modes": 16, "layers": 4, "width": 128, "padding": 0.125}
MINI = {"modes": 12, "layers": 4, "width": 32, "padding": 0.125}


class FNO(Network):
    """A Fourier neural operator with dense weights, in one to three dimensions.

    Args:
        domain: what it is built for.
        context: number of frames it looks back on.
        modes: Fourier modes kept along each axis, half of them negative.
        layers: number of layers.
        width: channels.
        padding: cells added on each side of a non-periodic axis, as a fraction of its length.
    """

    name = "fno"
    sizes: ClassVar[Sizes] = {"paper": PAPER, "mini": MINI}
    assumes_periodic = True

    def __init__(
        self,
        *,
        domain: Domain,
        context: int,
        modes: int,
        layers: int,
        width: int,
        padding: float,
        **factorisation: Any,
    ):
        numbers = {"modes": modes, "layers": layers, "width": width, "padding": padding}
        super().__init__(domain, context, numbers | factorisation)
        if min(domain.shape) < modes:
            raise OvertoneError(
                f"'{self.name}' keeps {modes} modes along each axis, and a grid of "
                f"{domain.shape} cells has fewer; choose modes of at most {min(domain.shape)}"
            )
        require_weights(2 * layers * width**2 * (modes // 2) ** domain.ndim)
        model = self._library_model(factorisation)
        self.layers, self.padding = layers, padding
        self.lifting: nn.Module = model.lifting
        self.blocks: nn.Module = model.fno_blocks
        self.projection: nn.Module = model.projection

    def _library_model(self, factorisation: dict[str, Any]) -> Any:
        dim_in, dim_out = self.channels
        return _import_models().FNO(
            n_modes=(self.options["modes"],) * self.domain.ndim,
            in_channels=dim_in,
            out_channels=dim_out,
            hidden_channels=self.options["width"],
            n_layers=self.options["layers"],
            positional_embedding=None,
            **factorisation,
        )

    def network(self, fields: Tensor) -> Tensor:
        """See `Network.network`."""
        with full_precision(fields):  # its Fourier transforms don't take half precision
            return self._layers(fields.float())

    def _layers(self, fields: Tensor) -> Tensor:
        x, shape = self.lifting(fields), fields.shape[2:]
        margins = [0 if p else round(self.padding * n) for p, n in self._axes(shape)]
        for dim, (margin, n) in enumerate(zip(margins, shape, strict=True), start=2):
            x = take(x, dim, (-margin, n + margin), periodic=False)
        for layer in range(self.layers):
            x = self.blocks(x, layer)
        for dim, (margin, n) in enumerate(zip(margins, shape, strict=True), start=2):
            x = x.narrow(dim, margin, n)
        return self.projection(x)

    def _axes(self, shape: tuple[int, ...]) -> list[tuple[bool, int]]:
        return list(zip(self.domain.periodic, shape, strict=True))


class TFNO(FNO):
    """A Fourier neural operator whose weights are kept as a Tucker factorisation.

    Args:
        domain, context, modes, layers, width, padding: as for `FNO`.
        rank: parameters of the factorisation, as a fraction of the dense weights'.
    """

    name = "tfno"
    sizes: ClassVar[Sizes] = {"paper": {**PAPER, "rank": 1.0}, "mini": {**MINI, "rank": 1.0}}

    def _library_model(self, factorisation: dict[str, Any]) -> Any:
        return super()._library_model({"factorization": "Tucker", **factorisation})


def _import_models() -> Any:
    """The library's models. It changes the process's warning filters on import; they are kept."""
    with warnings.catch_warnings():
        try:
            from neuralop import models  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise OvertoneError(
                f"the baselines 'fno' and 'tfno' need the neuraloperator library ({error}); "
                "install it with: pip install 'overtone[neuralop]'"
            ) from error
    return models
