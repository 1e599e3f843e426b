"""SIGINT, SIGTERM and SIGHUP handling for long-running commands."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event


def set_on_signal(number: signal.Signals, stop: Event) -> None:
    """Set ``stop`` on a signal.

    A second signal may interrupt the handler of the first inside :meth:`Event.set`, and would wait for its lock
    forever: so the event is set only once.
    """
    received: list[int] = []

    def handle(number: int, _: object) -> None:
        if not received:
            received.append(number)
            stop.set()

    signal.signal(number, handle)


def call_on_hangup(reload: Callable[[], None], stop: Event) -> None:
    """Call ``reload`` on SIGHUP; of a command on a terminal, which sends it as it closes, set ``stop`` instead.

    Where SIGHUP is ignored, as by ``nohup``, it stays ignored.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        set_on_signal(signal.SIGHUP, stop)
    else:
        signal.signal(signal.SIGHUP, lambda *_: reload())


@contextmanager
def stop_on_signals(stop: Event) -> Iterator[None]:
    """Set ``stop`` on SIGINT, SIGTERM and SIGHUP, so that the command shuts down in order.

    A terminal that closes sends SIGHUP: processes that the command has started, in sessions of their own, would go on
    without it. Where SIGHUP is ignored, as by ``nohup``, it stays ignored.
    """
    handled = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handled.append(signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in handled}
    set_on_signal(signal.SIGINT, stop)
    for number in handled[1:]:
        signal.signal(number, signal.getsignal(signal.SIGINT))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupt_quietly() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT, and log nothing from then on while the block ends.

    The gateway to Java logs a traceback of whatever call it is interrupted in.
    """

    def handle(*_: object) -> None:
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)
