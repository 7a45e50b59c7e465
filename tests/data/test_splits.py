import pytest
from hypothesis import given
from hypothesis import strategies as st

import overtone as ot
from overtone.data.splits import split_counts


@given(num=st.integers(3, 5000), valid=st.floats(0.001, 0.4), test=st.floats(0.001, 0.4))
def test_counts_add_up_and_no_split_is_empty(num, valid, test):
    fractions = 1 - valid - test, valid, test
    counts = [*split_counts(num, fractions).values()]
    assert sum(counts) == num
    assert min(counts) >= 1
    for count, fraction in zip(counts, fractions, strict=True):
        assert abs(count - num * fraction) <= 2


def test_the_usual_split():
    assert split_counts(24, (0.8, 0.1, 0.1)) == {"train": 19, "valid": 3, "test": 2}
    assert split_counts(5, (1, 0, 0)) == {"train": 5, "valid": 0, "test": 0}
    with pytest.raises(ot.DataError, match="2 trajectories can't fill 3 splits"):
        split_counts(2, (0.8, 0.1, 0.1))
