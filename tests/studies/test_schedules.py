"""Schedules that studies compare."""

from overtone.schedules import parse_schedule
from studies.schedules import MAIN, PAIRS, PERMUTATIONS, SCHEDULES, STILL


def test_all_orders_of_the_cycle_are_there_and_cost_about_the_same():
    assert len({tuple(sorted(text.split("-"))) for text in PERMUTATIONS}) == 1
    assert len(set(PERMUTATIONS)) == 6
    assert set(PERMUTATIONS) <= set(SCHEDULES)


def test_every_still_schedule_has_a_shifted_one():
    assert set(MAIN) == {*STILL, *(f"{text}+shift" for text in STILL)}
    assert set(PAIRS) <= set(MAIN)


def test_the_papers_bursts_and_warm_ups_are_what_it_lists():
    def patches(text):
        schedule = parse_schedule(text)
        return [schedule(step).patch for step in range(10)]

    assert patches("dwell:4-8-16:2") == [4, 4, 8, 8, 16, 16, 4, 4, 8, 8]
    assert patches("warmup:4-4-8-8:16") == [4, 4, 8, 8, *[16] * 6]
    assert patches("bursts:16:4:5") == [16, 16, 16, 16, 4, 16, 16, 16, 16, 4]
    assert {"dwell:4-8-16:2", "warmup:4-4-8-8:16", "bursts:16:4:5"} <= set(SCHEDULES)
