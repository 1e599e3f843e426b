"""Events as records: their id, and the JSON that the gate takes; each is encoded once, when it is accepted."""

from __future__ import annotations

import json
import operator
from datetime import datetime
from typing import Final, NamedTuple, SupportsIndex
from uuid import UUID

from hopwatch.client.policy import MAX_EVENT_BYTES
from hopwatch.gate import ids
from hopwatch.probes.message_headers import generate_id

_ID_BYTES: Final = 16
_MAX_TIME_US: Final = 2**63 - 1


class EventRecord(NamedTuple):
    """Event that waits: its id, 16 bytes, and its item of a request, JSON."""

    event_id: bytes
    item: bytes

    @property
    def id_text(self) -> str:
        """The id as text."""
        return ids.format_uuid(self.event_id)

    def encode(self) -> bytes:
        """Return the record as the spool keeps it: the id, then the item."""
        return self.event_id + self.item

    @classmethod
    def decode(cls, data: bytes) -> EventRecord:
        """Return a record of the spool.

        Raises:
            ValueError: it is too short to be one.
        """
        if len(data) <= _ID_BYTES:
            raise ValueError(f"a record has an id of {_ID_BYTES} bytes and an event, got {len(data)} bytes")
        return cls(data[:_ID_BYTES], data[_ID_BYTES:])


def build_record(
    data: object, event_id: UUID | str | None, event_time: datetime | int | None, now_us: int
) -> EventRecord:
    """Return the record of an event; without an id it gets a new one, without any time that of now.

    Raises:
        ValueError: the data is no JSON or too large, the id no UUID, or the time has no zone or is none.
    """
    if event_id is None:
        known = generate_id(now_us)
        time_us: int | None = now_us
    else:
        known, time_us = ids.parse_uuid(str(event_id)), None
    if event_time is not None:
        time_us = _read_time_us(event_time)
    elif time_us is None and ids.uuid_time_us(known) is None:
        raise ValueError(
            f"the id {str(event_id)[:80]} knows no time (UUIDs of versions 1, 6 and 7 do): give event_time, too"
        )
    encoded = _encode_data(data)
    # Without a time the gate takes that of the id, so that an id that is sent twice has the same time twice.
    time_member = b"" if time_us is None else b'"time":%d,' % time_us
    return EventRecord(known, b'{"id":"%b",%b"data":%b}' % (ids.format_uuid(known).encode(), time_member, encoded))


def encode_batch(items: list[bytes]) -> bytes:
    """Return the body of a request with these items."""
    return b"[" + b",".join(items) + b"]"


def _encode_data(data: object) -> bytes:
    try:
        encoded = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the data of an event is JSON, got {type(data).__name__}: {error!s:.200}") from None
    if len(encoded) > MAX_EVENT_BYTES:
        raise ValueError(f"the data of an event has at most {MAX_EVENT_BYTES:,} bytes as JSON, got {len(encoded):,}")
    return encoded


def _read_time_us(event_time: object) -> int:
    if isinstance(event_time, datetime):
        if event_time.tzinfo is None:
            raise ValueError(f"an event time has a time zone, got {event_time.isoformat()} without one")
        return round(event_time.timestamp() * 1e6)
    if isinstance(event_time, SupportsIndex):
        time_us = operator.index(event_time)
        if 0 <= time_us <= _MAX_TIME_US:
            return time_us
    raise ValueError(f"an event time is a datetime, or whole µs since 1970, got {event_time!r:.80}")
