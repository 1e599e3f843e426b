"""How a command that runs until it is told to stop is told so."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event


def set_on_signal(number: signal.Signals, stop: Event) -> None:
    """Let a signal set ``stop``.

    A second one may interrupt the handler of the first, inside of :meth:`Event.set`, whose lock it would wait for
    without end: what is being told is told once.
    """
    told: list[int] = []

    def tell(number: int, _: object) -> None:
        if not told:
            told.append(number)
            stop.set()

    signal.signal(number, tell)


@contextmanager
def stop_on_signals(stop: Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM set ``stop``, so that the command ends in order."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    set_on_signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
