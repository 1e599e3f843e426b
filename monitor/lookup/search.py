"""Search for messages in the segments of the transport."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hopwatch.monitor.lookup import journey
from hopwatch.monitor.lookup.fates import Fate, MessageKey, Sightings, WantedIds, decide_fates
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.spark.sources import record_source
from hopwatch.monitor.store import dialect, lost_messages, pathway_versions, reader, schema

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

SegmentFilter = Callable[[Sequence[Path]], Iterable[Path]]
"""Selects the segments to search, in the order of the search."""


def find_stamps(
    settings: Settings, wanted: tuple[bytes, ...], stream: str | None = None, chosen: SegmentFilter = list
) -> tuple[MessageStamp, ...]:
    """Return every observation of the wanted ids that the transport's segments still hold, in order of the journey.

    Raises:
        TransportError: the segments cannot be read.
    """
    return tuple(journey.read_stamps(chosen(record_source.build_source(settings).segments()), wanted, stream))


def find_fates(
    settings: Settings, wanted: WantedIds, stream: str | None = None, chosen: SegmentFilter = list
) -> tuple[dict[bytes, list[Fate]], bool]:
    """Return the fates of the wanted ids, and whether the limit of messages in memory was reached.

    Raises:
        TransportError: the segments cannot be read.
        StoreError: the store cannot be read.
    """
    sightings = Sightings(wanted, stream)
    for path in chosen(record_source.build_source(settings).segments()):
        sightings.look_into(path)
    configs = settings.stream_configs()
    if not schema.has_store(settings.store.url):
        return decide_fates(sightings.seen, {}, {}, configs), sightings.is_full
    engine = dialect.create_engine(settings.store.url)
    try:
        with schema.open_snapshot(engine) as connection:
            configs |= pathway_versions.read_versions(connection)
            at_nodes: dict[MessageKey, list[str]] = {}
            for of_stream, start_us, node, ids in lost_messages.read_packed_ids(connection, stream):
                for place in wanted.places(ids).tolist():
                    message = MessageKey(of_stream, start_us, ids[place].tobytes())
                    at_nodes.setdefault(message, []).append(node)
            keys = {(message.stream, message.window_start_us) for message in at_nodes}
            windows = {key: reader.read_window(connection, *key) for key in sorted(keys)}
            return decide_fates(sightings.seen, at_nodes, windows, configs), sightings.is_full
    finally:
        engine.dispose()
