"""Who decides: rules and their string forms, records, steps that are redone, samples in groups."""

import math

import pytest
import torch

import overtone as ot
from overtone.rollout.controllers import Controller, Made, Task, require_schedule, worst
from overtone.schedules import Choice


class Scripted(Controller):
    """Follows a list of attempts for each step; redoes until the last of them."""

    def __init__(self, script, per_sample=False):
        self.script, self.per_sample = script, per_sample

    def on(self, task):
        return self

    def __call__(self, record):
        return Choice(self.script[len(record)][0])

    def probe(self, choice):
        return Choice(16)

    def redo(self, record, attempt):
        tries = self.script[len(record)]
        done = len(attempt.refused) + 1
        return Choice(tries[done]) if done < len(tries) else None


class Steps:
    """A stepper of four patches that adds the patch to everything, and notes its calls."""

    context, patches = 1, (2, 4, 8, 16)

    def __init__(self):
        self.calls = []

    def __call__(self, window, patch, shift=0):
        self.calls.append((patch[0], len(window.fields)))
        return window.fields[:, -1] + patch[0]


@pytest.fixture
def window(make_domain):
    fields = torch.arange(3.0).reshape(3, 1, 1, 1, 1) + torch.randn(1, 1, 1, 32, 32)
    return ot.Window(fields, make_domain((32, 32), fields=("a",)))


def test_frames_are_those_of_the_last_attempt(window):
    model = Steps()
    frames = ot.rollout(model, window, steps=2, schedule=Scripted([[8, 4, 2], [4]]))
    first, second = list(frames)
    assert torch.equal(first, window.fields[:, -1] + 2)
    assert torch.equal(second, first + 4)
    record = frames.records[0]
    assert [made.choice.patch for made in record] == [(2, 2), (4, 4)]
    assert [choice.patch for choice, _ in record[0].refused] == [(8, 8), (4, 4)]
    # Nothing is computed twice: 8, its comparison with 16, then 4 and 2, compared with the same.
    assert model.calls == [(8, 3), (16, 3), (4, 3), (2, 3), (4, 3), (16, 3)]
    assert record[0].tokens == 16 + 4 + 64 + 256
    assert record[1].tokens == 64 + 4
    assert frames.tokens == 16 + 4 + 64 + 256 + 64 + 4


def test_samples_are_grouped_by_what_is_chosen_for_them(window):
    class Own(Scripted):
        def __call__(self, record):
            first = record[0].error if record else None
            return Choice(16 if first is None else 4 if first < 1.5 * self.least else 8)

        def redo(self, record, attempt):
            return None

        least = 0.0

    model = Steps()
    # The distance of 16 and 16 is nothing; let the probe differ by sample.
    own = Own([], per_sample=True)
    own.probe = lambda choice: Choice(2)
    scaled = ot.Window(window.fields * torch.tensor([1.0, 3.0, 1.0]).reshape(3, 1, 1, 1, 1),
                       window.domain)  # fmt: skip
    frames = ot.rollout(model, scaled, steps=1, schedule=own)
    next(frames)
    errors = [record[0].error for record in frames.records]
    assert errors[0] == pytest.approx(errors[2])
    assert errors[1] == pytest.approx(errors[0] / 3)
    own.least = errors[1]
    frames, model.calls = ot.rollout(model, scaled, steps=2, schedule=own), []
    second = [*frames][1]
    assert [choice.patch for choice in frames.choices] == [(8, 8), (4, 4), (8, 8)]
    assert torch.equal(second, scaled.fields[:, -1] + 16 + torch.tensor([8., 4., 8.])
                       .reshape(3, 1, 1, 1))  # fmt: skip
    assert model.calls == [(16, 3), (2, 3), (8, 2), (4, 1), (2, 3)]


def test_a_batch_is_steered_by_its_worst_sample(window):
    seen = []

    class Watching(Scripted):
        def redo(self, record, attempt):
            seen.append(attempt.error)
            return None

    frames = ot.rollout(Steps(), window, steps=1, schedule=Watching([[4]]))
    next(frames)
    own = [record[0].error for record in frames.records]
    assert seen == [max(own)]


def test_a_rollout_that_goes_on_is_the_one_that_was_not_interrupted(known):
    start = ot.Window(torch.randn(2, 1, 1, 64, dtype=torch.float64), known.domain)
    for rule in (ot.Adaptive(tolerance=0.3, shift=True), ot.Adaptive(tolerance=0.3,
                 per_sample=False, budget=400), "2-4-8+shift"):  # fmt: skip
        whole = ot.rollout(known, start, steps=12, schedule=rule, estimate=True)
        frames = list(whole)
        first = ot.rollout(known, start, steps=5, schedule=rule, estimate=True)
        list(first)
        if isinstance(rule, ot.Adaptive) and rule.budget:
            # What is left is known from the record, but it was spent for fewer steps.
            assert first.tokens <= 400
            continue
        second = ot.rollout(known, first.window, steps=7, schedule=rule, estimate=True,
                            records=first.records)  # fmt: skip
        later = list(second)
        assert all(torch.equal(a, b) for a, b in zip(frames[5:], later, strict=True))
        assert second.records == whole.records
        assert torch.equal(second.estimate.value, whole.estimate.value)
        assert torch.equal(second.estimate.fields, whole.estimate.fields)


def test_records_that_do_not_fit(known):
    start = ot.Window(torch.randn(2, 1, 1, 64, dtype=torch.float64), known.domain)
    plain = ot.rollout(known, start, steps=2, schedule="4")
    list(plain)
    with pytest.raises(ot.OvertoneError, match="records are of 1 samples"):
        ot.rollout(known, start, steps=1, schedule="4", records=plain.records[:1])
    with pytest.raises(ot.OvertoneError, match="a rollout without estimates"):
        ot.rollout(known, start, steps=1, schedule="4", records=plain.records, estimate=True)
    with pytest.raises(ot.OvertoneError, match="can't be compared with a second one"):
        ot.rollout(known, start, steps=1, schedule="4", records=plain.records, estimate="8")


def test_a_dropped_sample_is_asked_for_no_more(known):
    class Losing(type(known)):
        def __call__(self, window, patch, shift=0):
            frame = super().__call__(window, patch, shift)
            frame[window.fields[:, -1].mean(dim=(1, 2)) > 3] = torch.nan
            return frame

    model = Losing()
    fields = torch.randn(3, 1, 1, 64, dtype=torch.float64)
    fields[1] += 10
    start = ot.Window(fields, model.domain)
    for rule, estimate in (("adaptive:0.5", False), ("4+shift", True), ("4", "8")):
        frames = ot.rollout(model, start, steps=4, schedule=rule, estimate=estimate,
                            on_blow_up="drop")  # fmt: skip
        model.calls = []
        for frame in frames:
            assert frame[1].isnan().all()
            assert frame[[0, 2]].isfinite().all()
            assert frames.estimate.value.isnan().tolist() == [False, True, False]
            assert frames.estimate.map[1].isnan().all()
        held = ot.rollout(model, start, steps=2, schedule=rule, estimate=estimate,
                          on_blow_up="hold")  # fmt: skip
        list(held)
        assert held.estimate.value.isnan().tolist() == [False, True, False]
    assert {calls for _, calls in model.calls[-4:]} == {3}


def test_the_largest_errors_of_samples_that_share_their_choices():
    a = Made(Choice(4), 0.1, 5, ((Choice(8), 0.5),))
    b = Made(Choice(4), 0.3, 5, ((Choice(8), 0.2),))
    assert worst([a, b]) == Made(Choice(4), 0.3, 5, ((Choice(8), 0.5),))
    with pytest.raises(ot.PatchError, match="differ in their choices"):
        worst([a, Made(Choice(8))])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("adaptive:0.02", ot.Adaptive(tolerance=0.02)),
        ("adaptive:0.02:4-8x16", ot.Adaptive((4, (8, 16)), tolerance=0.02)),
        ("adaptive:1e-05:4-8:budget=99:batch+shift:random:3",
         ot.Adaptive((4, 8), tolerance=1e-5, budget=99, per_sample=False,
                     shift=ot.Shifted(ot.Constant(1), kind="random", seed=3))),
        ("adaptive:0.5+shift", ot.Adaptive(tolerance=0.5, shift=True)),
        ("adaptive:0.5+shift:at:3x5", ot.Adaptive(
            tolerance=0.5, shift=ot.Shifted(ot.Constant(1), offsets=[(3, 5)]))),
        ("4-8-16+shift", ot.Shifted(ot.Cycle(4, 8, 16))),
    ],
)  # fmt: skip
def test_string_forms_read_back(text, rule):
    assert ot.parse_rule(text) == rule
    assert str(rule) == text
    assert ot.parse_rule(rule) is rule


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("adaptive", "there is no tolerance"),
        ("adaptive:x", "'x' can't be read"),
        ("adaptive:0", "tolerance is 0.0; expected a number above 0"),
        ("adaptive:nan", "tolerance is nan"),
        ("adaptive:inf", "tolerance is inf"),
        ("adaptive:0.1:8", "a controller needs two or more to choose from"),
        ("adaptive:0.1:4-8:x", "'x' can't be read"),
        ("adaptive:0.1:4-8:budget=x", "can't be read"),
        ("adaptive:0.1:budget=0", "budget is 0; expected a whole number, at least 1"),
        ("adaptive:0.1+shift:odd", "kind of shift is 'odd'"),
        ("adaptive:0.1+shiftt", "shiftt' can't be read; expected"),
        ("adaptive:0.1+shift:" + "9" * 200_000, "expected at most"),
        ("adaptve:0.1", "can't be read"),
    ],
)
def test_unreadable_strings_are_refused_with_the_text(text, said):
    with pytest.raises(ot.PatchError, match=said) as error:
        ot.parse_rule(text)
    assert f"schedule '{text[:9]}" in str(error.value)
    assert len(str(error.value)) < 600


def test_where_a_schedule_is_needed_a_controller_is_refused():
    with pytest.raises(ot.PatchError, match="'adaptive:0.02' decides as the rollout goes on; this"):
        require_schedule(ot.parse_rule("adaptive:0.02"), "this")
    with pytest.raises(ot.PatchError, match="can't be read"):
        ot.parse_schedule("adaptive:0.02")
    assert require_schedule(ot.Constant(4), "this") == ot.Constant(4)


def test_a_task_counts_tokens(make_domain):
    task = Task(make_domain((32, 48), ("wall", "periodic")), 3, (4, 8))
    assert task.tokens(8) == 4 * 6
    assert task.tokens(8, (3, 3)) == 5 * 6
    assert math.isnan(Made(Choice(4)).error)
