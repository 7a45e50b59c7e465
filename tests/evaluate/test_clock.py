"""Which seconds of a model call are counted."""

import itertools

import pytest
import torch

from overtone.evaluate import clock
from overtone.schedules import Choice


@pytest.mark.parametrize(("threads", "expected"), [(1, 2), (2, 30)])
def test_on_one_core_what_others_do_does_not_count(
    make_domain, make_window, monkeypatch, threads, expected
):
    spent, passed = itertools.count(step=2), itertools.count(step=30)
    monkeypatch.setattr(clock.time, "thread_time", lambda: next(spent))
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(passed))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    window = make_window(make_domain())
    frame, seconds = clock.timed_call(lambda window, *_: window.fields[:, -1], window, Choice(4))
    assert torch.equal(frame, window.fields[:, -1])
    assert seconds == expected
