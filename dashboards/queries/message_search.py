"""Searches for a message in segments and lost ids, cached because each reads all segments."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from hopwatch.dashboards.queries.search_models import MessagePath, SearchResult
from hopwatch.dashboards.queries.stream_queries import WindowQuery, build_graph
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import HopwatchError
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.lookup import journey, missing_messages, search
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.settings import Settings
from hopwatch.monitor.store import fencing, pathway_versions, writer

SEARCH_TIMEOUT_S: Final = 10.0
"""Time limit of a search in segments; ``hopwatch find`` searches all."""
REST_FACTOR: Final = 20
"""A search is made anew after so many times what it took: an id keeps a core busy for 5 % of the time at most."""
MIN_KEPT_S: Final = 4.0
MAX_ENTRIES: Final = 64


class MessageSearch:
    """The searches of one dashboard. Safe to be asked from any thread; one at a time reads segments."""

    def __init__(self, settings: Settings | None, clock: Clock) -> None:
        """Take the configuration that names transport and store; without one nothing can be searched."""
        self._settings, self._clock = settings, clock
        self._lock = threading.Lock()
        self._entries = Memo(MAX_ENTRIES)

    def find(self, text: str, stream: str) -> SearchResult:
        """Return what is kept of a message, of one stream or, without its name, of all.

        The result names what could not be searched; nothing is raised for it.
        """
        with self._lock:
            kept: tuple[SearchResult, float] | None = self._entries.get((text, stream))
            now_s = self._clock.monotonic_s()
            if kept is None or now_s >= kept[1]:
                found = self._search(journey.parse_ids(text), stream or None, now_s)
                rest_s = max(MIN_KEPT_S, REST_FACTOR * (self._clock.monotonic_s() - now_s))
                kept = found, self._clock.monotonic_s() + rest_s
                self._entries.put((text, stream), kept)
            return kept[0]

    def window_terms(self, stream: str) -> WindowPolicy | None:
        """Return the spans that a stream's windows live by; None where the configuration has no such stream."""
        known = self._settings.streams.get(stream) if self._settings else None
        return known.rules.terms if known else None

    def _search(self, wanted: tuple[bytes, ...], stream: str | None, began_s: float) -> SearchResult:
        if self._settings is None:
            return SearchResult(searched_at_us=self._clock.now_us(), errors=("no transport is configured",))
        looked = _SegmentScan(self._clock, began_s + SEARCH_TIMEOUT_S)
        found = SearchResult(searched_at_us=self._clock.now_us())
        try:
            stamps = search.find_stamps(self._settings, wanted, stream, looked.newest_first)
            found = replace(found, stamps=stamps, segments=looked.segments, searched_segments=looked.scanned)
        except HopwatchError as error:
            found = replace(found, errors=(str(error),))
        try:
            lost = missing_messages.find_losses(self._settings.store.url, wanted, stream)
        except HopwatchError as error:
            return replace(found, errors=(*found.errors, str(error)))
        return replace(found, lost=lost, stamps=journey.unite_stamps(found.stamps, *(one.stamps for one in lost)))


@dataclass(frozen=True, slots=True)
class MessagePathsQuery:
    """Query of pathways and windows; each window is given by stream, start and terms."""

    windows: tuple[tuple[str, int, WindowPolicy | None], ...]

    def run(self, connection: Connection) -> tuple[MessagePath, ...]:
        """Return a way for each."""
        is_kept_for_ever = writer.read_value(connection, "query_id") == fencing.ONCE
        paths = []
        for stream, start_us, terms in self.windows:
            config = pathway_versions.read_stream(connection, stream)
            paths.append(
                MessagePath(
                    build_graph(config, start_us),
                    config.at(start_us).pathway.stamps if config else (),
                    WindowQuery(stream, start_us).run(connection),
                    None if is_kept_for_ever or terms is None else terms.kept_until_us(start_us),
                )
            )
        return tuple(paths)


@dataclass(slots=True)
class _SegmentScan:
    """Segments looked into, until there is no more time."""

    clock: Clock
    until_s: float
    segments: int = 0
    scanned: int = 0

    def newest_first(self, segments: Sequence[Path]) -> Iterator[Path]:
        """Yield segments, those that arrived last first."""
        self.segments = len(segments)
        for path in sorted(segments, key=_read_mtime, reverse=True):
            if self.scanned and self.clock.monotonic_s() >= self.until_s:
                return
            self.scanned += 1
            yield path


def _read_mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        # The monitor deletes segments that no window needs any more.
        return 0.0
