"""What every baseline has in common: the public face of an `Emulator` round a plain network.

A baseline sees what an emulator sees and is asked what an emulator is asked: the fields of the
context, normalised sample by sample, and the change that follows the last frame, in the same unit
(see `normalize`). So differences in the results are differences of the networks.
The frames are joined into channels:

    network: (B, context · C, *space) -> (B, C, *space).

Most baselines have no patches; they take any patch and shift and ignore them (`patched` is False),
so that schedules, `rollout` and training treat all models alike.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.utils import checkpoint as recompute

from overtone.domain import Domain, PerAxis, Window
from overtone.errors import CheckpointError, DomainError
from overtone.grid import PatchGrid
from overtone.models.architecture import require_sizes
from overtone.models.base import Model
from overtone.normalize import Statistics

WHOLE = ("width", "layers", "blocks", "waves", "modes", "heads", "slices", "expansion", "reference",
         "patch", "diagonal_blocks")  # fmt: skip
MAY_BE_NONE = ("levels", "neck")
"""Options that are whole numbers, from 1 and from 0 on."""

Sizes = Mapping[str, Mapping[str, Any]]
"""Options of a baseline by the name of a size."""


class Baseline(Model):
    """A model to compare with, behind the interface of `Emulator`.

    Args:
        domain: what it is built for; other grid sizes are accepted, other boundaries are not.
        context: number of frames it looks back on; a window must have as many.
        options: every number that defines it, plain data that is saved with it.
        patch: cells of a token along every axis, where it is `patched`.
    """

    kind = "baseline"
    patched = False
    name: ClassVar[str]
    """Its key in `BASELINES`."""
    sizes: ClassVar[Sizes]
    """Size `"paper"` lists all options there are."""
    assumes_periodic: ClassVar[bool] = False
    """Whether its idea holds on periodic axes only; others are padded, as the class says."""

    def __init__(self, domain: Domain, context: int, options: Mapping[str, Any], patch: int = 1):
        require_sizes({name: options[name] for name in WHOLE if name in options})
        require_sizes({name: options[name] for name in MAY_BE_NONE if name in options}, least=0)
        super().__init__(domain, context, patches=((patch,) * domain.ndim,))
        self.options = dict(options)
        self.checkpointing = False

    @property
    def config(self) -> dict[str, Any]:
        """Its name and options."""
        return {"name": self.name, **self.options}

    def lay(
        self, domain: Domain, patch: PerAxis, shift: PerAxis, allow_untrained: bool
    ) -> PatchGrid:
        """Single cells, whatever is asked for; one that is `patched` lays its own grid."""
        return PatchGrid.lay(domain, 1)

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute blocks in the backward pass instead of keeping what they computed.

        Without effect on baselines that are not made of blocks of their own (`fno`, `tfno`), whose
        blocks keep running statistics (`unet`), or that have no weights.
        """
        self.checkpointing = enabled

    def blueprint(self) -> dict[str, Any]:
        """See `Model.blueprint`."""
        return {
            "kind": self.kind,
            "name": self.name,
            "options": self.options,
            "domain": self.domain.to_dict(),
            "context": self.context,
        }

    @classmethod
    def restore(
        cls, weights: Mapping[str, Tensor], config: Mapping[str, Any], path: str | Path
    ) -> Self:
        """See `Model.restore`; a folder tells which baseline it holds."""
        if config.get("kind") != cls.kind:
            raise CheckpointError(
                f"'{path}' does not hold a baseline; overtone.load reads models of every kind"
            )
        return super().restore(weights, config, path)

    @classmethod
    def rebuild(cls, config: Mapping[str, Any]) -> Self:
        """See `Model.rebuild`."""
        from overtone.baselines.registry import find  # the registry imports this module

        domain = Domain(**config["domain"])
        make: Any = find(config["name"])
        return make(domain=domain, context=config["context"], **config["options"])

    def accept(self, window: Window, *, check_finite: bool = True) -> Window:
        """Check a window against the model and cut it to the context."""
        window = super().accept(window, check_finite=check_finite)
        if window.num_frames < self.context:
            raise DomainError(
                f"the window has {window.num_frames} frames; '{self.name}' joins exactly "
                f"{self.context} frames into channels. Give more, or build it with "
                f"context={window.num_frames}"
            )
        return window


class Network(Baseline):
    """A baseline that learns."""

    @abstractmethod
    def network(self, fields: Tensor) -> Tensor:
        """The change, `(B, C, *space)`, of normalised frames `(B, context · C, *space)`."""

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """See `Model.change`."""
        stats = self.measure(window.fields, causal=False).last()
        dtype = next(p.dtype for p in self.parameters() if p.is_floating_point())
        fields = stats.normalise(window.fields).to(dtype).flatten(1, 2)
        return self.call_network(fields, grid).unsqueeze(1), stats

    def call_network(self, fields: Tensor, grid: PatchGrid) -> Tensor:
        """Run the network; one that is `patched` cuts the fields by its grid first."""
        return self.network(fields)

    @property
    def channels(self) -> tuple[int, int]:
        """How many channels the network reads and writes."""
        num_fields = len(self.domain.fields)
        return self.context * num_fields, num_fields

    def run(self, block: nn.Module, x: Tensor) -> Tensor:
        """Apply a block, keeping its activations or not."""
        if self.checkpointing and torch.is_grad_enabled():
            again: Any = vars(recompute)["checkpoint"]  # of whose type torch says half
            return again(block, x, use_reentrant=False)
        return block(x)
