"""Splitting patches over stages, and which cells each stage reads and writes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.errors import PatchError
from overtone.models.tokenizers.convolution import base_kernels, footprint, sources, split


def test_split_is_the_papers():
    expected = {4: (2, 2), 8: (4, 2), 16: (4, 4), 32: (8, 4), 64: (8, 8)}
    assert {patch: split(patch, 2) for patch in expected} == expected
    assert split(16, 1) == (16,)
    assert split(16, 3) == (4, 2, 2)
    assert split(5, 2) == (5, 1)


@given(patch=st.integers(1, 200), stages=st.integers(1, 4))
def test_split_multiplies_to_the_patch(patch, stages):
    factors = split(patch, stages)
    assert math.prod(factors) == patch
    assert len(factors) == stages


def test_base_kernels_cover_every_patch():
    assert base_kernels((4, 8, 16), 2) == (4, 4)
    assert base_kernels((3, 4, 5), 2) == (5, 2)


@given(kernel=st.integers(1, 9), stride=st.integers(1, 9), lo=st.integers(-9, 9),
       length=st.integers(1, 9))  # fmt: skip
def test_sources_are_exactly_the_tokens_whose_footprint_touches(kernel, stride, lo, length):
    stride = min(stride, kernel)
    cells = set(range(lo, lo + length))
    touching = [j for j in range(-40, 60)
                if cells & set(range(*footprint((j, j + 1), kernel, stride)))]  # fmt: skip
    assert (touching[0], touching[-1] + 1) == sources((lo, lo + length), kernel, stride)


def test_nothing_to_split():
    with pytest.raises(PatchError, match="can't split patch 0"):
        split(0, 2)
