"""How a command that runs until it is told to stop is told so."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event


@contextmanager
def ending(stop: Event) -> Iterator[None]:
    """Let SIGINT and SIGTERM set ``stop``, so that the command ends in order."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
