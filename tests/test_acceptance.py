"""Which windows are accepted, and cut to the context."""

import pytest
import torch

import overtone as ot
from overtone.acceptance import accept_window


def test_the_latest_frames_are_kept(make_domain, make_window):
    domain = make_domain()
    window = make_window(domain, frames=5)
    accepted = accept_window(window, domain=domain, context=3, check_finite=True)
    assert torch.equal(accepted.fields, window.fields[:, 2:])
    short = make_window(domain, frames=2)
    assert accept_window(short, domain=domain, context=3, check_finite=True).num_frames == 2


def test_other_grids_and_fewer_kinds_of_boundary_are_accepted(make_domain, make_window):
    domain = make_domain((32, 48), ("periodic", "wall"))
    window = make_window(make_domain((7, 9), "periodic"))
    assert (
        accept_window(window, domain=domain, context=3, check_finite=True).domain == window.domain
    )


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


def test_frames_batch_axis_and_finite_values(make_domain, make_window):
    domain = make_domain()
    with pytest.raises(ot.DomainError, match="has 1 frames; the model needs at least 2"):
        accept_window(make_window(domain, frames=1), domain=domain, context=3, check_finite=True)
    window = make_window(domain)
    single = ot.Window(window.fields[0], domain)
    with pytest.raises(ot.DomainError, match="without a batch axis"):
        accept_window(single, domain=domain, context=3, check_finite=True)
    window.fields[0, 0, 0, 0, 0] = torch.inf
    with pytest.raises(ot.DomainError, match="NaN or infinite"):
        accept_window(window, domain=domain, context=3, check_finite=True)
    accept_window(window, domain=domain, context=3, check_finite=False)
