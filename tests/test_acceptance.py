"""What models accept; the messages of refusals are tested with the models (test_emulator)."""

import pytest
import torch

import overtone as ot
from overtone.acceptance import accept_patch, accept_window, short_patch


def test_the_latest_frames_are_kept(make_domain, make_window):
    domain = make_domain()
    window = make_window(domain, frames=5)
    accepted = accept_window(window, domain=domain, context=3, check_finite=True)
    assert torch.equal(accepted.fields, window.fields[:, -3:])


def test_only_the_frames_that_are_used_must_be_finite(make_domain, make_window):
    domain = make_domain()
    window = make_window(domain, frames=4)
    window.fields[0, 0] = torch.nan
    accept_window(window, domain=domain, context=3, check_finite=True)
    window.fields[0, 1] = torch.nan
    accept_window(window, domain=domain, context=3, check_finite=False)
    with pytest.raises(ot.DomainError, match="NaN or infinite"):
        accept_window(window, domain=domain, context=3, check_finite=True)


def test_a_model_of_walls_takes_periodic_windows(make_domain, make_window):
    walls, periodic = make_domain(boundaries="wall"), make_domain(boundaries="periodic")
    accept_window(make_window(periodic), domain=walls, context=3, check_finite=True)
    with pytest.raises(ot.DomainError, match=r"\['wall'\], which the model has not learned"):
        accept_window(make_window(walls), domain=periodic, context=3, check_finite=True)


def test_patches_lay_a_grid_or_are_refused_with_the_known_ones(make_domain):
    known = {"domain": make_domain((32, 48)), "trained": ((4, 8), (8, 8))}
    assert accept_patch(8, 0, allow_untrained=False, **known).shape == (4, 6)
    assert accept_patch((2, 3), 0, allow_untrained=True, **known).shape == (16, 16)
    with pytest.raises(ot.PatchError, match=r"patch \(2, 3\) was not.*knows \(4, 8\), 8\. allow"):
        accept_patch((2, 3), 0, allow_untrained=False, **known)


def test_short_patches():
    assert short_patch((4, 4, 4)) == 4
    assert short_patch((4, 8)) == (4, 8)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"shape": (8,)}, "the window is 1D, the model was built for 2D"),
        ({"fields": ("b", "a")}, "select and order them alike"),
        ({"boundaries": "open"}, r"kind \['open'\], which the model has not learned"),
        ({"dt": 0.2}, r"dt is 0\.2, the model steps by 0\.1"),
    ],
)
def test_refusals(make_domain, make_window, other, message):
    window = make_window(make_domain(**other))
    with pytest.raises(ot.DomainError, match=message):
        accept_window(window, domain=make_domain(), context=3, check_finite=True)
