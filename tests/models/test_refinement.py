"""Corrections cell by cell, which know of no patches."""

from functools import partial

import pytest
import torch

import overtone as ot
from overtone.models.emulator import REACH, Refinement


@pytest.fixture(params=["fold", "attend"])
def make_model(request, make_model):
    """Models whose frames meet in either way."""
    return partial(make_model, time=request.param)


def make_parts(domain, batch=2, frames=3):
    return torch.randn(3, batch, frames, len(domain.fields), *domain.shape)


@pytest.fixture
def loud(make_domain):
    """A refinement that corrects a lot, as a trained one may."""

    def make(domain):
        made = Refinement(domain, width=5)
        torch.nn.init.normal_(made.convolutions[-1].weight)
        return made

    return make


def test_it_commutes_with_shifts_where_the_domain_wraps(make_domain, loud):
    domain = make_domain((12, 10), ("periodic", "wall"))
    refine, parts = loud(domain), make_parts(domain)
    moved = refine(*parts.roll(5, dims=-2), domain)
    torch.testing.assert_close(moved, refine(*parts, domain).roll(5, dims=-2))
    moved = refine(*parts.roll(5, dims=-1), domain)
    assert not torch.allclose(moved, refine(*parts, domain).roll(5, dims=-1), atol=1e-2)


def test_it_sees_so_many_cells_around_and_its_own_frame(make_domain, loud):
    domain = make_domain((16, 16), "wall")
    parts = make_parts(domain).requires_grad_()
    loud(domain)(*parts, domain)[0, 1, 0, 8, 8].backward()
    seen = parts.grad.abs().sum(dim=(0, 3)) > 0  # (B, T, *space)
    assert seen.nonzero()[:, :2].unique(dim=0).tolist() == [[0, 1]]
    rows = seen[0, 1].any(dim=1).nonzero()[:, 0].tolist()
    assert rows == list(range(8 - REACH, 8 + REACH + 1))


@pytest.mark.parametrize("shape", [(20,), (12, 20), (8, 8, 12)])
@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_models_with_it_predict_on_any_domain(
    make_domain, make_model, make_window, shape, boundary
):
    domain = make_domain(shape, boundary)
    model = make_model(domain, patches=(4,), refine=6)
    window = make_window(domain)
    frame = model(window, 4, 1)
    assert frame.shape == (2, 2, *shape)
    assert frame.isfinite().all()


@pytest.mark.parametrize("make_model", ["attend"], indirect=True)
@pytest.mark.parametrize("skip", [False, True])
def test_the_last_prediction_is_the_same_with_and_without_the_others(make_model, make_window, skip):
    model = make_model(refine=6, skip=skip)
    torch.nn.init.normal_(model.refinement.convolutions[-1].weight)
    window = make_window(model.domain)
    every, _ = model.predict_change(window, 8)
    last, _ = model.predict_change(window, 8, last_only=True)
    torch.testing.assert_close(every[:, -1:], last)
    earlier, _ = model.predict_change(ot.Window(window.fields[:, :2], model.domain), 8)
    torch.testing.assert_close(every[:, :2], earlier)


def test_every_weight_learns_from_the_start(make_model, make_window):
    model = make_model(refine=6).train()
    changes, _ = model.predict_change(make_window(model.domain), 8)
    changes.square().mean().backward()
    assert all(p.grad.abs().max() > 0 for p in model.refinement.parameters())


def test_it_is_saved_and_loaded_and_absent_by_default(make_model, make_window, tmp_path):
    model = make_model(refine=6)
    model.save(tmp_path / "model")
    window = make_window(model.domain)
    again = ot.load(tmp_path / "model")
    assert torch.equal(again(window, 4), model(window, 4))
    assert not any("refine" in name for name in make_model().state_dict())
    with pytest.raises(ot.OvertoneError, match="refine is -1"):
        make_model(refine=-1)
