"""What every baseline has in common: the public face of an `Emulator` round a plain network.

A baseline sees what an emulator sees and is asked what an emulator is asked: the fields of the
context, normalised sample by sample, and the change that follows the last frame, in units of the
context's change (see `normalize`). So differences in the results are differences of the networks.
The frames are joined into channels:

    network: (B, context · C, *space) -> (B, C, *space).

Most baselines have no patches; they take any patch and shift and ignore them (`patched` is False),
so that schedules, `rollout` and training treat all models alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from overtone.acceptance import accept_window
from overtone.domain import Domain, Window
from overtone.errors import CheckpointError, DomainError, OvertoneError
from overtone.normalize import Statistics, statistics
from overtone.schedules import Patch
from overtone.storage import load_folder, save_folder

KIND = "baseline"
"""What `config.json` of a saved baseline says it is."""


Sizes = Mapping[str, Mapping[str, Any]]
"""Options of a baseline by the name of a size."""


class Baseline(nn.Module, ABC):
    """A model to compare with, behind the interface of `Emulator`.

    Args:
        domain: what it is built for; other grid sizes are accepted, other boundaries are not.
        context: number of frames it looks back on; a window must have as many.
        options: every number that defines it, plain data that is saved with it.
    """

    name: ClassVar[str]
    """As in `BASELINES`."""
    sizes: ClassVar[Sizes]
    """Size `"paper"` lists all options there are."""
    assumes_periodic: ClassVar[bool] = False
    """Whether its idea holds on periodic axes only; others are padded, as the class says."""
    patched: ClassVar[bool] = False
    """Whether it has patches. If not, it accepts any patch and shift and ignores them."""

    def __init__(self, domain: Domain, context: int, options: Mapping[str, Any]):
        super().__init__()
        if context < 1:
            raise OvertoneError(f"context is {context}; expected at least 1")
        self._domain = domain
        self._context = context
        self.options = dict(options)
        self.checkpointing = False

    @property
    def domain(self) -> Domain:
        """What it was built for."""
        return self._domain

    @property
    def context(self) -> int:
        """Number of frames it looks back on."""
        return self._context

    @property
    def causal(self) -> bool:
        """Whether every frame of a window makes a prediction of its own: only the last does."""
        return False

    @property
    def patches(self) -> tuple[Patch, ...]:
        """Its one patch; 1, a cell, where there are none."""
        return (1,)

    @property
    def num_parameters(self) -> int:
        """Number of trainable real numbers; a complex one counts as two."""
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self.parameters())

    def forward(
        self,
        window: Window,
        patch: int | Sequence[int] | None = None,
        shift: int | Sequence[int] = 0,
    ) -> Tensor:
        """Predict the next frame.

        Args:
            window: fields `(B, T, C, *space)` in physical units; of more than `context` frames
                the latest are used.
            patch: ignored unless the baseline is `patched`; then None means its own.
            shift: cells by which the patch grid is moved; ignored unless `patched`.

        Returns:
            `(B, C, *space)` in physical units.
        """
        change, stats = self.predict_change(window, patch, shift)
        return stats.add_change(window.fields[:, -1:], change)[:, 0]

    @abstractmethod
    def predict_change(
        self,
        window: Window,
        patch: int | Sequence[int] | None = None,
        shift: int | Sequence[int] = 0,
        *,
        last_only: bool = False,
    ) -> tuple[Tensor, Statistics]:
        """Predict the change that follows the last frame, in units of the context's change.

        Arguments are those of `forward`. A baseline predicts from the whole context only, so T is
        1 with and without `last_only`.

        Returns:
            Changes `(B, 1, C, *space)`, and the statistics of the context.
        """

    def checkpoint_activations(self, enabled: bool = True) -> None:
        """Recompute blocks in the backward pass instead of keeping what they computed.

        Without effect on baselines that are not made of blocks of their own (`fno`, `tfno`), whose
        blocks keep running statistics (`unet`), or that have no weights.
        """
        self.checkpointing = enabled

    def save(
        self,
        path: str | Path,
        *,
        training: Mapping[str, Any] | None = None,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Write a folder with weights (safetensors) and configuration (JSON).

        Args:
            path: the folder.
            training: how it was trained (seed, updates, …), plain data to keep beside it.
            weights: other weights than its own, e.g. gathered ones of a model spread over ranks.
        """
        config = {
            "kind": KIND,
            "name": self.name,
            "options": self.options,
            "domain": self.domain.to_dict(),
            "context": self.context,
            "training": dict(training or {}),
        }
        save_folder(path, self.state_dict() if weights is None else weights, config)

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Baseline:
        """Read a folder that `save` wrote, of whichever baseline. It is in evaluation mode."""
        from overtone.baselines.registry import find  # the registry imports this module

        weights, config = load_folder(path)
        if config.get("kind") != KIND:
            raise CheckpointError(
                f"'{path}' does not hold a baseline; overtone.load reads models of every kind"
            )
        try:
            domain = Domain(**config["domain"])
            kind = find(config["name"])
            model = kind(domain=domain, context=config["context"], **config["options"])
        except (KeyError, TypeError, OvertoneError) as error:
            raise CheckpointError(f"the configuration of '{path}' does not fit: {error}") from error
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            raise CheckpointError(
                f"the weights in '{path}' do not match its configuration: {error}"
            ) from error
        return model.eval()

    def accept(self, window: Window) -> Window:
        """Check a window against the model and cut it to the context."""
        window = accept_window(
            window, domain=self.domain, context=self.context, check_finite=not self.training
        )
        if window.num_frames < self.context:
            raise DomainError(
                f"the window has {window.num_frames} frames; '{self.name}' joins exactly "
                f"{self.context} frames into channels. Give more, or build it with "
                f"context={window.num_frames}"
            )
        if window.domain.boundaries != self.domain.boundaries:
            raise DomainError(
                f"the window has the boundaries {_plain(window.domain)}, '{self.name}' was built "
                f"for {_plain(self.domain)}; build it for the window's domain"
            )
        return window


class Network(Baseline):
    """A baseline that learns."""

    @abstractmethod
    def network(self, fields: Tensor) -> Tensor:
        """The change, `(B, C, *space)`, of normalised frames `(B, context · C, *space)`."""

    def predict_change(
        self,
        window: Window,
        patch: int | Sequence[int] | None = None,
        shift: int | Sequence[int] = 0,
        *,
        last_only: bool = False,
    ) -> tuple[Tensor, Statistics]:
        """See `Baseline.predict_change`."""
        window = self.accept(window)
        stats = statistics(window.fields).last()
        dtype = next(p.dtype for p in self.parameters() if p.is_floating_point())
        fields = stats.normalise(window.fields).to(dtype).flatten(1, 2)
        return self.call_network(fields, window.domain, patch, shift).unsqueeze(1), stats

    def call_network(
        self,
        fields: Tensor,
        domain: Domain,
        patch: int | Sequence[int] | None,
        shift: int | Sequence[int],
    ) -> Tensor:
        """Run the network; one that is `patched` lays its grid first."""
        return self.network(fields)

    @property
    def channels(self) -> tuple[int, int]:
        """How many channels the network reads and writes."""
        num_fields = len(self.domain.fields)
        return self.context * num_fields, num_fields

    def run(self, block: nn.Module, x: Tensor) -> Tensor:
        """Apply a block, keeping its activations or not."""
        if self.checkpointing and torch.is_grad_enabled():
            return checkpoint(block, x, use_reentrant=False)
        return block(x)


def _plain(domain: Domain) -> list[list[str]]:
    return [[str(side) for side in sides] for sides in domain.boundaries]
