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


def built(config):
    """The model as a training would build it, and its domain; each patch lies on the grid."""
    torch.manual_seed(0)
    domain = grid_of(config)
    model = make_model(config.model, domain).eval()
    for patch in config.model.patches:
        model.lay(domain, patch, 1, False)
    return model, domain


def steps_by_all_its_patches(config):
    """Predict one frame by each of its patches."""
    model, domain = built(config)
    fields = 1 + 0.1 * torch.rand(1, config.model.context, len(domain.fields), *domain.shape)
    for patch in config.model.patches:
        with torch.no_grad():
            frame = model(ot.Window(fields, domain), patch)
        assert frame.shape == fields[:, -1].shape
        assert bool(frame.isfinite().all())
