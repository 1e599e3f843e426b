"""Lag of the consumer groups of streams for the dashboard: read in a thread, so that no page waits for brokers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import HopwatchError
from hopwatch.monitor.kernel.group_lag import GroupLag
from hopwatch.monitor.lookup.consumer_lag import read_group_lags
from hopwatch.monitor.settings import Settings

FRESH_FOR_S: Final = 10.0
"""The brokers are asked anew after so long, while somebody looks."""

ReadLags = Callable[[Settings, str], Iterable[GroupLag]]


@dataclass(frozen=True, slots=True)
class LagAnswer:
    """Lags of the groups of a stream when they were read last, and the error of the last attempt; 0 before the first.

    The lags of before an error stay.
    """

    groups: tuple[GroupLag, ...] = ()
    read_us: int = 0
    error: str = ""


class ConsumerLags:
    """The lags that the viewers of one dashboard look at. Safe to be asked from any thread."""

    def __init__(self, settings: Settings | None, clock: Clock, read: ReadLags = read_group_lags) -> None:
        """Take the configuration that names groups and topics; ``read`` asks the brokers."""
        self._settings, self._clock = settings, clock
        self._read = read
        self._lock = threading.Lock()
        self._answers: dict[str, LagAnswer] = {}
        self._asked_s: dict[str, float] = {}
        self._reading: set[str] = set()

    def find_latest(self, stream: str) -> LagAnswer | None:
        """Return what was read last of a stream, and read it anew if that is due; None of a stream without groups."""
        settings = self._settings
        known = settings.streams.get(stream) if settings else None
        if settings is None or known is None or not known.groups:
            return None
        with self._lock:
            now_s = self._clock.monotonic_s()
            if stream not in self._reading and now_s - self._asked_s.get(stream, -FRESH_FOR_S) >= FRESH_FOR_S:
                self._reading.add(stream)
                threading.Thread(target=self._refresh, args=(settings, stream), daemon=True).start()
            return self._answers.get(stream, LagAnswer())

    def _refresh(self, settings: Settings, stream: str) -> None:
        groups, error = None, ""
        try:
            groups = tuple(self._read(settings, stream))
        except HopwatchError as failure:
            error = str(failure)
        with self._lock:
            before = self._answers.get(stream, LagAnswer())
            read = LagAnswer(groups, self._clock.now_us()) if groups is not None else None
            self._answers[stream] = read or LagAnswer(before.groups, before.read_us, error)
            self._asked_s[stream] = self._clock.monotonic_s()
            self._reading.discard(stream)
