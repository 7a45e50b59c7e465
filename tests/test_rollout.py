import pytest
import torch

import overtone as ot


class Doubling:
    """A stepper that multiplies by two and notes how it was called."""

    context = 2

    def __init__(self):
        self.calls = []

    def __call__(self, window, patch, shift=0):
        self.calls.append((patch, shift, window.num_frames))
        return 2 * window.fields[:, -1]


@pytest.fixture
def window(make_domain):
    return ot.Window(torch.ones(3, 4, 2, 32, 48), make_domain())


def test_frames_follow_the_schedule(window):
    model = Doubling()
    schedule = ot.Shifted(ot.Cycle(4, 8), offsets=[(1, 2)])
    frames = list(ot.rollout(model, window, steps=3, schedule=schedule))
    assert [frame[0, 0, 0, 0].item() for frame in frames] == [2, 4, 8]
    assert model.calls == [((4, 4), (1, 2), 2), ((8, 8), (1, 2), 2), ((4, 4), (1, 2), 2)]


def test_it_is_lazy(window):
    model = Doubling()
    frames = ot.rollout(model, window, steps=10**9, schedule=ot.Constant(4))
    next(frames)
    assert len(model.calls) == 1


def test_gradients_are_off_inside_and_as_before_outside(window):
    for _ in ot.rollout(Doubling(), window, steps=1, schedule=ot.Constant(4)):
        assert torch.is_grad_enabled()


def test_a_cycle_of_one_equals_a_constant(make_model, make_window):
    model = make_model()
    start = make_window(model.domain)
    one, other = (list(ot.rollout(model, start, steps=3, schedule=s))
                  for s in (ot.Cycle(8), ot.Constant(8)))  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_divergence_is_named_with_its_step(window):
    class Breaking(Doubling):
        def __call__(self, window, patch, shift=0):
            frame = super().__call__(window, patch, shift)
            if len(self.calls) == 3:
                frame[1, 1, 0, 0] = float("inf")
            return frame

    frames = []
    with pytest.raises(ot.RolloutDiverged, match=r"step 2 the field b is not finite.*\[1\]") as e:
        for frame in ot.rollout(Breaking(), window, steps=9, schedule=ot.Constant(4)):
            frames.append(frame)
    assert (e.value.step, e.value.num_valid, len(frames)) == (2, 2, 2)
    # and can be switched off
    unchecked = ot.rollout(Breaking(), window, steps=5, schedule=ot.Constant(4), check_finite=False)
    assert len(list(unchecked)) == 5


@pytest.mark.parametrize("bound", [10.0, (10.0, 1e9)])
def test_bounds_are_kept(window, bound):
    frames = ot.rollout(Doubling(), window, steps=9, schedule=ot.Constant(4), bound=bound)
    with pytest.raises(ot.RolloutDiverged, match="exceeds its bound") as error:
        list(frames)
    assert error.value.num_valid == 3


def test_wrong_arguments(window):
    with pytest.raises(ot.OvertoneError, match="steps is -1"):
        next(ot.rollout(Doubling(), window, steps=-1, schedule=ot.Constant(4)))
    with pytest.raises(ot.OvertoneError, match="one number, or 2 of them"):
        next(ot.rollout(Doubling(), window, steps=1, schedule=ot.Constant(4), bound=(1.0,)))
