import pytest

import overtone as ot
from overtone.evaluate import Candidate
from overtone.evaluate.choose import choose_schedules, used_patches


def choose(candidate, wanted, steps=6):
    notes = []
    domain = candidate.model.domain
    chosen = choose_schedules(candidate, wanted, domain, steps, notes.append)
    return [str(schedule) for schedule in chosen], notes


def test_the_usual_ones(roller, steppers):
    assert choose(roller, None) == (["4", "8", "4-8", "4-8+shift"], [])
    fixed = steppers["Roller"]()
    fixed.patches = ((8, 16),)
    assert choose(Candidate("fixed", fixed), None) == (["8x16"], [])
    fixed.patches = (8, (4, 8), 4)
    assert choose(Candidate("mixed", fixed), None)[0][:4] == ["4", "4x8", "8", "4-4x8-8"]


def test_unknown_patches_are_left_out_with_a_note(roller):
    chosen, notes = choose(roller, ["8", "4-8-16", ot.Constant(4), "8"])
    assert chosen == ["8", "4"]
    assert notes == ["schedule 4-8-16 is left out for model 'roller', which does not know patch 16"]


def test_only_the_steps_that_are_made_count(roller):
    assert choose(roller, ["warmup:4-4-8:16"], steps=3)[0] == ["warmup:4-4-8:16"]
    assert used_patches(ot.parse_schedule("warmup:4-4-8:16"), 3) == (4, 8)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["16", "4-16"], "knows patch 4, 8 and can follow none of the schedules 16, 4-16"),
        (["four"], "can't be read"),
        (["explicit:4-8"], "has 2 steps, step 2 was asked for"),
        ([], "can follow none"),
    ],
)
def test_mistakes(roller, wanted, message):
    with pytest.raises(ot.PatchError, match=message):
        choose(roller, wanted)


def test_a_patch_larger_than_the_grid(steppers):
    model = steppers["Roller"]()
    model.patches = (4, 24)
    with pytest.raises(ot.PatchError, match="patch 24 does not fit axis 0 of 16 cells"):
        choose(Candidate("big", model), ["24"])
