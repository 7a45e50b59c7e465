"""The page's numbers are those of `evaluate`."""

import pytest
import torch

from overtone.evaluate.tally import Tally
from overtone.metrics import axis_spectrum
from overtone.schedules import Choice
from overtone.viewer.measures import finite, measure, normalised, spectrum


@pytest.fixture
def pair(make_domain):
    domain = make_domain(shape=(32, 48), boundaries=["periodic", "wall"])
    random = torch.Generator().manual_seed(3)
    frame, truth = torch.randn(2, 2, 32, 48, generator=random)
    return domain, frame, truth


@pytest.mark.parametrize("choice", [Choice(8), Choice((4, 16), (3, 5)), Choice(16, (7, 0))])
def test_errors_and_seams_are_those_of_an_evaluation(pair, choice):
    domain, frame, truth = pair
    tally = Tally(domain, 1, 1, (), seed=0)
    own = choice.on(domain)
    tally.record(1, [0], frame[None], truth[None], own)
    found = measure(frame, truth, choice, domain)
    assert found.error == pytest.approx(tally.vrmse[0].value, rel=1e-4)
    assert found.seams == pytest.approx(tally.seams[0].value, rel=1e-4)
    assert found.patch == own.patch


def test_tokens_and_the_grid_move_with_the_shift(pair):
    domain, frame, truth = pair
    found = measure(frame, truth, Choice(16, (5, 5)), domain)
    assert found.start == (5, 5 - 16)  # between walls a grid begins before them
    assert found.tokens == 2 * 4


def test_what_there_is_nothing_to_say_of(pair):
    domain, frame, truth = pair
    found = measure(frame, None, Choice(8), domain)
    assert (found.error, found.errors, found.seams, found.tokens) == (None, None, None, 24)
    found = measure(frame, truth, None, domain)
    assert found.error is not None
    assert (found.seams, found.patch, found.tokens) == (None, None, None)
    assert measure(frame, truth, Choice(1), domain).seams is None


def test_the_spectrum_adds_up_to_the_error(make_domain):
    domain = make_domain(shape=(32, 48))
    frame, truth = 20 * torch.randn(2, 2, 32, 48, generator=torch.Generator().manual_seed(0)) + 3
    errors = measure(frame, truth, None, domain).errors
    assert errors is not None
    error = errors[1]
    for axis, n in enumerate(domain.shape):
        power = spectrum(frame, truth, 1, axis, domain)
        assert len(power) == n // 2 + 1
        # In units of the truth's variance, whatever those of the field are.
        assert sum(power) == pytest.approx(error**2, rel=1e-3)  # pyright: ignore
        own = axis_spectrum(normalised(frame, truth, domain)[1], axis, ndim=2).power
        assert power == pytest.approx(own.tolist(), rel=1e-3)


def test_numbers_for_json():
    assert finite(1 / 3) == 0.33333
    assert finite(float("nan")) is None
    assert finite(float("inf")) is None
