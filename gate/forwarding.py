"""Map a Kafka message to the record under validation, and choose the key, headers and timestamp to forward."""

from __future__ import annotations

from confluent_kafka import Message

from hopwatch.gate import ids
from hopwatch.gate.outlets.kafka import ARRIVED_HEADER
from hopwatch.gate.record_checks import MAX_METADATA_BYTES, TopicRecord
from hopwatch.gate.transactions import KafkaHeaders
from hopwatch.probes import message_headers
from hopwatch.probes.kafka.consumer import read_headers, read_recorded_us
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER, MessageIdentity


def build_record(message: Message) -> TopicRecord:
    """Return the record of a message that is validated."""
    headers, fault = KafkaHeaders(), ""
    try:
        headers = read_headers(message)
    except ValueError as error:
        fault = str(error)
    key, value = message.key(), message.value()
    beside = len(key or b"") + sum(len(name) + len(one or b"") for name, one in headers)
    where = f"{message.topic()}/{message.partition()}/{message.offset()}"
    # The last of two headers of one name counts: a producer that sets the identity again appends it.
    data, recorded_us = None if value is None else bytes(value), read_recorded_us(message)
    return TopicRecord(where, data, dict(headers), recorded_us, beside, fault)


def select_key(message: Message, record: TopicRecord) -> bytes | None:
    """Return the key to forward: that of the message, so that the order of messages with this key stays."""
    key = message.key() if _is_forwarded(record) else None
    return None if key is None else bytes(key)


def build_headers(message: Message, record: TopicRecord, found: MessageIdentity, arrived_us: int) -> KafkaHeaders:
    """Return the headers to forward: those of the message, id and event time unless present, and the arrival time."""
    headers = read_headers(message) if _is_forwarded(record) and not record.header_fault else []
    if not _has_identity(headers, found):
        headers += [(ID_HEADER, ids.format_uuid(found.message_id)), (TIME_HEADER, str(found.event_us))]
    return [*headers, (ARRIVED_HEADER, str(arrived_us))]


def to_timestamp_ms(record: TopicRecord) -> int:
    """Return the timestamp of a record for Kafka, ms since 1970; 0 if it has none."""
    return (record.recorded_us or 0) // 1_000


def _is_forwarded(record: TopicRecord) -> bool:
    return record.metadata_bytes <= MAX_METADATA_BYTES


def _has_identity(headers: KafkaHeaders, found: MessageIdentity) -> bool:
    try:
        return message_headers.parse_headers(headers) == found
    except ValueError:
        return False
