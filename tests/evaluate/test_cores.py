"""Pieces of work side by side."""

import threading

import pytest
import torch

from overtone.evaluate.cores import one_core, spread_over_cores


def test_one_core_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(RuntimeError), one_core():
            assert torch.get_num_threads() == 1
            raise RuntimeError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_results_are_in_order_and_pieces_do_run_at_once():
    meeting = threading.Barrier(2, timeout=30)

    def work(item):
        if item < 2:
            meeting.wait()  # only two at once get past this
        return item, torch.get_num_threads()

    found = spread_over_cores(work, range(5), workers=2, stop=lambda: None)
    assert found == [(item, 1) for item in range(5)]


def test_a_failure_stops_the_others_and_is_told():
    stopped = threading.Event()

    def work(item):
        if item == 0:
            raise ValueError("bad")
        stopped.wait(30)
        return item

    with pytest.raises(ValueError, match="bad"):
        spread_over_cores(work, range(50), workers=2, stop=stopped.set)
    assert stopped.is_set()
