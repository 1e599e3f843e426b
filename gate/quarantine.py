"""Read rejected events back from their topic or spool, without those that were replayed since.

A topic may have messages that deliveries rejected, too: a header with the name of the delivery tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hopwatch.gate import records
from hopwatch.gate.codec import EnvelopeError
from hopwatch.gate.records import RejectedRecord
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.segment import OPEN_SUFFIX, SEGMENT_SUFFIX, read_frames
from hopwatch.probes.contract.segment import SCHEME as SPOOL
from hopwatch.probes.kafka.client import ask_topic, build_client_config, describe_kafka_error

if TYPE_CHECKING:
    from confluent_kafka import Message

DELIVERY_HEADER: Final = "hopwatch-delivery"
"""Header of a rejected message: the name of the delivery that rejected it."""
_READ_TIMEOUT_S: Final = 10.0
_MAX_MESSAGES: Final = 1_000


class QuarantineError(Exception):
    """Rejected events cannot be read; the message says why."""


def read_rejected(url: str, access: KafkaAccess, delivery: str | None = None) -> list[RejectedRecord]:
    """Return the rejected events that were not replayed since, the oldest first, each id once.

    Records of other formats are skipped: the topic may have had another use before. With ``delivery`` the messages that
    this delivery rejected are returned, else the events that no delivery did.

    Raises:
        QuarantineError: the topic or the folder cannot be read.
    """
    if not url.startswith(KAFKA):
        return filter_replayed(_read_spool(url))
    return filter_replayed(one.value() or b"" for one in read_messages(KafkaPlace.parse(url), access, delivery))


def filter_replayed(found: Iterable[bytes]) -> list[RejectedRecord]:
    """Return the latest rejected record of each id, unless it was replayed after that; the input may have any order.

    An event sent under another event's id is kept apart from the event that owns the id.
    """
    latest: dict[tuple[bytes, bool], RejectedRecord] = {}
    replayed_us: dict[bytes, int] = {}
    for record in found:
        try:
            one = records.decode_rejected(record)
        except EnvelopeError:
            continue
        if isinstance(one, records.ReplayedRecord):
            replayed_us[one.event_id] = max(one.replayed_us, replayed_us.get(one.event_id, 0))
        elif (key := (one.event_id, one.owns_id)) not in latest or one.arrived_us >= latest[key].arrived_us:
            latest[key] = one
    standing = (one for one in latest.values() if replayed_us.get(one.event_id, -1) < one.arrived_us)
    return sorted(standing, key=lambda one: (one.arrived_us, one.event_id))


def _read_spool(url: str) -> Iterator[bytes]:
    """Yield all records of a spool, including those in open segments that a running gate has synced.

    A segment that is published meanwhile may be read twice, but is never missed.
    """
    root = Path(url.removeprefix(SPOOL))
    try:
        opened = _read_open_segments(root)
        published = (segment.read_bytes() for segment in sorted(root.glob(f"*/*{SEGMENT_SUFFIX}")))
        for data in chain(opened, published):
            yield from (data[frame.start : frame.end] for frame in read_frames(data) if not frame.fault)
    except OSError as error:
        raise QuarantineError(f"the spool {root} cannot be read: {error.strerror}") from None


def _read_open_segments(root: Path) -> list[bytes]:
    """Return the contents so far of the segments that are still open."""
    found = []
    for segment in sorted(root.glob(f"*/*{OPEN_SUFFIX}")):
        with suppress(FileNotFoundError):
            found.append(segment.read_bytes())
    return found


def read_messages(place: KafkaPlace, access: KafkaAccess, delivery: str | None) -> Iterator[Message]:
    """Yield all records from the beginning of a topic to its current end, of one delivery or of none.

    Raises:
        QuarantineError: the topic cannot be read.
    """
    name = None if delivery is None else delivery.encode()
    yield from (one for one in _read_topic(place, access) if _read_delivery(one) == name)


def _read_delivery(message: Message) -> str | bytes | None:
    from hopwatch.probes.kafka.consumer import read_headers  # noqa: PLC0415 - a spool does not need it

    try:
        return dict(read_headers(message)).get(DELIVERY_HEADER)
    except ValueError:
        return None


def _read_topic(place: KafkaPlace, access: KafkaAccess) -> Iterator[Message]:
    from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415 - a spool does not need it

    from hopwatch.probes.kafka.consumer import is_partition_end, take_until  # noqa: PLC0415 - as above

    consumer = Consumer(
        {
            **build_client_config(place.brokers, access),
            "group.id": "hopwatch-quarantine",
            "enable.auto.commit": False,
            # Behind the last record there may be marks of transactions, which no client hands over.
            "enable.partition.eof": True,
        }
    )
    try:
        topic = ask_topic(consumer, place.topic, _READ_TIMEOUT_S)
        if topic.error is not None:
            raise QuarantineError(f"the topic {place.topic} cannot be read: {describe_kafka_error(topic.error)}")
        parts = [TopicPartition(place.topic, number) for number in topic.partitions]
        bounds = {part.partition: consumer.get_watermark_offsets(part, timeout=_READ_TIMEOUT_S) for part in parts}
        left = {number: high for number, (low, high) in bounds.items() if high > low}
        consumer.assign([TopicPartition(place.topic, number, bounds[number][0]) for number in left])
        while left:
            # The client would wait the whole time for as many as it is asked for.
            messages = consumer.consume(1, _READ_TIMEOUT_S)
            messages += consumer.consume(_MAX_MESSAGES, 0)
            if not messages:
                raise QuarantineError(f"the topic {place} cannot be read: nothing came for {_READ_TIMEOUT_S:g} s")
            errors = (error for message in messages if (error := message.error()) is not None)
            if fault := next((error for error in errors if not is_partition_end(error)), None):
                raise QuarantineError(f"the topic {place} cannot be read: {describe_kafka_error(fault)}")
            yield from take_until(messages, left)
    except KafkaException as error:
        raise QuarantineError(f"the topic {place} cannot be read: {describe_kafka_error(error)}") from None
    finally:
        consumer.close()
