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
        record.append(Made(choice, difficulty(step) * ERRORS[choice.patch], 1))
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
        ("sparing", "there is no tolerance; expected a form such as sparing:0.02"),
        ("sparing:0", "tolerance is 0"),
        ("sparing:0.1:every=0", "every is 0"),
        ("sparing:0.1:budget=3", "'budget=3' can't be read"),
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


@pytest.mark.parametrize(
    "text",
    ["sparing:0.02", "sparing:0.02:4-8+shift", "sparing:0.5:every=7:batch+shift:random:3"],
)
def test_the_string_form_reads_back(text):
    rule = ot.parse_rule(text)
    assert str(rule) == text
    assert ot.parse_rule(str(rule)) == rule
    assert rule.on(TASK)([]).patch == 4 or text.endswith(":3")
    assert isinstance(rule.on(TASK)([]), Choice)
