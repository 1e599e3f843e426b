"""Messages that the store has as missing, with the stamps that are kept of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Engine

from hopwatch.monitor.kernel import naming
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.store import dialect, reader, schema
from hopwatch.monitor.store.lost_messages import LostMessage
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NOT_STAMPED


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


def find_losses(url: str, wanted: tuple[bytes, ...], stream: str | None = None) -> tuple[MissingMessage, ...]:
    """Return the losses of the wanted ids in the store at a URL; none if there is no store yet.

    Raises:
        StoreError: it cannot be read.
    """
    if not schema.has_store(url):
        return ()
    engine = dialect.create_engine(url)
    try:
        return list_losses(engine, wanted, stream)
    finally:
        engine.dispose()


def list_losses(engine: Engine, wanted: tuple[bytes, ...], stream: str | None = None) -> tuple[MissingMessage, ...]:
    """Return the losses of the wanted ids in a store that is there.

    Raises:
        StoreError: it cannot be read.
    """
    return tuple(_lost_message(one, found) for one in wanted for found in reader.find_losses(engine, one, stream))


def _lost_message(message_id: bytes, found: reader.LossLocation) -> MissingMessage:
    kind, text, stamp_count, _ = found.message
    where = found.stream, found.window_start_us, found.node, *found.loss
    shown = naming.format_id(message_id, kind, text)
    return MissingMessage(*where, message_id, shown, build_stamps(message_id, found.stream, found.message), stamp_count)


def build_stamps(message_id: bytes, stream: str, stored: LostMessage) -> tuple[MessageStamp, ...]:
    """Return the stamps that are kept with a lost id."""

    def build_stamp(one: dict[str, Any]) -> MessageStamp:
        lags = {name: None if one[name] == NOT_STAMPED else one[name] for name in ("lag_in_us", "lag_out_us")}
        told = one | lags | {"outcome": Outcome(one["outcome"]).name.lower()}
        return MessageStamp(message_id=message_id, stream=stream, id_kind=stored.kind, text=stored.text, **told)

    return tuple(map(build_stamp, stored.stamps))
