"""The controller that looks now and then, on an emulator of known errors."""

import pytest
import torch

import overtone as ot
from overtone.models.calibration import Calibration
from overtone.rollout.controllers import Made, Task
from overtone.rollout.sparing import Sparing
from overtone.schedules import Choice

DOMAIN = ot.Domain(64, 1.0, "periodic", ("u",))
ERRORS = {4: 1.0, 8: 2.0, 16: 4.0}
TASK = Task(DOMAIN, 40, (4, 8, 16), ERRORS)


def patches_of(rule, difficulty, steps=40):
    """What is chosen where a step at patch p has the error `difficulty(step) · ERRORS[p]`."""
    ready, record = rule.on(TASK), []
    for step in range(steps):
        choice = ready(record)
        seen = [choice, ready.probe(choice)] if ready.looks(record) else [choice]
        tokens = sum(64 // own.patch for own in seen)
        record.append(Made(choice, difficulty(step) * ERRORS[choice.patch], tokens))
    return [made.choice.patch for made in record]


@pytest.mark.parametrize(
    ("difficulty", "cycle"),
    # Mean errors of the cycles are 7/3, 3 and 4 times the difficulty; the limit is 0.7.
    [(0.1, [16]), (0.174, [16]), (0.176, [8, 16]), (0.232, [8, 16]), (0.235, [4, 8, 16]),
     (9.0, [4, 8, 16])],
)  # fmt: skip
def test_the_coarsest_cycle_within_the_tolerance(difficulty, cycle):
    chosen = patches_of(Sparing(tolerance=1.0), lambda _: difficulty)
    assert chosen == [4, *(cycle[step % len(cycle)] for step in range(1, 40))]


def test_what_is_chosen_stays_while_it_keeps_the_tolerance_itself():
    """Coarser needs room to spare, which staying does not: 4 times 0.2 is between both limits."""
    rising = patches_of(Sparing(tolerance=1.0, every=5), lambda step: 0.1 if step < 5 else 0.2)
    assert set(rising[1:]) == {16}
    assert set(patches_of(Sparing(tolerance=1.0, every=5), lambda _: 0.2)[1:]) == {8, 16}


def test_without_a_tolerance_it_is_the_usual_error_of_the_cycle():
    """7/3; coarser from 0.7 times that on. A flow of usual difficulty has the whole cycle."""
    for difficulty in (0.4, 0.5, 0.6, 1.0):
        chosen = patches_of(Sparing(), lambda _, d=difficulty: d)
        assert chosen == patches_of(Sparing(tolerance=7 / 3), lambda _, d=difficulty: d)
    assert {*patches_of(Sparing(), lambda _: 1.0)} == {4, 8, 16}
    assert {*patches_of(Sparing(), lambda _: 0.4)[1:]} == {16}


@pytest.mark.parametrize(
    ("budget", "cycle"),
    # 64 cells: 16, 8 and 4 tokens, and a look at every tenth of 40 steps. Constant 16: 160, and
    # 4 looks at 16 moved by half, 4 each: 176. Cycle 8-16: 240, and looks that are all at 8, 4
    # each: 256. Cycle 4-8-16: 380, and looks at 4, 8, 16 and 4, which take 8, 4, 4 and 8: 404.
    [(176, [16]), (255, [16]), (256, [8, 16]), (403, [8, 16]), (404, [4, 8, 16])],
)
def test_no_level_that_the_budget_does_not_pay_for(budget, cycle):
    chosen = patches_of(Sparing(tolerance=1.0, budget=budget), lambda _: 9.0)
    assert chosen[0] == cycle[0]
    if budget in (176, 256, 404):  # nothing is left over for a finer level later
        assert chosen == [cycle[step % len(cycle)] for step in range(40)]


def test_what_easy_stretches_save_is_spent_on_hard_ones():
    """300 tokens do not pay for the whole cycle of 40 steps, but for that of the last 20."""
    rule = Sparing(tolerance=1.0, budget=300)
    chosen = patches_of(rule, lambda step: 0.1 if step < 20 else 9.0)
    assert {*chosen[:21]} == {8, 16}
    assert {*chosen[1:21]} == {16}
    assert chosen[21:] == [(4, 8, 16)[step % 3] for step in range(21, 40)]
    assert 4 not in patches_of(rule, lambda _: 9.0)[:21]


@pytest.mark.parametrize("budget", [192, 250, 300, 500, 2000])
@pytest.mark.parametrize("shift", ["", "+shift"])
def test_the_budget_is_kept(make_known, budget, shift):
    """32, 16, 8 and 4 tokens, and looks at steps 0, 10, … of 40: the cheapest takes 176."""
    model = make_known(burst=(15, 25), boost=4.0)
    text = f"sparing:0.01:budget={budget}{shift}"
    frames = ot.rollout(model, model.window(2), steps=40, schedule=text)
    list(frames)
    assert all(sum(made.tokens for made in record) <= budget for record in frames.records)


@pytest.mark.parametrize("every", [3, 5, 10])
def test_a_burst_of_difficulty_is_met_after_the_next_look(every):
    chosen = patches_of(Sparing(tolerance=1.0, every=every), lambda s: 9.0 if s >= 12 else 0.1)
    look = -(-12 // every) * every
    assert set(chosen[1 : look + 1]) == {16}
    assert chosen[look + 1 :] == [(4, 8, 16)[step % 3] for step in range(look + 1, 40)]


def test_only_looks_are_compared_and_the_budget_of_tokens_shows_it(make_known):
    """64 cells: 32, 16, 8 and 4 tokens; a look costs the next coarser patch's as well."""
    model = make_known()
    frames = ot.rollout(model, model.window(2), steps=12, schedule="sparing:1e-9:every=6")
    list(frames)
    patches = [[made.choice.patch[0] for made in record] for record in frames.records]
    assert patches == [[2, 4, 8, 16] * 3] * 2
    tokens = [made.tokens for made in frames.records[0]]
    assert tokens == [32 + 16, 16, 8, 4, 32, 16, 8 + 4, 4, 32, 16, 8, 4]


def test_between_looks_the_error_of_the_last_one_is_held(make_known):
    model = make_known()
    frames = ot.rollout(model, model.window(), steps=4, schedule="sparing:1e9:every=4")
    told = [frames.estimate for _ in frames]
    made = frames.records[0]
    assert [m.choice.patch[0] for m in made] == [2, 16, 16, 16]
    # Without a calibration nobody knows how errors of patches compare.
    assert [m.error for m in made] == pytest.approx([made[0].error] * 4)
    assert [e.local.item() for e in told] == pytest.approx([made[0].error] * 4)
    assert told[3].value.item() == pytest.approx(2 * told[0].value.item())
    torch.testing.assert_close(told[3].map, 2 * told[0].map)


def test_usual_errors_scale_what_is_held(make_known):
    model = make_known()
    model.calibration = Calibration(
        "", (64,), ("u",), {"2": 1.0, "4": 2.0, "8": 4.0, "16": 8.0}, {}
    )
    frames = ot.rollout(model, model.window(), steps=3, schedule="sparing:1e9:every=4")
    told = [frames.estimate for _ in frames]
    errors = [made.error for made in frames.records[0]]
    assert errors == pytest.approx([errors[0], 8 * errors[0], 8 * errors[0]])
    torch.testing.assert_close(told[2].map, (1 + 64 + 64) ** 0.5 * told[0].map)


def test_a_rollout_that_goes_on_chooses_as_it_would_have(make_known):
    model = make_known(burst=(8, 14), boost=5.0)
    rule = "sparing:0.02:every=5+shift"
    whole = ot.rollout(model, model.window(), steps=20, schedule=rule)
    frames = list(whole)
    begun = ot.rollout(model, model.window(), steps=9, schedule=rule)
    list(begun)
    rest = ot.rollout(model, begun.window, steps=11, schedule=rule, records=begun.records)
    torch.testing.assert_close(torch.stack([*rest]), torch.stack(frames[9:]))
    assert [m.choice for m in rest.records[0]] == [m.choice for m in whole.records[0]]


def test_each_sample_has_a_level_of_its_own_or_all_that_of_the_worst(make_known):
    model = make_known()
    easy, hard = model.window(1, seed=1), make_known(slope=1.5).window(1, seed=2)
    both = ot.Window(torch.cat([easy.fields, hard.fields]), model.domain)

    def chosen(window, text):
        frames = ot.rollout(model, window, steps=6, schedule=text)
        list(frames)
        return [[made.choice.patch for made in record] for record in frames.records]

    text = "sparing:0.02:every=5"
    alone = [chosen(window, text)[0] for window in (easy, hard)]
    assert alone[0] != alone[1]
    assert chosen(both, text) == alone
    assert chosen(both, f"{text}:batch") == [alone[1]] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sparing:0", "tolerance is 0"),
        ("sparing:0.1:every=0", "every is 0"),
        ("sparing:0.1:budget=0", "budget is 0; expected a whole number, at least 1"),
        ("sparing:0.1:4-8:8-16", "'8-16' can't be read; expected sparing:TOLERANCE"),
        ("sparing:x", "'x' can't be read; expected sparing:TOLERANCE"),
    ],
)
def test_wrong_settings(text, message):
    with pytest.raises(ot.PatchError, match=message):
        ot.parse_rule(text)


def test_what_can_not_be_steered_is_refused(make_known):
    model = make_known()
    with pytest.raises(ot.PatchError, match="every is 3 and there are 4 patches"):
        ot.rollout(model, model.window(), steps=1, schedule="sparing:0.1:every=3")
    with pytest.raises(ot.PatchError, match="a controller needs two or more"):
        ot.rollout(model, model.window(), steps=1, schedule="sparing:0.1:4")
    with pytest.raises(ot.PatchError, match="was asked without a rollout"):
        Sparing()([])
    with pytest.raises(ot.PatchError, match="no tolerance, and the model is not calibrated"):
        ot.rollout(model, model.window(), steps=1, schedule="sparing")
    with pytest.raises(
        ot.PatchError, match=r"budget is 175 tokens; 40 steps at patch 16.*take 176"
    ):
        ot.rollout(model, model.window(), steps=40, schedule="sparing:0.1:budget=175")


@pytest.mark.parametrize(
    "text",
    [
        "sparing",
        "sparing:0.02",
        "sparing:0.02:4-8+shift",
        "sparing:4x4-8x8",
        "sparing:budget=4000+shift",
        "sparing:0.5:every=7:batch+shift:random:3",
        "sparing:1e-05:4-8:budget=900:every=5:batch",
    ],
)
def test_the_string_form_reads_back(text):
    rule = ot.parse_rule(text)
    assert str(rule) == text
    assert ot.parse_rule(str(rule)) == rule
    if "4x4" not in text:
        assert isinstance(rule.on(TASK)([]), Choice)
