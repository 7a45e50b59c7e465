import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot

patch = st.integers(1, 64) | st.tuples(st.integers(1, 64), st.integers(1, 64))
patches = st.lists(patch, min_size=1, max_size=5).map(tuple)
seed = st.integers(0, 1000)
plain = st.one_of(
    st.builds(ot.Constant, patch),
    patches.filter(lambda p: len(p) > 1).map(lambda p: ot.Cycle(*p)),
    st.builds(ot.Dwell, patches, each=st.integers(1, 4)),
    st.builds(ot.Warmup, patches, then=patch),
    st.builds(ot.ReverseWarmup, patch, patches, steps=st.integers(5, 20)),
    st.builds(ot.Bursts, coarse=patch, fine=patch, every=st.integers(1, 6)),
    st.builds(ot.RandomChoice, patches, seed=seed),
    st.builds(ot.Explicit, patches),
)
offsets = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4)
shifted = st.one_of(
    st.builds(ot.Shifted, plain, kind=st.sampled_from(["stratified", "random"]), seed=seed),
    st.builds(ot.Shifted, plain, offsets=offsets),
)


def sizes(schedule, steps):
    return [schedule(step).patch for step in range(steps)]


@given(plain | shifted)
def test_string_form_reads_back(schedule):
    assert ot.parse_schedule(str(schedule)) == schedule


@given(plain | shifted)
def test_a_schedule_is_a_pure_function(schedule):
    last = 0 if "explicit" in str(schedule) else 7
    backwards = [schedule(step) for step in reversed(range(last + 1))]
    assert backwards[::-1] == [ot.parse_schedule(str(schedule))(step) for step in range(last + 1)]


def test_the_papers_families():
    assert sizes(ot.Cycle(4, 8, 16), 5) == [4, 8, 16, 4, 8]
    assert sizes(ot.Dwell((4, 8, 16), each=2), 8) == [4, 4, 8, 8, 16, 16, 4, 4]
    warmup = ot.Warmup((4, 4, 8, 8), then=16)
    assert sizes(warmup, 10) == [4, 4, 8, 8, 16, 16, 16, 16, 16, 16]
    assert sizes(warmup.reverse(10), 10) == [16, 16, 16, 16, 16, 16, 8, 8, 4, 4]
    bursts = ot.Bursts(coarse=16, fine=4, every=5)
    assert sizes(bursts, 10) == [16, 16, 16, 16, 4, 16, 16, 16, 16, 4]


def test_a_cycle_of_one_is_a_constant():
    assert sizes(ot.Cycle(16), 7) == sizes(ot.Constant(16), 7)
    assert ot.parse_schedule(str(ot.Cycle(16))) == ot.Constant(16)


def test_random_choice_is_uniform_and_differs_by_seed():
    drawn = sizes(ot.RandomChoice((4, 8, 16), seed=3), 3000)
    # Three standard deviations of a binomial with n = 3000, p = 1/3.
    assert all(abs(drawn.count(p) - 1000) < 78 for p in (4, 8, 16))
    assert drawn != sizes(ot.RandomChoice((4, 8, 16), seed=4), 3000)


def test_stratified_shifts_use_every_offset_once_before_any_repeats():
    schedule = ot.Shifted(ot.Cycle(4, 8, 16))
    for patch in (4, 8, 16):
        steps = [step for step in range(200) if schedule(step).patch == patch]
        for axis in range(3):
            shifts = [schedule(step).shift[axis] for step in steps]
            rounds = [shifts[i : i + patch] for i in range(0, len(shifts) - patch, patch)]
            assert all(sorted(offsets) == list(range(patch)) for offsets in rounds)
            assert rounds[0] != rounds[1]  # each round in an order of its own


def test_random_shifts_stay_within_the_patch_and_vary():
    schedule = ot.Shifted(ot.Constant((4, 8)), kind="random", seed=1)
    shifts = [schedule(step).shift for step in range(200)]
    assert {s[0] for s in shifts} == set(range(4))
    assert {s[1] for s in shifts} == set(range(8))


def test_explicit_offsets_come_in_turn():
    schedule = ot.Shifted(ot.Constant(16), offsets=[(3, 5), (0, 8)])
    assert [schedule(step).shift for step in range(3)] == [(3, 5), (0, 8), (3, 5)]
    assert str(schedule) == "16+shift:at:3x5-0x8"


def test_token_budget():
    domain = ot.Domain((128, 256), (1, 2), "periodic", ("u",))
    assert ot.Cycle(4, 8, 16).tokens(domain, 6) == 2 * (2048 + 512 + 128)
    assert ot.Constant((4, 8)).tokens(domain, 1) == 32 * 32
    assert ot.Shifted(ot.Constant(16)).tokens(domain, 40) == 40 * 128
    # Beside a wall a shifted grid needs one more token along the axis, unless the shift is 0.
    walls = ot.Domain((32, 32), (1, 1), ("wall", "periodic"), ("u",))
    schedule = ot.Shifted(ot.Constant(16), offsets=[(0, 3), (5, 3)])
    assert schedule.tokens(walls, 2) == 2 * 2 + 3 * 2


@pytest.mark.parametrize(
    "text",
    ["", "a", "4-", "4--8", "dwell", "warmup:4", "bursts:16:4", "16+shift:odd", "16+shiftx",
     "reverse:16:4-4-4:2", "0", "4-0", "16+shift:at:", "16+shift:random:x"],
)  # fmt: skip
def test_unreadable_strings_are_refused_with_the_text(text):
    with pytest.raises(ot.PatchError, match=f"schedule '{text}'".replace("+", r"\+")):
        ot.parse_schedule(text)


def test_explicit_schedule_ends():
    with pytest.raises(ot.PatchError, match="has 2 steps, step 2 was asked for"):
        ot.Explicit([4, 8])(2)


def test_offset_with_too_few_axes():
    domain = ot.Domain((16, 16), (1, 1), "periodic", ("u",))
    with pytest.raises(ot.PatchError, match="1 entries; the domain has 2 axes"):
        ot.Shifted(ot.Constant(4), offsets=[(1,)])(0).on(domain)
