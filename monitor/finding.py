"""What is kept of one message: its stamps in the segments of the transport, and where the store has it as missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hopwatch.monitor import journey
from hopwatch.monitor.fates import Fate, Message, Sightings, Wanted, fates
from hopwatch.monitor.journey import Stamp
from hopwatch.monitor.kernel import naming
from hopwatch.monitor.spark import source
from hopwatch.monitor.store import dialect, lost_messages, reader, schema
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NOT_STAMPED

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

Chosen = Callable[[Sequence[Path]], Iterable[Path]]
"""Which of the segments that are kept are looked into, and in which order."""


class Lost(NamedTuple):
    """A window, by stream and start, and a node at which the store has a message as missing.

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
    stamps: tuple[Stamp, ...] = ()
    """Its stamps that are kept with its id, the first of ``stamp_count``."""
    stamp_count: int | None = None


def stamps(
    settings: Settings, wanted: tuple[bytes, ...], stream: str | None = None, chosen: Chosen = list
) -> tuple[Stamp, ...]:
    """Return every observation of the wanted ids that the transport's segments still hold, in order of the journey.

    Raises:
        TransportError: the segments cannot be read.
    """
    return tuple(journey.stamps(chosen(source.of(settings).segments()), wanted, stream))


def where_lost(url: str, wanted: tuple[bytes, ...], stream: str | None = None) -> tuple[Lost, ...]:
    """Return where the store at a URL has the wanted ids as lost; nowhere if no store was made yet.

    Raises:
        StoreError: it cannot be read.
    """
    if not schema.has_store(url):
        return ()
    engine = dialect.create_engine(url)
    try:
        return tuple(_lost(one, found) for one in wanted for found in reader.find_losses(engine, one, stream))
    finally:
        engine.dispose()


def _lost(message_id: bytes, found: reader.LossLocation) -> Lost:
    def stamp(one: dict[str, Any]) -> Stamp:
        lags = {name: None if one[name] == NOT_STAMPED else one[name] for name in ("lag_in_us", "lag_out_us")}
        told = one | lags | {"outcome": Outcome(one["outcome"]).name.lower()}
        return Stamp(message_id=message_id, stream=found.stream, id_kind=kind, text=text, **told)

    kind, text, stamp_count, kept = found.message
    where = found.stream, found.window_start_us, found.node, *found.loss
    return Lost(*where, message_id, naming.shown(message_id, kind, text), tuple(map(stamp, kept)), stamp_count)


def many(
    settings: Settings, wanted: Wanted, stream: str | None = None, chosen: Chosen = list
) -> tuple[dict[bytes, list[Fate]], bool]:
    """Return what became of each wanted id, as far as it is kept, and whether there was more than memory is taken for.

    Raises:
        TransportError: the segments cannot be read.
        StoreError: the store cannot be read.
    """
    sightings = Sightings(wanted, stream)
    for path in chosen(source.of(settings).segments()):
        sightings.look_into(path)
    pathways = {name: of_stream.pathway for name, of_stream in settings.streams.items()}
    if not schema.has_store(settings.store.url):
        return fates(sightings.seen, {}, {}, pathways), sightings.is_full
    engine = dialect.create_engine(settings.store.url)
    try:
        with schema.open_snapshot(engine) as connection:
            at_nodes: dict[Message, list[str]] = {}
            for of_stream, start_us, node, ids in lost_messages.read_packed_ids(connection, stream):
                for place in wanted.places(ids).tolist():
                    message = Message(of_stream, start_us, ids[place].tobytes())
                    at_nodes.setdefault(message, []).append(node)
            keys = {(message.stream, message.window_start_us) for message in at_nodes}
            windows = {key: reader.read_window(connection, *key) for key in sorted(keys)}
            return fates(sightings.seen, at_nodes, windows, pathways), sightings.is_full
    finally:
        engine.dispose()
