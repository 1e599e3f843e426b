"""Tests of how a command is told to stop."""

from __future__ import annotations

import logging
import os
import signal
from threading import Event

import pytest

from hopwatch.cli import signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sets_the_wish_and_handlers_come_back(number: signal.Signals) -> None:
    """For as long as the block lasts."""
    # Whoever started the tests may have them ignore it.
    before = signal.signal(number, signal.default_int_handler)
    try:
        stop = Event()
        with signals.stop_on_signals(stop):
            os.kill(os.getpid(), number)
            assert stop.wait(5)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_hangup_that_is_ignored_stays_so() -> None:
    """A command under ``nohup`` outlives its terminal."""
    stop, before = Event(), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.stop_on_signals(stop):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_in_the_midst_of_another_waits_for_nothing() -> None:
    """A signal within the handler of another leaves the held lock of the event alone."""

    class Interrupted(Event):
        calls = 0

        def set(self) -> None:
            self.calls += 1
            assert self.calls == 1, "the second would wait for the lock of the first"
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            super().set()

    stop = Interrupted()
    with signals.stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(5)
    assert stop.calls == 1


def interrupt(log: logging.Logger) -> None:
    """Send this process an interrupt, and log before and after it."""
    log.error("before")
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    finally:
        log.critical("while it ends")


def test_an_interrupt_is_raised_and_nothing_is_logged_while_the_block_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Spark's gateway logs a traceback of the call that is interrupted; afterwards all is as before."""
    log = logging.getLogger(__name__)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), signals.interrupt_quietly():
            interrupt(log)
        log.error("afterwards")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [record.message for record in caplog.records] == ["before", "afterwards"]


class Terminal:
    """Standard input of a command, on a terminal or not."""

    def __init__(self, *, is_terminal: bool) -> None:
        """Say which."""
        self.isatty = lambda: is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_hangup_ends_a_monitor_on_a_terminal_and_lets_another_one_reload(
    is_terminal: bool,  # noqa: FBT001 - a column
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A terminal sends it as it closes; to a service it is sent by whoever has edited the file."""
    monkeypatch.setattr("sys.stdin", Terminal(is_terminal=is_terminal))
    calls, stop, before = [], Event(), signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        signals.call_on_hangup(lambda: calls.append(1), stop)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert (stop.is_set(), len(calls)) == ((True, 0) if is_terminal else (False, 2))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signals.call_on_hangup(lambda: calls.append(1), stop)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
