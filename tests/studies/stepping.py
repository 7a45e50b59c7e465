"""A model of a study on the grid of its data, without making the data."""

import torch

import overtone as ot
from overtone.domain import per_axis
from overtone.solvers.datasets import build_system
from overtone.train.run import make_model


def grid_of(config):
    """What a configuration's windows live on."""
    made = config.data.generate
    system = build_system(made.system, grid=made.grid, **made.settings)
    whole, by = system.domain, per_axis(config.data.coarsen, system.domain.ndim, "coarsen")
    shape = tuple(n // c for n, c in zip(whole.shape, by, strict=True))
    return ot.Domain(shape, whole.extent, whole.boundaries, whole.fields, whole.dt)


LAID = {}
"""Model and grid, as texts -> what `laid` says of them: studies share many."""


def laid(config):
    """The patches whose grid lies on the data, in the model as a training would build it."""
    domain = grid_of(config)
    key = str(config.model), str(domain)
    if key not in LAID:
        model = make_model(config.model, domain)
        grids = {patch: model.lay(domain, patch, 1, False) for patch in config.model.patches}
        LAID[key] = tuple(patch for patch, grid in grids.items() if 0 not in grid.shape)
    return LAID[key]


def stepped(config):
    """The patches by which the model predicts a frame like those of the data."""
    torch.manual_seed(0)
    domain = grid_of(config)
    model = make_model(config.model, domain).eval()
    fields = 1 + 0.1 * torch.rand(1, config.model.context, len(domain.fields), *domain.shape)
    found = []
    for patch in config.model.patches:
        with torch.no_grad():
            frame = model(ot.Window(fields, domain), patch)
        if frame.shape == fields[:, -1].shape and bool(frame.isfinite().all()):
            found.append(patch)
    return tuple(found)
