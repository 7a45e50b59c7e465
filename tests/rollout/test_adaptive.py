"""The controller on an emulator of known errors."""

from itertools import pairwise

import pytest
import torch

import overtone as ot
from overtone.rollout.controllers import Made, Task
from overtone.schedules import Choice


def fly(model, window, steps, rule):
    """Patches, true errors of every step, and the rollout."""
    frames = ot.rollout(model, window, steps=steps, schedule=rule)
    before, patches, errors = window.fields[:, -1], [], []
    for frame in frames:
        patches.append([choice.patch[0] for choice in frames.choices])
        true = model.advance(before)
        scale = true.var(dim=-1)[:, 0]
        errors.append(((frame - true).square().mean(dim=-1)[:, 0] / scale).sqrt())
        before = frame
    return patches, torch.stack(errors), frames


@pytest.mark.parametrize("tolerance", [0.03, 0.01, 0.005])
def test_the_tolerance_is_kept(make_known, tolerance):
    """Errors here fall with the patch, so that a step and a coarser one bound the step's error."""
    model = make_known(burst=(8, 14), boost=3.0)
    patches, errors, frames = fly(model, model.window(3), 24, ot.Adaptive(tolerance=tolerance))
    finest = [p == 2 for row in patches for p in row]
    kept = (errors.flatten() <= tolerance).tolist()
    assert all(k or f for k, f in zip(kept, finest, strict=True))
    assert sum(kept) > 0.9 * len(kept)
    estimated = torch.tensor([[made.error for made in record] for record in frames.records]).T
    # The comparison never misses by much what there is to see.
    assert bool((estimated >= 0.7 * errors).all())


def test_a_finer_tolerance_costs_more(make_known):
    model = make_known()
    spent = [fly(model, model.window(2), 10, ot.Adaptive(tolerance=t))[2].tokens
             for t in (1.0, 0.008, 0.002)]  # fmt: skip
    assert spent == sorted(spent)
    assert spent[0] < spent[-1] / 2


@pytest.mark.parametrize("tolerance", [0.02, 0.01, 0.007, 0.004, 0.001])
@pytest.mark.parametrize("redoes", [True, False])
def test_constant_difficulty_gives_a_constant_patch(make_known, tolerance, redoes):
    """Pure advection: the spectrum stays, and with it every patch's error."""
    model = make_known()
    rule = ot.Adaptive(tolerance=tolerance, redoes=redoes)
    patches, _, frames = fly(model, model.window(), 60, rule)
    later = [row[0] for row in patches[15:]]
    assert len(set(later)) == 1
    # And it is the coarsest that keeps the tolerance, but for the room that is left before a
    # coarser one is tried.
    record = frames.records[0]
    assert record[-1].error <= tolerance or later[0] == 2
    assert sum(len(made.refused) for made in record[15:]) == 0


@pytest.mark.parametrize("redoes", [True, False])
def test_a_burst_of_difficulty_is_met_within_two_steps(make_known, redoes):
    model = make_known(burst=(20, 30), boost=6.0)
    rule = ot.Adaptive(tolerance=0.025, redoes=redoes)
    patches, errors, _ = fly(model, model.window(), 60, rule)
    calm, hard = patches[19][0], patches[25][0]
    assert hard < calm
    assert all(row[0] <= hard for row in patches[22:30])
    if redoes:  # not even the first step is made coarsely
        assert patches[20][0] <= hard
        assert bool((errors[20:30] <= 0.025).all())
    # Afterwards it goes back to what was enough before, one patch at a time.
    assert patches[-1][0] == calm
    sizes = [row[0] for row in patches[30:]]
    assert all(later <= 2 * earlier for earlier, later in pairwise(sizes))


def test_each_sample_has_patches_of_its_own_or_all_those_of_the_worst(make_known):
    model = make_known()
    easy, hard = model.window(1, seed=1), make_known(slope=1.5).window(1, seed=2)
    both = ot.Window(torch.cat([easy.fields, hard.fields]), model.domain)
    own, _, _ = fly(model, both, 8, ot.Adaptive(tolerance=0.008))
    alone = [fly(model, w, 8, ot.Adaptive(tolerance=0.008))[0] for w in (easy, hard)]
    assert own == [[a[0], b[0]] for a, b in zip(*alone, strict=True)]
    assert own[-1][0] > own[-1][1]
    together, _, _ = fly(model, both, 8, ot.Adaptive(tolerance=0.008, per_sample=False))
    assert together == [[b[0], b[0]] for b in alone[1]]


@pytest.mark.parametrize("budget", [240, 300, 500, 2000])
def test_the_budget_is_kept(make_known, budget):
    """30 steps at patch 16 cost 4 + 4 tokens each, with their comparison."""
    model = make_known(burst=(5, 10), boost=4.0)
    rule = ot.Adaptive(tolerance=0.005, budget=budget)
    patches, _, frames = fly(model, model.window(), 30, rule)
    assert frames.tokens <= budget
    if budget == 240:
        assert {row[0] for row in patches} == {16}
    if budget == 2000:
        free, _, _ = fly(model, model.window(), 30, ot.Adaptive(tolerance=0.005))
        assert patches == free


def test_a_budget_below_the_cheapest_rollout_is_refused(make_known):
    model = make_known()
    with pytest.raises(ot.PatchError, match=r"budget is 239 tokens; 30 steps at patch 16.*240"):
        ot.rollout(model, model.window(), steps=30, schedule="adaptive:0.1:budget=239")


def test_it_needs_several_patches(make_model, make_window):
    model = make_model(patches=(8,))
    with pytest.raises(ot.PatchError, match="patches are 8; a controller needs two or more"):
        ot.rollout(model, make_window(model.domain), steps=1, schedule="adaptive:0.1")


def test_models_without_patches_are_refused(make_domain, make_window):
    domain = make_domain()
    model = ot.baseline("persistence", domain=domain, context=1)
    with pytest.raises(ot.OvertoneError, match="has no patches"):
        ot.rollout(model, make_window(domain), steps=1, schedule="adaptive:0.1")


def test_patches_that_the_model_does_not_know_are_refused(make_model, make_window):
    model = make_model(patches=(4, 8))
    with pytest.raises(ot.PatchError, match="patch 16 was not trained for"):
        next(ot.rollout(model, make_window(model.domain), steps=1, schedule="adaptive:0.1:8-16"))


def test_shifts_use_every_offset_of_a_patch_before_any_repeats(known):
    rule = ot.Adaptive(tolerance=1e9, shift=True)  # always the coarsest
    frames = ot.rollout(known, known.window(), steps=40, schedule=rule)
    list(frames)
    shifts = [made.choice.shift[0] for made in frames.records[0]]
    assert sorted(shifts[:16]) == sorted(shifts[16:32]) == list(range(16))
    expected = [ot.parse_schedule("16+shift")(step).shift[0] for step in range(40)]
    assert shifts == expected


TASK = Task(ot.Domain(64, 1.0, "periodic", ("u",)), 100, (2, 4, 8, 16))


def made(patch, error, *refused):
    return Made(Choice(patch), error, 1, tuple((Choice(p), e) for p, e in refused))


def test_errors_between_the_thresholds_change_nothing():
    """Tolerance 1, coarsen 0.7, errors that double from patch to patch: 0.35 is the border."""
    rule = ot.Adaptive(tolerance=1.0).on(TASK)
    for error, patch in ((0.34, 8), (0.36, 4), (0.99, 4)):
        assert rule([made(4, error)] * 2).patch == patch
        assert rule([made(4, error)]).patch == 4  # not before two in a row
    assert rule([made(8, 0.1), made(4, 0.1)]).patch == 4
    assert rule([made(4, 0.34), made(4, 0.36)]).patch == 4
    assert rule([made(16, 0.001)] * 2).patch == 16


def test_a_step_is_redone_at_the_patch_that_should_do():
    rule = ot.Adaptive(tolerance=1.0).on(TASK)
    assert rule.redo([], made(16, 1.0)) is None
    assert rule.redo([], made(16, 1.7)).patch == 8  # 0.85 is below 0.9
    assert rule.redo([], made(16, 1.9)).patch == 4
    assert rule.redo([], made(16, float("inf"))).patch == 2
    assert rule.redo([], made(2, 9.0)) is None
    assert ot.Adaptive(tolerance=1.0, redoes=False).on(TASK).redo([], made(16, 9.0)) is None
    # Without that, the next step is finer.
    assert ot.Adaptive(tolerance=1.0, redoes=False).on(TASK)([made(16, 1.7)]).patch == 8


def test_what_was_seen_takes_the_place_of_what_is_usual():
    rule = ot.Adaptive(tolerance=1.0).on(TASK)
    calm = [made(4, 0.2)] * 2
    assert rule(calm).patch == 8
    # Once 8 was refused with ten times the error of 4, it is not tried again at that error …
    assert rule([made(4, 0.2, (8, 2.0)), *calm]).patch == 4
    # … but at a smaller one.
    assert rule([made(4, 0.2, (8, 2.0)), made(4, 0.05), made(4, 0.05)]).patch == 8


def test_usual_errors_come_from_the_calibration():
    """8 is as good as 4 here: below 0.7 it is tried."""
    task = Task(TASK.domain, 100, TASK.patches, {2: 0.5, 4: 1.0, 8: 1.0, 16: 8.0})
    rule = ot.Adaptive(tolerance=1.0).on(task)
    assert rule([made(4, 0.69)] * 2).patch == 8
    assert rule([made(8, 0.69)] * 2).patch == 8
    assert rule([made(8, 0.08)] * 2).patch == 16


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tolerance": 0}, "tolerance is 0"),
        ({"tolerance": "0.1"}, "tolerance is '0.1'"),
        ({"tolerance": True}, "tolerance is True"),
        ({"safety": 1.5}, "safety is 1.5; expected a number above 0, at most 1"),
        ({"coarsen": -1}, "coarsen is -1"),
        ({"patience": 0}, "patience is 0"),
        ({"budget": 1.5}, "budget is 1.5"),
        ({"patches": (4,)}, "patches are 4; a controller needs two"),
        ({"patches": (4, 4)}, "patches are 4; a controller needs two"),
        ({"patches": ()}, "patches is"),
    ],
)
def test_wrong_settings(wrong, said):
    with pytest.raises(ot.PatchError, match=said):
        ot.Adaptive(**wrong)


def test_it_can_not_be_asked_without_a_rollout():
    with pytest.raises(ot.PatchError, match="call `on` with a Task first"):
        ot.Adaptive(tolerance=0.1)([])


def test_what_was_refused_is_part_of_the_budget():
    """A step costs 8 tokens at patch 16, with its comparison, and 12 at 8; 99 more are to come."""
    attempt = Made(Choice(16), 1.0, 8)  # half of that at patch 8, as errors grow with the patch
    enough = 8 + 12 + 99 * 8
    for budget, again in ((enough, Choice(8)), (enough - 1, None)):
        rule = ot.Adaptive(tolerance=0.6, budget=budget).on(TASK)
        assert rule.redo([], attempt) == again
