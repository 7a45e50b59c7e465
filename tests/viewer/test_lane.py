"""A lane is `rollout`, whatever is done to it on the way."""

import pytest
import torch

import overtone as ot
from overtone.errors import OvertoneError, PatchError
from overtone.evaluate import Candidate
from overtone.viewer.lane import Lane, bump

MUCH = 10_000_000


@pytest.fixture
def start(make_stage):
    def make(ndim=2, schedule="8", memory=MUCH):
        stage = make_stage(ndim)
        candidate = stage.candidates[0]
        window = stage.window(candidate, 0, 1)
        return Lane(candidate, window, schedule, memory=memory), candidate.model, window

    return make


def frames(model, window, steps, schedule):
    return [frame[0] for frame in ot.rollout(model, window, steps=steps, schedule=schedule)]


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("schedule", ["8", "4-8+shift"])
def test_an_unsteered_lane_is_the_rollout(start, ndim, schedule):
    lane, model, window = start(ndim, schedule)
    for n, frame in enumerate(frames(model, window, 6, schedule), start=1):
        assert lane.advance()
        assert lane.state.step == n
        torch.testing.assert_close(lane.state.frames[-1], frame, rtol=0, atol=0)


def test_another_schedule_holds_from_the_next_step_as_if_it_had_been_followed(start):
    lane, model, window = start(schedule="8+shift")
    for _ in range(3):
        lane.advance()
    lane.steer("2-4-8+shift")
    assert str(lane.schedule) == "2-4-8+shift"
    for _ in range(3):
        lane.advance()
    first, second = ot.parse_schedule("8+shift"), ot.parse_schedule("2-4-8+shift")

    class Both(ot.Schedule):
        def __call__(self, step):
            return (first if step < 3 else second)(step)

    torch.testing.assert_close(
        lane.state.frames[-1], frames(model, window, 6, Both())[-1], rtol=0, atol=0
    )


def test_going_back_and_on_again_gives_the_same_frames(start):
    lane, *_ = start(schedule="2-4-8+shift")
    seen = [lane.state]
    for _ in range(7):
        lane.advance()
        seen.append(lane.state)
    lane.back(2)
    assert lane.state is seen[2]
    for n in range(3, 8):
        lane.advance()
        assert lane.state.choice == seen[n].choice
        torch.testing.assert_close(lane.state.frames[-1], seen[n].frames[-1], rtol=0, atol=0)


def test_memory_is_bounded_and_what_is_lost_is_said(start):
    lane, _, window = start(memory=0)
    size = 2 * window.fields.shape[1] + 2
    for _ in range(40):
        lane.advance()
    assert lane.state.step == 40
    assert 40 - size < lane.oldest <= 40 - window.fields.shape[1]
    with pytest.raises(OvertoneError, match=f"no longer kept; the earliest is {lane.oldest}"):
        lane.back(lane.oldest - 1)
    lane.back(lane.oldest)
    assert lane.advance()


def test_pushes_count_towards_the_memory(start):
    lane, *_ = start(memory=0)
    for _ in range(30):
        lane.advance()
        lane.push(0, (1, 2), radius=1, strength=0.1)
        own = {id(frame) for state in lane._states for frame in state.frames}
        assert len(own) <= lane._most + 3


@pytest.mark.parametrize("channel", [0, 1])
def test_a_push_changes_one_field_around_its_cell_in_all_frames_alike(start, channel):
    lane, model, _ = start()
    lane.advance()
    before = torch.stack(lane.state.frames)
    lane.push(channel, (3, 0), radius=1.5, strength=2.0)
    after = torch.stack(lane.state.frames)
    change = after - before
    assert lane.state.pushed
    assert not bool(change[:, 1 - channel].any())
    if channel == 0:  # of both signs: added
        torch.testing.assert_close(change[:, 0], change[:1, 0].expand_as(change[:, 0]))
        spread = before[:, 0].std()
        assert change[0, 0, 3, 0].item() == pytest.approx(2 * spread.item(), rel=1e-4)
        # Round the periodic axis, and not round the other.
        assert change[0, 0, -1, 0] > 0.02 * spread
        assert abs(change[0, 0, 3, -1]) < 1e-6 * spread
    else:
        assert bool((after[:, 1] > 0).all())
        ratio = (after[:, 1] / before[:, 1])[:, 3, 0]
        torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))
        assert ratio[0] > 1
    # What follows is a rollout from the changed window.
    window = ot.Window(after[None], lane.domain)
    lane.advance()
    torch.testing.assert_close(lane.state.frames[-1], frames(model, window, 1, 8)[0])


def test_before_a_push_nothing_was_pushed(start):
    lane, *_ = start()
    for _ in range(4):
        lane.advance()
    before = lane.at(3)
    lane.push(0, (1, 1), radius=2, strength=1)
    lane.advance()
    lane.back(3)
    assert lane.state is before
    assert not lane.state.pushed


class Bursting:
    """Doubles until it bursts."""

    patches, context, num_parameters = (4,), 2, 0

    def __init__(self, domain):
        self.domain = domain

    def __call__(self, window, patch, shift=0):
        frame = window.fields[:, -1] * 1e6
        return frame


def test_a_blow_up_stops_with_a_reason_and_going_back_goes_on(make_stage, make_candidate):
    candidate = Candidate("bursting", Bursting(make_candidate().model.domain))
    stage = make_stage(2, candidate)
    lane = Lane(candidate, stage.window(candidate, 0, 1), "4", memory=MUCH)
    while lane.advance():
        assert lane.state.step < 10
    assert "exceeds its bound" in lane.stopped
    last = lane.state.step
    assert not lane.advance()
    lane.back(last - 1)
    assert lane.stopped == ""
    assert lane.advance()


def test_a_schedule_that_ends_stops_and_another_one_goes_on(start):
    lane, *_ = start(schedule="explicit:4-8")
    assert lane.advance()
    assert lane.advance()
    assert not lane.advance()
    assert "has 2 steps" in lane.stopped
    lane.steer("8")
    assert lane.advance()


@pytest.mark.parametrize(
    "text", ["3", "4-16", "bursts:8:3:5", "nonsense", "8+shift:at:", "4x4x4x4"]
)
def test_schedules_that_can_not_be_followed_change_nothing(start, text):
    lane, *_ = start()
    with pytest.raises(OvertoneError):
        lane.steer(text)
    assert str(lane.schedule) == "8"
    assert lane.advance()


def test_the_objection_names_the_patches(start):
    with pytest.raises(PatchError, match="does not know patch 3; it knows 2, 4, 8"):
        start(schedule="3")


def test_a_bump_has_height_one_and_its_radius():
    domain = ot.Domain((32,), (1.0,), "periodic", ("a",))
    shape = bump(domain, (30,), 2.0)
    assert shape[30] == 1
    torch.testing.assert_close(shape[[28, 0]], torch.full((2,), -0.5).exp())


def test_estimates_are_those_of_a_rollout_also_after_a_change(start, make_stage):
    lane, model, window = start(schedule="4")
    assert lane.advance()
    assert lane.state.estimate is None
    candidate = lane.candidate
    lane = Lane(candidate, window, "4", memory=MUCH, estimate=True)
    rolled = ot.rollout(model, window, steps=6, schedule="explicit:4-4-4-8-8-8", estimate=True)
    for step in range(6):
        if step == 3:
            lane.steer("8")
        lane.advance()
        next(rolled)
        value, low, high = lane.state.estimate
        assert value == pytest.approx(rolled.estimate.value.item(), rel=1e-6)
        assert (low, high) == (None, None)  # nobody calibrated this model
    lane.back(4)
    lane.advance()
    assert lane.state.estimate[0] > 0


def test_a_controller_steers_a_lane_as_it_does_a_rollout(start):
    lane, model, window = start(schedule="adaptive:0.05")
    rolled = ot.rollout(model, window, steps=5, schedule="adaptive:0.05")
    for frame in rolled:
        assert lane.advance()
        assert lane.state.choice == rolled.choice
        torch.testing.assert_close(lane.state.frames[-1], frame[0], rtol=0, atol=0)
        assert lane.state.estimate[0] == pytest.approx(rolled.estimate.value.item(), rel=1e-6)


def test_a_controller_may_take_over_and_hand_back(start):
    lane, *_ = start(schedule="8")
    lane.advance()
    lane.steer("adaptive:0.05")
    assert lane.advance()
    lane.steer("4+shift")
    assert lane.advance()
    assert lane.state.step == 3
    assert lane.state.choice == ot.parse_schedule("4+shift")(2).on(lane.domain)
    with pytest.raises(PatchError):
        lane.steer("adaptive:-1")
