"""Search for messages: in the segments of the transport, and among the losses in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hopwatch.monitor.kernel import naming
from hopwatch.monitor.lookup import journey
from hopwatch.monitor.lookup.fates import Fate, MessageKey, Sightings, WantedIds, decide_fates
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.spark.sources import record_source
from hopwatch.monitor.store import dialect, lost_messages, reader, schema
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NOT_STAMPED

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

SegmentFilter = Callable[[Sequence[Path]], Iterable[Path]]
"""Selects the segments to search, in the order of the search."""


class MissingMessage(NamedTuple):
    """Message that the store has as missing at a node in a window.

    ``loss`` is how many are missing there, ``loss_lower`` how many of them are surely lost.
    """

    stream: str
    window_start_us: int
    node: str
    loss: int
    loss_lower: int
    message_id: bytes
    shown: str
    """Its id as it was given."""
    stamps: tuple[MessageStamp, ...] = ()
    """Its stamps that are kept with its id, the first of ``stamp_count``."""
    stamp_count: int | None = None


def find_stamps(
    settings: Settings, wanted: tuple[bytes, ...], stream: str | None = None, chosen: SegmentFilter = list
) -> tuple[MessageStamp, ...]:
    """Return every observation of the wanted ids that the transport's segments still hold, in order of the journey.

    Raises:
        TransportError: the segments cannot be read.
    """
    return tuple(journey.read_stamps(chosen(record_source.build_source(settings).segments()), wanted, stream))


def find_losses(url: str, wanted: tuple[bytes, ...], stream: str | None = None) -> tuple[MissingMessage, ...]:
    """Return the losses of the wanted ids in the store at a URL; none if there is no store yet.

    Raises:
        StoreError: it cannot be read.
    """
    if not schema.has_store(url):
        return ()
    engine = dialect.create_engine(url)
    try:
        return tuple(_lost_message(one, found) for one in wanted for found in reader.find_losses(engine, one, stream))
    finally:
        engine.dispose()


def _lost_message(message_id: bytes, found: reader.LossLocation) -> MissingMessage:
    def stamp(one: dict[str, Any]) -> MessageStamp:
        lags = {name: None if one[name] == NOT_STAMPED else one[name] for name in ("lag_in_us", "lag_out_us")}
        told = one | lags | {"outcome": Outcome(one["outcome"]).name.lower()}
        return MessageStamp(message_id=message_id, stream=found.stream, id_kind=kind, text=text, **told)

    kind, text, stamp_count, kept = found.message
    where = found.stream, found.window_start_us, found.node, *found.loss
    return MissingMessage(
        *where, message_id, naming.format_id(message_id, kind, text), tuple(map(stamp, kept)), stamp_count
    )


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
    pathways = {name: of_stream.pathway for name, of_stream in settings.streams.items()}
    if not schema.has_store(settings.store.url):
        return decide_fates(sightings.seen, {}, {}, pathways), sightings.is_full
    engine = dialect.create_engine(settings.store.url)
    try:
        with schema.open_snapshot(engine) as connection:
            at_nodes: dict[MessageKey, list[str]] = {}
            for of_stream, start_us, node, ids in lost_messages.read_packed_ids(connection, stream):
                for place in wanted.places(ids).tolist():
                    message = MessageKey(of_stream, start_us, ids[place].tobytes())
                    at_nodes.setdefault(message, []).append(node)
            keys = {(message.stream, message.window_start_us) for message in at_nodes}
            windows = {key: reader.read_window(connection, *key) for key in sorted(keys)}
            return decide_fates(sightings.seen, at_nodes, windows, pathways), sightings.is_full
    finally:
        engine.dispose()
