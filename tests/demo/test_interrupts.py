"""Tests of Ctrl-C."""

from __future__ import annotations

import signal

from hopwatch.demo.interrupts import HANDLED, Interrupts


def test_ctrl_c_counts_and_the_others_count_twice() -> None:
    """While it is entered no signal ends the process; behind it the old handlers are back."""
    before = [signal.getsignal(number) for number in HANDLED]
    with Interrupts() as interrupts:
        assert interrupts.count == 0
        signal.raise_signal(signal.SIGINT)
        assert interrupts.count == 1
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.count == 3
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.count == 5
    assert [signal.getsignal(number) for number in HANDLED] == before
