"""SIGINT and SIGTERM handling for long-running commands."""

from __future__ import annotations

import signal
from collections.abc import Iterator
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


@contextmanager
def stop_on_signals(stop: Event) -> Iterator[None]:
    """Set ``stop`` on SIGINT and SIGTERM, so that the command shuts down in order."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    set_on_signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
