"""Sums over short axes only."""

import math

import pytest

from overtone.programs.rewriting import SHORT, split


@pytest.mark.parametrize("length", [1, 7, 64, 65, 96, 4096, 32768, 64 * 61, 12289])
def test_a_long_axis_is_split_into_short_ones(length):
    parts = split(length)
    assert math.prod(parts) == length
    assert all(part <= SHORT for part in parts[1:])
    assert parts[0] <= SHORT or length == 12289  # a prime


def test_a_free_axis_is_left_alone():
    assert split("batch") == ["batch"]
