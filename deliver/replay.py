"""Replay of messages that a delivery rejected: they go to its first retry topic, and are due at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from hopwatch.deliver.kafka_records import is_whole
from hopwatch.deliver.retry_topics import DeliveryTopics, build_retry_headers
from hopwatch.gate import ids, quarantine
from hopwatch.gate.quarantine import DELIVERY_HEADER
from hopwatch.gate.records import RejectedRecord, ReplayedRecord, decode_rejected
from hopwatch.gate.retry_headers import RetryState
from hopwatch.gate.transactions import KafkaHeaders, OutputRecord, TransactionalWriter
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.consumer import read_headers

if TYPE_CHECKING:
    from confluent_kafka import Message


MAX_MESSAGES: Final = 1_000
"""Messages that are replayed in one transaction."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of them after which it ends."""


class ReplayableRecord(NamedTuple):
    """Rejected message, and the record of it with its key and headers."""

    rejected: RejectedRecord
    record: Message


def read_replayable(place: KafkaPlace, access: KafkaAccess, delivery: str) -> list[ReplayableRecord]:
    """Return the messages that a delivery rejected and that were not replayed since, the oldest first.

    Raises:
        QuarantineError: the topic cannot be read.
    """
    messages = list(quarantine.read_messages(place, access, delivery))
    standing = quarantine.filter_replayed(one.value() or b"" for one in messages)
    records = {one.value(): one for one in messages}
    by_identity = {(found.event_id, found.arrived_us): one for value, one in records.items() if (found := _read(value))}
    return [ReplayableRecord(one, by_identity[one.event_id, one.arrived_us]) for one in standing]


def find_refusal(rejected: RejectedRecord, *, has_data: bool = False) -> str:
    """Return the reason for which a message cannot be replayed; empty if it can."""
    if not rejected.owns_id or rejected.event_us is None:
        return "its id, event time or value could not be read: let its sender send it again"
    if not has_data and not is_whole(rejected):
        return f"it is longer than the {len(rejected.data):,} bytes that are kept: let its sender send it again"
    return ""


def replay_messages(  # noqa: PLR0913 - what is replayed, where to
    wanted: Sequence[ReplayableRecord],
    name: str,
    topics: DeliveryTopics,
    writer: TransactionalWriter[tuple[str, ...]],
    *,
    now_us: int,
    data: bytes | None = None,
) -> bool:
    """Write messages to the first retry topic, with ``data`` in place of their own if given, and mark them as replayed.

    Both are one transaction for some messages at a time, as a long one would run out of its time. Return False if one
    failed or its outcome is unknown; what was written before is replayed.

    Raises:
        TapSourceError: a topic cannot be written until an operator fixes it.
    """
    return all(writer.write(_build_records(some, name, topics, now_us, data), [], None) for some in _split(wanted))


def _split(wanted: Sequence[ReplayableRecord]) -> Iterator[list[ReplayableRecord]]:
    some: list[ReplayableRecord] = []
    size_bytes = 0
    for one in wanted:
        some.append(one)
        size_bytes += len(one.rejected.data)
        if len(some) >= MAX_MESSAGES or size_bytes >= MAX_BYTES:
            yield some
            some, size_bytes = [], 0
    if some:
        yield some


def _build_records(
    some: Sequence[ReplayableRecord], name: str, topics: DeliveryTopics, now_us: int, data: bytes | None
) -> list[OutputRecord]:
    outs = []
    for one in some:
        value = one.rejected.data if data is None else data
        marker = ReplayedRecord(one.rejected.event_id, now_us).encode()
        outs += [
            OutputRecord(topics.tiers[0].topic, value, one.record.key(), _build_headers(one)),
            OutputRecord(topics.rejected, marker, one.record.key(), [(DELIVERY_HEADER, name)]),
        ]
    return outs


def _build_headers(one: ReplayableRecord) -> KafkaHeaders:
    own: KafkaHeaders = [header for header in read_headers(one.record) if header[0] != DELIVERY_HEADER]
    text = ids.format_uuid(one.rejected.event_id)
    return build_retry_headers(own, RetryState(), text, one.rejected.event_us or 0)


def _read(value: bytes | None) -> RejectedRecord | None:
    try:
        found = decode_rejected(value or b"")
    except ValueError:
        return None
    return found if isinstance(found, RejectedRecord) else None
