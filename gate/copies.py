"""What of a message in a topic is judged, and what of it goes on with what is made of it: key, headers, time."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Message

from hopwatch.gate import ids
from hopwatch.gate.outlets.kafka import ARRIVED_HEADER
from hopwatch.gate.turns import Headers
from hopwatch.gate.validating import MOST_BESIDE_BYTES, Record
from hopwatch.probes import marks
from hopwatch.probes.marks import ID_HEADER, TIME_HEADER, Marks

_NO_TIME_MS: Final = -1


def record_of(message: Message) -> Record:
    """Return what is judged of a message."""
    headers = _headers(message)
    key, value = message.key(), message.value()
    beside = len(key or b"") + sum(len(name) + len(one or b"") for name, one in headers)
    kind, found_ms = message.timestamp()
    recorded_us = found_ms * 1_000 if kind and found_ms != _NO_TIME_MS else None
    where = f"{message.topic()}/{message.partition()}/{message.offset()}"
    # Of a name that comes twice the last counts: whoever marked the message anew put that behind.
    return Record(where, None if value is None else bytes(value), dict(headers), recorded_us, beside)


def key_of(message: Message, record: Record) -> bytes | None:
    """Return the key that goes on: that of the message, so that its order among others of the key stays."""
    key = message.key() if _is_kept(record) else None
    return None if key is None else bytes(key)


def headers_of(message: Message, record: Record, found: Marks, arrived_us: int) -> Headers:
    """Return the headers that go on: those of the message, and the marks where they do not say them."""
    headers = _headers(message) if _is_kept(record) else []
    if not _is_marked(headers, found):
        headers += [(ID_HEADER, ids.written(found.message_id)), (TIME_HEADER, str(found.event_us))]
    return [*headers, (ARRIVED_HEADER, str(arrived_us))]


def recorded_ms(record: Record) -> int:
    """Return the time of a record for Kafka, ms since 1970; 0 where it has none."""
    return (record.recorded_us or 0) // 1_000


def _is_kept(record: Record) -> bool:
    return record.size_beside <= MOST_BESIDE_BYTES


def _headers(message: Message) -> Headers:
    return list(message.headers() or [])


def _is_marked(headers: Headers, found: Marks) -> bool:
    try:
        return marks.read(headers) == found
    except ValueError:
        return False
