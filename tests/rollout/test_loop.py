import numpy as np
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


class Losing(Doubling):
    """A stepper that loses some samples, known by their first value, at some call."""

    def __init__(self, lost, value=float("nan")):
        super().__init__()
        self.lost, self.value = lost, value

    def __call__(self, window, patch, shift=0):
        assert window.fields.isfinite().all(), "a lost sample came back"
        frame = super().__call__(window, patch, shift)
        for sample, before in zip(frame, window.fields[:, -1], strict=True):
            step, kind = len(self.calls), round(before[0, 0, 0].item() / 2 ** (len(self.calls) - 1))
            if self.lost.get(kind) == step:
                sample[1, 3, 5] = self.value
        return frame


@pytest.fixture
def three(make_domain):
    """Samples of the values 1, 3 and 5."""
    fields = torch.tensor([1.0, 3.0, 5.0]).reshape(3, 1, 1, 1, 1).expand(3, 4, 2, 32, 48)
    return ot.Window(fields.clone(), make_domain())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e16])
def test_a_dropped_sample_leaves_the_batch_and_the_others_go_on(three, value):
    model = Losing({3: 2}, value)
    frames = ot.rollout(model, three, steps=4, schedule="4", on_blow_up="drop")
    seen = []
    for frame in frames:
        seen.append((frame[:, 0, 0, 0].tolist(), frames.alive.tolist()))
        assert frame.shape == (3, 2, 32, 48)
        assert bool(frame[~frames.alive].isnan().all())
    values = [[2.0, 6.0, 10.0], [4.0, None, 20.0], [8.0, None, 40.0], [16.0, None, 80.0]]
    assert [[None if x != x else x for x in row] for row, _ in seen] == values
    assert [alive for _, alive in seen] == [[True] * 3, *[[True, False, True]] * 3]
    assert [frames.step, frames.choice.patch] == [4, (4, 4)]


def test_samples_may_go_one_after_the_other_until_none_is_left(three):
    model = Losing({1: 1, 5: 2, 3: 3})
    frames = ot.rollout(model, three, steps=6, schedule="4", on_blow_up="drop")
    alive = [frames.alive.tolist() for _ in frames]
    assert alive[:3] == [[False, True, True], [False, True, False], [False] * 3]
    assert len(alive) == 6
    assert len(model.calls) == 3  # nobody is asked for nothing


def test_a_held_sample_repeats_its_last_valid_frame_and_the_model_is_called_as_often(three):
    model = Losing({3: 2})
    frames = ot.rollout(model, three, steps=4, schedule="4", on_blow_up="hold")
    values = [frame[:, 0, 0, 0].tolist() for frame in frames]
    assert values == [[2, 6, 10], [4, 6, 20], [8, 6, 40], [16, 6, 80]]
    assert frames.alive.tolist() == [True, False, True]
    assert len(model.calls) == 4


def test_what_blows_up_is_the_same_whatever_is_done_about_it(three):
    """A bound of 25 is exceeded by 3 at step 4 (48), by 5 at step 3 (40)."""
    for on_blow_up in ("drop", "hold"):
        frames = ot.rollout(
            Doubling(), three, steps=4, schedule="4", on_blow_up=on_blow_up, bound=25.0
        )
        assert [frames.alive.tolist() for _ in frames][2:] == [
            [True, True, False], [True, False, False]]  # fmt: skip
    with pytest.raises(ot.RolloutDiverged, match=r"step 2 .* exceeds its bound in sample.s. \[2\]"):
        list(ot.rollout(Doubling(), three, steps=4, schedule="4", bound=25.0))


def test_a_schedule_may_be_a_string(make_model, make_window):
    model = make_model()
    start = make_window(model.domain)
    one, other = (
        list(ot.rollout(model, start, steps=3, schedule=s))
        for s in ("4-8-16+shift", ot.Shifted(ot.Cycle(4, 8, 16)))
    )
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_an_unknown_way_to_deal_with_blow_ups(window):
    with pytest.raises(ot.OvertoneError, match="on_blow_up is 'ignore'; expected one of raise"):
        ot.rollout(Doubling(), window, steps=1, schedule="4", on_blow_up="ignore")


def test_only_a_timed_rollout_measures_the_model(window):
    for timed in (False, True):
        frames = ot.rollout(Doubling(), window, steps=2, schedule="4", timed=timed)
        assert frames.seconds == 0
        assert [frames.seconds > 0 for _ in frames] == [timed] * 2


@pytest.mark.parametrize("unit", [1e-25, 1.0, 1e20])
def test_a_blow_up_is_one_by_what_a_sample_starts_from(make_domain, unit):
    """Doubling exceeds 1e15 times the start at step 50, whatever the unit is."""
    start = ot.Window(torch.full((1, 2, 2, 4, 4), unit), make_domain((4, 4)))
    with pytest.raises(ot.RolloutDiverged, match="exceeds its bound") as error:
        list(ot.rollout(Doubling(), start, steps=99, schedule="4"))
    assert error.value.num_valid == 49
    assert 2.0**49 < 1e15 < 2.0**50


def test_what_is_finite_is_all_there_is_to_ask_where_floats_end(make_domain):
    start = ot.Window(torch.full((1, 2, 2, 4, 4), 1e30), make_domain((4, 4)))
    with pytest.raises(ot.RolloutDiverged, match="is not finite") as error:
        list(ot.rollout(Doubling(), start, steps=99, schedule="4"))
    assert error.value.num_valid == 28  # 2^28 · 1e30 < 3.4e38


class Waking(Doubling):
    """The second field is set to a value at the first step and stays there."""

    value = 1.0

    def __call__(self, window, patch, shift=0):
        frame = window.fields[:, -1].clone()
        frame[:, 1] = self.value
        return frame


@pytest.mark.parametrize("start", [0.0, 1e-18])
@pytest.mark.parametrize(("value", "alive"), [(1.0, True), (1e4, True), (1e6, False)])
def test_a_field_at_rest_is_measured_by_the_others(make_domain, start, value, alive):
    fields = torch.ones(1, 2, 2, 4, 4)
    fields[:, :, 1] = start
    model = Waking()
    model.value = value
    frames = ot.rollout(
        model, ot.Window(fields, make_domain((4, 4))), steps=2, schedule="4", on_blow_up="drop"
    )
    list(frames)
    assert frames.alive.tolist() == [alive]


def test_a_sample_that_is_zero_may_become_anything_finite(make_domain):
    start = ot.Window(torch.zeros(1, 2, 2, 4, 4), make_domain((4, 4)))
    model = Waking()
    model.value = 1e30
    assert len(list(ot.rollout(model, start, steps=2, schedule="4"))) == 2
    model.value = float("inf")
    with pytest.raises(ot.RolloutDiverged, match="is not finite"):
        list(ot.rollout(model, start, steps=2, schedule="4"))


def test_dropped_samples_take_their_limits_along(make_domain):
    """Of samples that start at 1, 1e-20 and 1e10, the first is lost; the others keep their own."""
    units = torch.tensor([1.0, 1e-20, 1e10]).reshape(3, 1, 1, 1, 1)
    start = ot.Window(units * torch.ones(3, 2, 2, 4, 4), make_domain((4, 4)))

    class Rising(Doubling):
        def __call__(self, window, patch, shift=0):
            self.calls.append(patch)
            factor = {1: 1e14, 2: 100.0, 3: 0.1}[len(self.calls)]
            frame = factor * window.fields[:, -1]
            if len(self.calls) == 1:
                frame[0] = float("nan")
            return frame

    frames = ot.rollout(Rising(), start, steps=3, schedule="4", on_blow_up="drop")
    alive = [frames.alive.tolist() for _ in frames]
    assert alive == [[False, True, True], [False] * 3, [False] * 3]


@pytest.mark.parametrize("schedule", [8, np.int64(8), ot.Constant(8), "8"])
def test_a_schedule_may_be_one_patch(window, schedule):
    model = Doubling()
    list(ot.rollout(model, window, steps=1, schedule=schedule))
    assert model.calls[0][0] == (8, 8)


@pytest.mark.parametrize("schedule", [8.0, None, True, [4, 8]])
def test_what_is_no_schedule(window, schedule):
    with pytest.raises(ot.PatchError, match="schedule is .*; expected a patch such as 16"):
        ot.rollout(Doubling(), window, steps=1, schedule=schedule)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), "does not fit into memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), "does not fit into memory.*CUDA out of"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate"), "does not fit into"),
    ],
)
def test_too_little_memory_is_said(window, error, expected):
    class Hungry(Doubling):
        def __call__(self, window, patch, shift=0):
            raise error

    with pytest.raises(ot.OvertoneError, match=expected):
        next(ot.rollout(Hungry(), window, steps=1, schedule="4"))
    error = RuntimeError("a bug")
    with pytest.raises(RuntimeError, match="a bug"):
        next(ot.rollout(Hungry(), window, steps=1, schedule="4"))


@pytest.mark.parametrize("kind", [torch.zeros, np.zeros], ids=["tensor", "array"])
def test_frames_without_a_domain_are_refused_with_how_to_give_them_one(make_model, kind):
    model, frames = make_model(), kind((1, 3, 2, 32, 48))
    how = r"shape \(1, 3, 2, 32, 48\); .*ot.Window\(fields, model.domain\) .*\(B, T, 2, 32, 48\)"
    with pytest.raises(ot.DomainError, match=how):
        ot.rollout(model, frames, steps=1, schedule="4-8-16")
    with pytest.raises(ot.DomainError, match=how):
        model(frames, 4)
    with pytest.raises(ot.DomainError, match=r"\(B, T, C, \*space\)"):
        ot.rollout(Doubling(), frames, steps=1, schedule="4-8-16")
    with pytest.raises(ot.DomainError, match="the window is a list;"):
        ot.rollout(model, [1], steps=1, schedule="4-8-16")
    window = ot.Window(torch.as_tensor(frames).float(), model.domain)
    assert len(list(ot.rollout(model, window, steps=4, schedule="4-8-16"))) == 4


def test_a_rollout_says_how_far_it_is(window):
    frames = ot.rollout(Doubling(), window, steps=4, schedule="4-8")
    next(frames)
    assert repr(frames).startswith("Rollout(1 of 4 steps made, schedule 4-8, 3 of 3 samples alive;")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_limits_do_not_depend_on_signs(make_domain, sign):
    """What is negative everywhere may grow as far as what is positive, and no further."""
    start = ot.Window(sign * torch.ones(1, 2, 2, 4, 4), make_domain((4, 4)))
    with pytest.raises(ot.RolloutDiverged, match="exceeds its bound") as error:
        list(ot.rollout(Doubling(), start, steps=99, schedule="4"))
    assert error.value.num_valid == 49
    with pytest.raises(ot.RolloutDiverged, match="field a, b exceeds its bound") as error:
        list(ot.rollout(Doubling(), start, steps=9, schedule="4", bound=10.0))
    assert error.value.num_valid == 3
