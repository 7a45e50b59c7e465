"""Ctrl-C once is a request, twice is an order."""

import os
import signal

import pytest

from overtone.train.interrupt import Interrupt, ignore_interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_remembered_and_the_second_acts(number):
    heard = []
    before = signal.signal(number, lambda *_: heard.append(number))
    try:
        with Interrupt() as interrupt:
            os.kill(os.getpid(), number)
            assert interrupt.requested
            assert not heard
            os.kill(os.getpid(), number)
            assert heard == [number]
        os.kill(os.getpid(), number)
        assert len(heard) == 2
    finally:
        signal.signal(number, before)


def test_reading_processes_leave_ctrl_c_to_the_run():
    before = signal.getsignal(signal.SIGINT)
    try:
        ignore_interrupts(0)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
