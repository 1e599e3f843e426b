"""Records of a waiting topic: a record whose schema is unknown, unchanged, and headers that say whence and since when.

What is restored of a waiting record is what came: the same record, judged as at the time at which it first came.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from confluent_kafka import Message

from hopwatch.gate.record_checks import TopicRecord
from hopwatch.gate.retry_headers import RETRY_HEADERS, RetryState, build_state_headers, parse_retry_headers, read_number
from hopwatch.gate.transactions import KafkaHeaders
from hopwatch.probes.kafka.consumer import read_headers, read_recorded_us

PLACE_HEADER: Final = "hopwatch-first-place"
"""Header of the place of the record in the topic that it came from, as text: ``TOPIC/PARTITION/OFFSET``."""
RECORDED_HEADER: Final = "hopwatch-first-recorded"
"""Header of the record's own time there, as text: µs since 1970; absent without one after 1970."""
_ADDED: Final = RETRY_HEADERS | {PLACE_HEADER, RECORDED_HEADER}


class WaitingRecord(NamedTuple):
    """State of a waiting record: since when it waits, µs since 1970, its looks, and where it stood before."""

    since_us: int
    tries: int
    place: str
    recorded_us: int | None


def build_waiting_headers(own: KafkaHeaders, waiting: WaitingRecord, next_us: int) -> KafkaHeaders:
    """Return the headers of a waiting record: its own, and its state behind them."""
    added: KafkaHeaders = build_state_headers(RetryState(waiting.tries, waiting.since_us, next_us))
    added.append((PLACE_HEADER, waiting.place))
    if waiting.recorded_us is not None and waiting.recorded_us > 0:
        added.append((RECORDED_HEADER, str(waiting.recorded_us)))
    return [*own, *added]


def restore_message(message: Message) -> WaitingRecord:
    """Take the state off the headers of a waiting record, which has its own ones alone afterwards, and return it.

    A record that no validator put there waits since the time of its own, at its place there.
    """
    try:
        headers = read_headers(message)
    except ValueError:
        headers = []
    found, names = KafkaHeaders(), set[str]()
    # They are the last ones: the record may have had headers of these names itself.
    while headers and headers[-1][0] in _ADDED - names:
        names.add(headers[-1][0])
        found.insert(0, headers.pop())
    message.set_headers(headers)  # type: ignore[arg-type]  # the stub knows bytes alone
    said, state, written_us = dict(found), parse_retry_headers(found), read_recorded_us(message) or 0
    place = said.get(PLACE_HEADER) or f"{message.topic()}/{message.partition()}/{message.offset()}"
    since_us = min(state.first_sent_us or written_us, written_us or state.first_sent_us)
    text = place.decode("utf-8", "replace") if isinstance(place, bytes) else place
    return WaitingRecord(since_us, state.tries, text, read_number(said.get(RECORDED_HEADER)) or None)


def restore_record(record: TopicRecord, waiting: WaitingRecord) -> TopicRecord:
    """Return the record as it came, from the one that its message is now."""
    return TopicRecord(
        waiting.place, record.value, record.headers, waiting.recorded_us, record.metadata_bytes, record.header_fault
    )
