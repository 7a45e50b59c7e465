"""A flexified model as something that `rollout` can step.

Models read tensors of their own layout; a stepper reads a `Window`. In between stand two functions
with defaults: `to_input` joins the frames of a window into channels, `to_frame` takes the model's
output as it is, `(B, C, *space)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from torch import Tensor, nn

from overtone.domain import Domain, PerAxis, Window
from overtone.errors import (
    CheckpointError,
    DomainError,
    OvertoneError,
    PatchError,
    require_one_of,
)
from overtone.flexify.patching import Patching, find_patchings, patch
from overtone.grid import PatchGrid
from overtone.models.base import Model, short_patch
from overtone.normalize import Statistics, statistics
from overtone.ops.padding import follow, take

Prediction = Literal["frame", "change"]
PREDICTIONS: tuple[Prediction, ...] = ("frame", "change")


def join_frames(fields: Tensor) -> Tensor:
    """`(B, T, C, *space)` to `(B, T * C, *space)`, the oldest frame first."""
    return fields.flatten(1, 2)


def as_it_is(output: Tensor) -> Tensor:
    """The model's output, where it is a frame `(B, C, *space)` already."""
    return output


class FlexibleStepper(Model):
    """Predicts the next frame of a window with a flexified model.

    Its folders hold weights and a description; the model itself only its own code can build.

    Args:
        model: what `flexify` returned, or a module that contains it.
        domain: what the windows live on; another grid is fine if the model takes it.
        context: number of frames that the model reads.
        predicts: `"frame"`: the model reads fields in physical units and gives the next frame.
            `"change"`: it reads normalised fields and gives the change from the last frame in
            the statistics' unit, as in `normalize.py`.
        to_input: from the frames `(B, T, C, *space)` to the model's input.
        to_frame: from the model's output to `(B, C, *space)`.
    """

    kind = "flexible"

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
        require_one_of(predicts, PREDICTIONS, "predicts")
        patchings = find_patchings(model)
        if len(patchings) != 1:
            raise OvertoneError(
                f"{type(model).__name__} holds {len(patchings)} flexible models; expected one: "
                "make it flexible with flexify(model, ...) first"
            )
        _require_same_boundaries(patchings[0].mode, patchings[0].periodic, domain)
        super().__init__(domain, context, patches=patchings[0].patches)
        self.model = model
        self.predicts: Prediction = predicts
        self.to_input = to_input
        self.to_frame = to_frame

    @property
    def patching(self) -> Patching:
        """What the flexible layers of the model know in common."""
        (patching,) = find_patchings(self.model)
        return patching

    @property
    def config(self) -> dict[str, Any]:
        """What is known of it."""
        return {
            "model": type(self.model).__name__,
            "predicts": self.predicts,
            "mode": self.patching.mode,
            "rule": self.patching.rule,
            "patches": [list(patch) for patch in self.patching.patches],
            "domain": self.domain.to_dict(),
            "context": self.context,
        }

    def next_frame(self, window: Window, grid: PatchGrid) -> Tensor:
        """See `Model.next_frame`; a model that predicts frames is taken at its word."""
        if self.predicts == "frame":
            return self._call(window.fields, grid)
        return super().next_frame(window, grid)

    def change(
        self, window: Window, grid: PatchGrid, *, last_only: bool
    ) -> tuple[Tensor, Statistics]:
        """See `Model.change`."""
        if self.predicts == "frame":
            frame = self._call(window.fields, grid)
            stats = statistics(window.fields, causal=False).last()
            return stats.change_between(window.fields[:, -1:], frame.unsqueeze(1)), stats
        # One prediction, after the last frame: it may know the whole context.
        stats = self.measure(window.fields, causal=False)
        change = self._call(stats.normalise(window.fields), grid)
        return change.unsqueeze(1), stats.last()

    def accept(self, window: Window, *, check_finite: bool = True) -> Window:
        """Check a window against the model and cut it to the context."""
        if window.num_frames < self.context:
            raise DomainError(
                f"the window has {window.num_frames} frames; the model reads {self.context}"
            )
        return super().accept(window, check_finite=check_finite)

    def lay(
        self, domain: Domain, patch: PerAxis, shift: PerAxis, allow_untrained: bool
    ) -> PatchGrid:
        """A patch grid that tiles the domain, of a patch that the model's layers can make."""
        grid = _whole_grid(domain, patch, shift)
        self.patching.accept(grid.patch, allow_untrained)
        return grid

    @classmethod
    def rebuild(cls, config: Mapping[str, Any]) -> Self:
        """Refuse: see the class."""
        raise CheckpointError(
            f"{config['architecture']['model']} was made flexible, and only its own code can build "
            "it; do that, flexify it, and give the weights in model.safetensors to load_state_dict "
            "of its FlexibleStepper"
        )

    def _call(self, fields: Tensor, grid: PatchGrid) -> Tensor:
        """Move the fields so that the patch grid starts at cell 0, call, and move back."""
        fields = follow(_roll(fields, grid.start), grid)
        with patch(self.model, grid.patch, allow_untrained=True):
            frame = self.to_frame(self.model(self.to_input(fields)))
        expected = (fields.shape[0], *fields.shape[2:])
        if tuple(frame.shape) != expected:
            raise DomainError(
                f"at patch {short_patch(grid.patch)} the model gives {tuple(frame.shape)}, "
                f"expected (B, C, *space) = {expected}: an output on the grid of the input. "
                "Convert it with to_frame=..., and check that flexify(..., decoder=...) names the "
                "right layer"
            )
        frame = follow(frame, grid, back=True)
        return _roll(frame, tuple(-start for start in grid.start))


def _require_same_boundaries(mode: str, periodic: tuple[bool, ...], domain: Domain) -> None:
    if len(periodic) != domain.ndim:
        raise DomainError(f"the domain is {domain.ndim}D, the model's patches are {len(periodic)}D")
    if mode == "csm" and periodic != domain.periodic:
        raise DomainError(
            f"the model pads with periodic={periodic}, the domain has {domain.periodic}; call "
            "flexify(..., boundaries=domain.boundaries)"
        )


def _whole_grid(domain: Domain, size: PerAxis, shift: PerAxis) -> PatchGrid:
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
