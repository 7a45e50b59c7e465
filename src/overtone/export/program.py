"""One step of a model at one patch, as a program without Python.

    frame (B, C, *space) = program(window (B, T, C, *space), shift (axes,)),

in physical units on both sides: normalisation is inside. Along a periodic axis, a patch grid that
is moved by `shift` cells is a grid that is not, on fields that are rolled by as many; so one
program serves every shift: it rolls what the tokenizer reads, and rolls back what it writes. All
else, the window's statistics among it, comes from the fields as they lie, so the program has the
very numbers of the model. Along other axes a moved grid has another number of tokens, which would
be another program; there the grid stays where it is.

The number of samples is free. The number of cells is not: patch grids, positions and boundary
markers are laid for one grid when the program is made.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from overtone.domain import Domain, PerAxis, Window
from overtone.grid import PatchGrid
from overtone.models.base import Model
from overtone.models.processors.rope import with_complex
from overtone.ops.constants import as_they_are

MAX_BATCH = 4096
"""Most samples of a call; a bound lets sizes be reckoned with."""
EXAMPLES = 2
"""Samples of the window that a program is traced with. One would be taken for a size of its own."""
WAVES = 4
"""Longest waves of an axis that a window is made of."""


class Step(nn.Module):
    """A model at one patch on one grid, from tensors to a tensor.

    Args:
        model: in evaluation mode.
        domain: what its windows live on.
        patch: one int, or one for each axis.
        allow_untrained: accept a patch that the model was not trained for.
    """

    def __init__(
        self, model: Model, domain: Domain, patch: PerAxis, *, allow_untrained: bool = False
    ):
        super().__init__()
        self.model, self.domain = model, domain
        self.grid: PatchGrid = model.lay(domain, patch, 0, allow_untrained)
        self.moved = moved_axes(model, domain)
        self.period: Tensor
        self.register_buffer("period", torch.tensor(self.grid.patch), persistent=False)

    def forward(self, window: Tensor, shift: Tensor | None = None) -> Tensor:
        """The next frame, `(B, C, *space)`.

        Args:
            window: `(B, T, C, *space)`.
            shift: cells, `(axes,)` int64; left out where no axis moves.
        """
        if shift is None:
            return self.model.next_frame(Window(window, self.domain), self.grid)
        start = shift % self.period  # by a whole patch is not at all, see `PatchGrid`
        return self.model.next_frame(Window(window, self.domain), replace(self.grid, moved=start))


def moved_axes(model: Model, domain: Domain) -> tuple[bool, ...]:
    """For each axis, whether a program takes shifts along it.

    None if the model has no patches, or if, like CViT, it has learned of places on the domain: then
    fields that are rolled are other fields.
    """
    return tuple(wraps and model.patched and model.kind != "cvit" for wraps in domain.periodic)


def trace(
    model: Model,
    domain: Domain,
    patch: PerAxis,
    *,
    allow_untrained: bool = False,
    exact: bool = False,
) -> ExportedProgram:
    """The program of a model at one patch.

    Args:
        model, domain, patch, allow_untrained: as for `Step`.
        exact: keep the model's complex numbers, which not all formats know. Real numbers in their
            place give the same but for rounding.
    """
    step = Step(model, domain, patch, allow_untrained=allow_untrained).eval()
    window = waves(domain, model.context, samples=EXAMPLES).fields
    given: tuple[Tensor, ...] = (window,)
    shapes: list[dict[int, Dim] | None] = [{0: Dim("batch", min=1, max=MAX_BATCH)}]
    if any(step.moved):
        given, shapes = (window, torch.zeros(domain.ndim, dtype=torch.int64)), [*shapes, None]
    with torch.no_grad(), as_they_are(), with_complex() if exact else nullcontext():
        step(*given)  # leaves the constants behind
        program = torch.export.export(step, given, dynamic_shapes=tuple(shapes))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names folders of this machine
    return program


def waves(domain: Domain, frames: int, *, samples: int, seed: int = 0) -> Window:
    """Smooth random fields that travel: `(samples, frames, C, *space)`, to try a program with.

    Each field is a mean and a few long waves, whole turns along periodic axes and half turns along
    others, that move by a part of their length from frame to frame.
    """
    random = torch.Generator().manual_seed(seed)
    shape = (samples, len(domain.fields))
    fields = torch.ones(samples, frames, len(domain.fields), *domain.shape)
    times = torch.arange(frames).reshape(1, frames, 1, *(1,) * domain.ndim)
    for wave in range(WAVES):
        phase, speed = torch.rand(2, *shape, generator=random).unbind()
        angle = _expand(phase, domain) * 2 * math.pi + times * (0.1 + 0.4 * _expand(speed, domain))
        for axis, n in enumerate(domain.shape):
            turns = torch.randint(-wave - 1, wave + 2, shape, generator=random)
            turns = turns * (1.0 if domain.periodic[axis] else 0.5)
            along = [-1 if a == axis else 1 for a in range(domain.ndim)]
            centres = ((torch.arange(n) + 0.5) / n).reshape(along)
            angle = angle + 2 * math.pi * _expand(turns, domain) * centres
        fields = fields + 0.5 / (wave + 1) * angle.cos()
    return Window(fields, domain)


def _expand(values: Tensor, domain: Domain) -> Tensor:
    """`(B, C)` to `(B, 1, C, 1, …)`."""
    return values.reshape(values.shape[0], 1, values.shape[1], *(1,) * domain.ndim)
