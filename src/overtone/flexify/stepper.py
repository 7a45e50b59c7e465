"""A flexified model as something that `rollout` can step.

Models read tensors of their own layout; a stepper reads a `Window`. In between stand two functions
with defaults: `to_input` joins the frames of a window into channels, `to_frame` takes the model's
output as it is, `(B, C, *space)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from overtone.acceptance import short_patch
from overtone.domain import Domain, Window
from overtone.errors import DomainError, OvertoneError, PatchError
from overtone.flexify.patching import find_patchings, patch
from overtone.grid import PatchGrid
from overtone.normalize import Statistics, statistics
from overtone.ops.padding import take
from overtone.schedules import Patch

Prediction = Literal["frame", "change"]
PREDICTIONS: tuple[Prediction, ...] = ("frame", "change")


def join_frames(fields: Tensor) -> Tensor:
    """`(B, T, C, *space)` to `(B, T * C, *space)`, the oldest frame first."""
    return fields.flatten(1, 2)


def as_it_is(output: Tensor) -> Tensor:
    """The model's output, where it is a frame `(B, C, *space)` already."""
    return output


class FlexibleStepper(nn.Module):
    """Predicts the next frame of a window with a flexified model.

    Args:
        model: what `flexify` returned, or a module that contains it.
        domain: what the windows live on; another grid is fine if the model takes it.
        context: number of frames that the model reads.
        predicts: `"frame"`: the model reads fields in physical units and gives the next frame.
            `"change"`: it reads normalised fields and gives the change from the last frame in
            units of the context's change, as in `normalize.py`.
        to_input: from the frames `(B, T, C, *space)` to the model's input.
        to_frame: from the model's output to `(B, C, *space)`.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        domain: Domain,
        context: int = 1,
        predicts: Prediction = "frame",
        to_input: Callable[[Tensor], Any] = join_frames,
        to_frame: Callable[[Any], Tensor] = as_it_is,
    ):
        super().__init__()
        if predicts not in PREDICTIONS:
            raise OvertoneError(f"predicts is {predicts!r}; expected one of {PREDICTIONS}")
        if context < 1:
            raise OvertoneError(f"context is {context}; expected at least 1")
        patchings = find_patchings(model)
        if len(patchings) != 1:
            raise OvertoneError(
                f"{type(model).__name__} holds {len(patchings)} flexible models; expected one: "
                "make it flexible with flexify(model, ...) first"
            )
        self.model = model
        self.domain = domain
        self.context = context
        self.predicts: Prediction = predicts
        self.to_input = to_input
        self.to_frame = to_frame
        _require_same_boundaries(patchings[0].mode, patchings[0].periodic, domain)

    @property
    def patches(self) -> tuple[Patch, ...]:
        """The patches that the model was flexified for."""
        (patching,) = find_patchings(self.model)
        return tuple(short_patch(size) for size in patching.patches)

    def forward(
        self,
        window: Window,
        patch: int | Sequence[int],
        shift: int | Sequence[int] = 0,
        *,
        allow_untrained: bool = False,
    ) -> Tensor:
        """Predict the next frame.

        Args:
            window: fields `(B, T, C, *space)` in physical units; of more than `context` frames the
                latest are used.
            patch: cells of a token, one int or one for each axis.
            shift: cells by which the patch grid is moved; periodic axes only.
            allow_untrained: accept a patch that `flexify` was not told of.

        Returns:
            `(B, C, *space)` in physical units.
        """
        window = self._accept(window)
        if self.predicts == "frame":
            return self._call(window.fields, window.domain, patch, shift, allow_untrained)
        change, stats = self._change(window, patch, shift, allow_untrained)
        return stats.add_change(window.fields[:, -1:], change)[:, 0]

    def predict_change(
        self,
        window: Window,
        patch: int | Sequence[int],
        shift: int | Sequence[int] = 0,
        *,
        last_only: bool = True,
        allow_untrained: bool = False,
    ) -> tuple[Tensor, Statistics]:
        """Predict the change that follows the last frame, in units of its context's change.

        This is what training compares with `Statistics.change_between`. Arguments are those of
        `forward`. The model predicts after the last frame alone, with `last_only` or without.

        Returns:
            The change `(B, 1, C, *space)`, and the statistics that give it its units.
        """
        window = self._accept(window)
        if self.predicts == "change":
            return self._change(window, patch, shift, allow_untrained)
        frame = self._call(window.fields, window.domain, patch, shift, allow_untrained)
        stats = statistics(window.fields).last()
        return stats.change_between(window.fields[:, -1:], frame.unsqueeze(1)), stats

    def _change(
        self,
        window: Window,
        patch: int | Sequence[int],
        shift: int | Sequence[int],
        allow_untrained: bool,
    ) -> tuple[Tensor, Statistics]:
        # One prediction, after the last frame: it may know the whole context.
        stats = statistics(window.fields, causal=False)
        fields = stats.normalise(window.fields)
        change = self._call(fields, window.domain, patch, shift, allow_untrained)
        return change.unsqueeze(1), stats.last()

    def _call(
        self,
        fields: Tensor,
        domain: Domain,
        size: int | Sequence[int],
        shift: int | Sequence[int],
        allow_untrained: bool,
    ) -> Tensor:
        """Move the fields so that the patch grid starts at cell 0, call, and move back."""
        grid = _whole_grid(domain, size, shift)
        fields = _roll(fields, grid.start)
        with patch(self.model, grid.patch, allow_untrained=allow_untrained):
            frame = self.to_frame(self.model(self.to_input(fields)))
        expected = (fields.shape[0], *fields.shape[2:])
        if tuple(frame.shape) != expected:
            raise DomainError(
                f"at patch {short_patch(grid.patch)} the model gives {tuple(frame.shape)}, "
                f"expected (B, C, *space) = {expected}: an output on the grid of the input. "
                "Convert it with to_frame=..., and check that flexify(..., decoder=...) names the "
                "right layer"
            )
        return _roll(frame, tuple(-start for start in grid.start))

    def _accept(self, window: Window) -> Window:
        given, own = window.domain, self.domain
        if not window.batched:
            raise DomainError(
                f"the window has shape {tuple(window.fields.shape)} without a batch axis; "
                "expected (B, T, C, *space): use fields.unsqueeze(0)"
            )
        if (given.fields, given.boundaries) != (own.fields, own.boundaries):
            raise DomainError(
                f"the window has fields {given.fields} and boundaries {given.boundaries}, the "
                f"stepper was made for {own.fields} and {own.boundaries}"
            )
        if not math.isclose(given.dt, own.dt, rel_tol=1e-3):
            raise DomainError(f"the window's dt is {given.dt}, the model steps by {own.dt}")
        if window.num_frames < self.context:
            raise DomainError(
                f"the window has {window.num_frames} frames; the model reads {self.context}"
            )
        window = window.last(self.context)
        # In training the loss tells, and a compiled graph should not wait for the answer.
        if not self.training and not torch.compiler.is_compiling():
            window.require_finite()
        return window


def _require_same_boundaries(mode: str, periodic: tuple[bool, ...], domain: Domain) -> None:
    if len(periodic) != domain.ndim:
        raise DomainError(f"the domain is {domain.ndim}D, the model's patches are {len(periodic)}D")
    if mode == "csm" and periodic != domain.periodic:
        raise DomainError(
            f"the model pads with periodic={periodic}, the domain has {domain.periodic}; call "
            "flexify(..., boundaries=domain.boundaries)"
        )


def _whole_grid(domain: Domain, size: int | Sequence[int], shift: int | Sequence[int]) -> PatchGrid:
    """A patch grid that tiles the domain."""
    grid = PatchGrid.lay(domain, size, shift)
    for axis, (start, n, p) in enumerate(zip(grid.start, domain.shape, grid.patch, strict=True)):
        if start and not domain.periodic[axis]:
            raise PatchError(
                f"the patch grid is shifted along axis {axis}, which is not periodic: a model that "
                "was made for one grid can't be given cells beyond its boundary; use a schedule "
                "without shifts there"
            )
        if n % p:
            raise PatchError(
                f"patch {p} does not divide axis {axis} of {n} cells (grid {domain.shape}); choose "
                "one that does"
            )
    return grid


def _roll(fields: Tensor, start: tuple[int, ...]) -> Tensor:
    """Let each axis start at another cell, round the periodic domain."""
    for axis, first in enumerate(start, start=fields.dim() - len(start)):
        if first:
            span = (first, first + fields.shape[axis])
            fields = take(fields, axis, span, periodic=True)
    return fields
