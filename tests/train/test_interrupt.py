"""Ctrl-C once is a request, twice is an order."""

import os
import signal

import pytest

from overtone.train.interrupt import GRACE, Interrupt, ignore_interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
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


def test_a_hangup_that_is_ignored_stays_ignored():
    """As `nohup` has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interrupt.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_reading_processes_leave_interrupts_to_the_run():
    numbers = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        ignore_interrupts(0)
        for number in numbers:
            os.kill(os.getpid(), number)
        assert 0 < signal.alarm(0) <= GRACE
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
