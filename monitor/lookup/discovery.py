"""Discovery of undeclared nodes and edges: the messages that each node of a stream saw of late, by the transport."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.accounting.undeclared_names import UNKNOWN_NODE, UndeclaredName
from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.placement import MIN_SHARED, NodeSightings
from hopwatch.monitor.lookup import segment_records, topic_records
from hopwatch.monitor.spark.sources import record_source
from hopwatch.monitor.store import dialect, instances, reader, schema, undeclared_names
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.limits import NOT_STAMPED, WINDOW_US

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hopwatch.monitor.settings import Settings

SPAN_US: Final = 300_000_000
"""How far back messages are read."""
UNDER_WAY_US: Final = 60_000_000
"""Messages of the last minute may be under way: they are left out."""
MAX_MESSAGES: Final = 50_000
"""Messages that are kept of a stream; of more a part is chosen by their ids, the same at all nodes."""
MAX_RECORDS: Final = 5_000
"""Records of undeclared nodes that are read from a topic, the newest ones."""


@dataclass(slots=True)
class SightingsReader:
    """Reader of the sightings of a stream whose event times are in ``[from_us, to_us)``."""

    stream: str
    from_us: int
    to_us: int
    _seen: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    _sides: dict[str, set[str]] = field(default_factory=dict)
    _every: int = 1

    def add_segment(self, data: bytes) -> None:
        """Read the records of a segment."""
        for view in segment_records.parse_records(data):
            self.add_record(data, view)

    def add_record(self, data: bytes, view: envelope.RecordView) -> None:
        """Read the observations of a record."""
        start_us = view.window_start_ms * 1_000
        if view.stream != self.stream or not view.count:
            return
        offsets_us = envelope.read_packed(data, view.event_offset_us, "<u4").astype(np.int64)
        # Without offsets all are of the window's start.
        event_us = start_us + (offsets_us if len(offsets_us) else np.zeros(view.count, np.int64))
        ids = masks.fold(envelope.read_packed(data, view.message_ids, "<u8").reshape(-1, 2))
        lags = [envelope.read_packed(data, span, "<i8") for span in (view.lag_in_us, view.lag_out_us)]
        lag_in, lag_out = (lag if len(lag) else np.full(view.count, NOT_STAMPED) for lag in lags)
        for side, lag in (("in", lag_in), ("out", lag_out)):
            if (lag != NOT_STAMPED).any():
                self._sides.setdefault(view.node, set()).add(side)
        moments_us = event_us + np.where(lag_in != NOT_STAMPED, lag_in, lag_out)
        chosen = (event_us >= self.from_us) & (event_us < self.to_us) & (ids % np.uint64(self._every) == 0)
        seen = self._seen.setdefault(view.node, {})
        for key, *moments in zip(*(column[chosen].tolist() for column in (ids, moments_us, event_us)), strict=True):
            moment = moments[0], moments[1]
            seen[key] = min(moment, seen.get(key, moment))
        while len(seen) > MAX_MESSAGES:
            self._every *= 2
            for node, of_node in self._seen.items():
                self._seen[node] = seen = {key: at for key, at in of_node.items() if key % self._every == 0}
            seen = self._seen[view.node]

    def read(self, since: str) -> dict[str, NodeSightings]:
        """Return what each node saw of the messages that are no older than the first one at a node."""
        first_us = min((event_us for _, event_us in self._seen.get(since, {}).values()), default=self.to_us)
        return self.read_all(first_us)

    def read_all(self, first_us: int = 0) -> dict[str, NodeSightings]:
        """Return what each node saw of the messages with event times of ``first_us`` or later."""
        found = {node: self._build(node, seen, first_us) for node, seen in self._seen.items()}
        return {node: seen for node, seen in found.items() if len(seen.ids)}

    def _build(self, node: str, seen: dict[int, tuple[int, int]], first_us: int) -> NodeSightings:
        ids: NDArray[np.uint64] = np.array(sorted(key for key, at in seen.items() if at[1] >= first_us), np.uint64)
        moments_us = np.array([seen[key][0] for key in ids.tolist()], np.int64)
        sides = self._sides.get(node, set())
        return NodeSightings(ids, moments_us, "in" in sides, "out" in sides)


def find_undeclared_nodes(settings: Settings, stream: str | None = None) -> list[UndeclaredName]:
    """Return the undeclared nodes of declared streams whose records came in the last hour, by the newest record.

    Raises:
        StoreError: the store cannot be read.
    """
    with _open_last_hour(settings) as (connection, since_us):
        found = undeclared_names.read_undeclared(connection, since_us)
    named = [one for one in found if one.reason == UNKNOWN_NODE and one.stream in settings.streams]
    return [
        one
        for one in named
        if stream in (None, one.stream)
        and one.node not in settings.streams[one.stream].pathway.declared
        and one.node not in settings.streams[one.stream].ignore_nodes
    ]


def read_sightings(settings: Settings, name: UndeclaredName) -> dict[str, NodeSightings]:
    """Return what each node of the stream of an undeclared node saw in the last minutes of that node.

    Raises:
        StoreError: the store cannot be read.
        TransportError: the transport cannot be read.
    """
    to_us = name.last_arrival_us - UNDER_WAY_US
    found = SightingsReader(name.stream, to_us - SPAN_US, to_us)
    _read_segments(settings, found)
    if settings.transport.kafka_place is not None:
        # Records of undeclared nodes are not landed.
        for segment in _read_topic(settings, found.from_us):
            found.add_segment(segment)
    return found.read(name.node)


def find_unobserved_streams(settings: Settings, stream: str | None = None) -> dict[str, int]:
    """Return the end of the last minute in which nodes of a stream missed messages that went on, by stream, µs.

    Of the last hour, and of nodes that missed one of fifty or more.

    Raises:
        StoreError: the store cannot be read.
    """
    streams = list(settings.streams) if stream is None else [stream]
    with _open_last_hour(settings) as (connection, since_us):
        found = reader.read_unobserved_starts_us(connection, streams, since_us, MIN_SHARED)
    return {name: found[name] + WINDOW_US for name in streams if name in found}


def read_declared_sightings(settings: Settings, stream: str, to_us: int) -> dict[str, NodeSightings]:
    """Return what each node of a stream saw of the messages of the last minutes before a moment.

    Raises:
        TransportError: the segments cannot be read.
    """
    found = SightingsReader(stream, to_us - SPAN_US, to_us)
    _read_segments(settings, found)
    return found.read_all()


@contextmanager
def _open_last_hour(settings: Settings) -> Iterator[tuple[Connection, int]]:
    """Yield a snapshot of the store, and the moment at which the last hour of its records began, µs."""
    engine = dialect.create_engine(settings.store.url)
    try:
        with schema.open_snapshot(engine) as connection:
            yield connection, instances.read_reference_time_us(connection) - HOUR_US
    finally:
        engine.dispose()


def _read_segments(settings: Settings, found: SightingsReader) -> None:
    for path in record_source.build_source(settings).segments():
        if _is_changed_since(path, found.from_us):
            found.add_segment(segment_records.read_segment(path))


def _is_changed_since(path: Path, moment_us: int) -> bool:
    try:
        return path.stat().st_mtime_ns // 1_000 >= moment_us
    except OSError:
        # No window needs it any more.
        return False


def _read_topic(settings: Settings, from_us: int) -> Iterable[bytes]:
    engine = dialect.create_engine(settings.store.url)
    try:
        with schema.open_snapshot(engine) as connection:
            aside = reader.read_set_aside_since(connection, from_us)
            unknown = (one for one in aside if one.reason == UNKNOWN_NODE)
            places = nlargest(MAX_RECORDS, unknown, key=attrgetter("arrival_us"))
    finally:
        engine.dispose()
    place = settings.transport.kafka_place
    return topic_records.read_records(place, settings.transport.access, places) if place else ()
