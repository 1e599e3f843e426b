"""A flight as an event: its schema, its JSON for the gate, and the message that becomes of the gate's Avro."""

from __future__ import annotations

import io
import struct
import uuid
from typing import Any, Final

import fastavro

from hopwatch.demo.link import LinkError
from hopwatch.demo.records import FlightMessage
from hopwatch.demo.stream import STREAM
from hopwatch.probes.contract.envelope import MARKER

WHOLE: Final = ("year", "month", "day", "distance", "hour", "minute")
TEXTS: Final = ("sched_dep_time", "sched_arr_time", "carrier", "flight", "origin", "dest", "time_hour")
WHOLE_IF_FLOWN: Final = ("dep_delay", "arr_delay", "air_time")
TEXTS_IF_FLOWN: Final = ("dep_time", "arr_time", "tailnum")
"""Null for a flight that was cancelled, and where the record says nothing."""
SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Flight",
    "namespace": "hopwatch.demo",
    "fields": [
        {"name": "number", "type": "long", "doc": "counts the messages of a run from 0"},
        *({"name": name, "type": "int"} for name in WHOLE),
        *({"name": name, "type": "string"} for name in TEXTS),
        *({"name": name, "type": ["null", "int"]} for name in WHOLE_IF_FLOWN),
        *({"name": name, "type": ["null", "string"]} for name in TEXTS_IF_FLOWN),
    ],
}
SUBJECT: Final = STREAM
"""Subject of the schema at the gate."""

_AVRO: Final[Any] = fastavro.parse_schema(SCHEMA)
_CANONICAL: Final = fastavro.schema.to_parsing_canonical_form(SCHEMA)
_PREFIX: Final = bytes([MARKER]) + bytes.fromhex(fastavro.schema.fingerprint(_CANONICAL, "SHA-256"))
_MARKS: Final = struct.Struct("<16sq")


def build_item(message: FlightMessage) -> dict[str, Any]:
    """Return a message as the gate takes it in a batch; its flight is parsed already."""
    return {
        "id": str(uuid.UUID(bytes=message.id)),
        "time": message.event_time_us,
        "data": {"number": message.number, **message.flight},
    }


def pack_event(message_id: bytes, event_time_us: int, record: bytes) -> bytes:
    """Pack an accepted event as a link's payload: its marks, and the record as the gate wrote it."""
    return _MARKS.pack(message_id, event_time_us) + record


def unpack_event(payload: bytes) -> FlightMessage:
    """Return the message that :func:`pack_event` packed.

    Raises:
        LinkError: the record is no flight.
    """
    message_id, event_time_us = _MARKS.unpack_from(payload)
    body = io.BytesIO(payload)
    body.seek(_MARKS.size)
    if (prefix := body.read(len(_PREFIX))) != _PREFIX:
        raise LinkError(f"a flight begins with {_PREFIX.hex()}, the gate let in {prefix.hex()}")
    flight: Any = fastavro.schemaless_reader(body, _AVRO, None)
    return FlightMessage(message_id, flight.pop("number"), event_time_us, flight)
