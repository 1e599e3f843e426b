"""Tests of the clocks."""

from __future__ import annotations

import threading
import time

import pytest

from hopwatch.monitor.clock import Clock, SystemClock
from tests.support.clock import ManualClock


def test_the_system_clock_tells_microseconds_since_1970() -> None:
    """A moment lies between the two that the operating system tells around it."""
    before_us = time.time_ns() // 1_000
    now_us = SystemClock().now_us()
    assert before_us <= now_us <= time.time_ns() // 1_000


def test_the_monotonic_clock_never_goes_back() -> None:
    """Later is not less."""
    clock = SystemClock()
    first_s = clock.monotonic_s()
    assert clock.monotonic_s() >= first_s


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
def test_waiting_ends_at_once_when_the_event_is_set(clock: Clock) -> None:
    """A set event is told without waiting for the hour."""
    stop = threading.Event()
    stop.set()
    assert clock.wait(3_600, stop)


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
def test_waiting_in_vain_says_so(clock: Clock) -> None:
    """Without an event, or with one that nobody sets, the answer is no."""
    assert not clock.wait(0)
    assert not clock.wait(0, threading.Event())


def test_the_manual_clock_waits_by_moving_on() -> None:
    """After a wait of a minute it is a minute later, on both scales."""
    clock = ManualClock(1_000_000)
    clock.wait(60)
    assert (clock.now_us(), clock.monotonic_s()) == (61_000_000, 61.0)
