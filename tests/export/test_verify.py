"""The difference of a program from its model: what it sees, and in which units."""

import pytest
import torch

import overtone as ot
from overtone.export.program import waves
from overtone.export.verify import Program, difference


@pytest.fixture(scope="module")
def case(make_domain, make_model):
    domain = make_domain(boundaries=("periodic", "wall"))
    return make_model(domain), waves(domain, 3, samples=2)


def called(model, window, change=lambda frame, shift: frame, moved=(True, False)):
    """A program that is the model, but for a change of its frames."""

    def call(fields, shift):
        frame = model(ot.Window(fields, window.domain), 8, tuple(shift.tolist()))
        return change(frame, shift)

    return Program(call, model.context, moved)


def test_a_model_does_not_differ_from_itself(case):
    model, window = case
    assert difference(model, called(model, window), window, patch=8) == 0


def test_the_worst_cell_counts_in_units_of_its_field(case):
    model, window = case

    def one_cell(frame, shift):
        frame = frame.clone()
        frame[1, 1, 3, 4] += 1e-3
        return frame

    unit = window.fields[1, :, 1].std(correction=0)
    found = difference(model, called(model, window, one_cell), window, patch=8, steps=1)
    assert found == pytest.approx(1e-3 / float(unit), rel=1e-2)


def test_a_shift_that_is_ignored_is_seen(case):
    model, window = case
    program = called(model, window)
    call = program.call
    program.call = lambda fields, shift: call(fields, 0 * shift)
    assert difference(model, program, window, patch=8, steps=1) == 0
    assert difference(model, program, window, patch=8) > 1e-5


def test_nan_is_infinitely_far(case):
    model, window = case
    program = called(model, window, lambda frame, shift: frame * torch.nan)
    assert difference(model, program, window, patch=8, steps=1) == torch.inf


def test_frames_of_another_shape_are_refused(case):
    model, window = case
    program = called(model, window, lambda frame, shift: frame[:, :, :-1])
    with pytest.raises(ot.OvertoneError, match="gives frames"):
        difference(model, program, window, patch=8, steps=1)


def test_a_flat_field_is_measured_by_its_size(case):
    model, window = case
    flat = torch.full_like(window.fields, 100.0)
    program = called(model, window, lambda frame, shift: frame + 1e-3)
    found = difference(model, program, ot.Window(flat, window.domain), patch=8, steps=1)
    assert found == pytest.approx(1e-3, rel=0.05)
