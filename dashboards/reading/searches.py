"""Searches for messages, kept: one reads all segments that are there, so it is not made anew at every refresh."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from hopwatch.dashboards.reading.questions import OneWindow, graph
from hopwatch.dashboards.reading.search_told import Searched, Way
from hopwatch.monitor import finding, journey
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import HopwatchError
from hopwatch.monitor.kernel.window import Terms
from hopwatch.monitor.settings import Settings
from hopwatch.monitor.store import fencing, reader, writer

PATIENCE_S: Final = 10.0
"""How long a search looks into segments; ``hopwatch find`` looks into all."""
REST: Final = 20
"""A search is made anew after so many times what it took: an id keeps a core busy for 5 % of the time at most."""
LEAST_KEPT_S: Final = 4.0
MOST_KEPT: Final = 64


class Searches:
    """The searches of one dashboard. Safe to be asked from any thread; one at a time reads segments."""

    def __init__(self, settings: Settings | None, clock: Clock) -> None:
        """Take the configuration that names transport and store; without one nothing can be searched."""
        self._settings, self._clock = settings, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[Searched, float]] = OrderedDict()

    def find(self, text: str, stream: str) -> Searched:
        """Return what is kept of a message, of one stream or, without its name, of all.

        What cannot be searched is told in it and not raised.
        """
        with self._lock:
            kept = self._kept.get((text, stream))
            now_s = self._clock.monotonic_s()
            if kept is None or now_s >= kept[1]:
                found = self._search(journey.readings(text), stream or None, now_s)
                rest_s = max(LEAST_KEPT_S, REST * (self._clock.monotonic_s() - now_s))
                kept = self._kept[text, stream] = found, self._clock.monotonic_s() + rest_s
            self._kept.move_to_end((text, stream))
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept[0]

    def terms_of(self, stream: str) -> Terms | None:
        """Return the spans that a stream's windows live by; None where the configuration has no such stream."""
        known = self._settings.streams.get(stream) if self._settings else None
        return known.rules.terms if known else None

    def _search(self, wanted: tuple[bytes, ...], stream: str | None, began_s: float) -> Searched:
        if self._settings is None:
            return Searched(at_us=self._clock.now_us(), trouble=("no transport is configured",))
        looked = _Looked(self._clock, began_s + PATIENCE_S)
        found = Searched(at_us=self._clock.now_us())
        try:
            stamps = finding.stamps(self._settings, wanted, stream, looked.newest_first)
            found = replace(found, stamps=stamps, segments=looked.segments, looked_into=looked.into)
        except HopwatchError as error:
            found = replace(found, trouble=(str(error),))
        try:
            lost = finding.where_lost(self._settings.store.url, wanted, stream)
        except HopwatchError as error:
            return replace(found, trouble=(*found.trouble, str(error)))
        return replace(found, lost=lost, stamps=journey.united(found.stamps, *(one.stamps for one in lost)))


@dataclass(frozen=True, slots=True)
class WaysOf:
    """How do streams go, and what became of these windows of them, each a stream, a start and its terms?"""

    windows: tuple[tuple[str, int, Terms | None], ...]

    def read(self, connection: Connection) -> tuple[Way, ...]:
        """Return a way for each."""
        is_kept_for_ever = writer.read_value(connection, "query_id") == fencing.ONCE
        return tuple(
            Way(
                graph(connection, stream),
                tuple(reader.read_stamp_sides(connection, stream)),
                OneWindow(stream, start_us).read(connection),
                None if is_kept_for_ever or terms is None else terms.kept_until_us(start_us),
            )
            for stream, start_us, terms in self.windows
        )


@dataclass(slots=True)
class _Looked:
    """Segments looked into, until there is no more time."""

    clock: Clock
    until_s: float
    segments: int = 0
    into: int = 0

    def newest_first(self, segments: Sequence[Path]) -> Iterator[Path]:
        """Yield segments, those that arrived last first."""
        self.segments = len(segments)
        for path in sorted(segments, key=_arrived, reverse=True):
            if self.into and self.clock.monotonic_s() >= self.until_s:
                return
            self.into += 1
            yield path


def _arrived(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        # The monitor deletes segments that no window needs any more.
        return 0.0
