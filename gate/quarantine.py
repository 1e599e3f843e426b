"""What was rejected, read again: from the topic or the spool that it was written to, less what was replayed since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from hopwatch.gate import records
from hopwatch.gate.codec import EnvelopeError
from hopwatch.gate.records import Rejected
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.segment import OPEN_SUFFIX, SEGMENT_SUFFIX, walk
from hopwatch.probes.contract.segment import SCHEME as SPOOL
from hopwatch.probes.sinks.kafka import words

_WAIT_S: Final = 10.0
_AT_ONCE: Final = 1_000


class QuarantineError(Exception):
    """What was rejected cannot be read; the message says why."""


def rejected(url: str, access: KafkaAccess) -> list[Rejected]:
    """Return the events that were rejected and have not been replayed since, the oldest first, each id once.

    What is no record of the gate is passed over: a topic may have been something else once.

    Raises:
        QuarantineError: the topic or the folder cannot be read.
    """
    return still_rejected(_of_topic(KafkaPlace.parse(url), access) if url.startswith(KAFKA) else _of_spool(url))


def still_rejected(found: Iterable[bytes]) -> list[Rejected]:
    """Return of records in any order those that stand: of each id the latest, if it was not replayed after it.

    What came under another event's id does not stand for that one.
    """
    latest: dict[tuple[bytes, bool], Rejected] = {}
    replayed_us: dict[bytes, int] = {}
    for record in found:
        try:
            one = records.of_rejected(record)
        except EnvelopeError:
            continue
        if isinstance(one, records.Replayed):
            replayed_us[one.event_id] = max(one.replayed_us, replayed_us.get(one.event_id, 0))
        elif (key := (one.event_id, one.owns_id)) not in latest or one.arrived_us >= latest[key].arrived_us:
            latest[key] = one
    standing = (one for one in latest.values() if replayed_us.get(one.event_id, -1) < one.arrived_us)
    return sorted(standing, key=lambda one: (one.arrived_us, one.event_id))


def _of_spool(url: str) -> Iterator[bytes]:
    """Yield all records of a spool, those too that a gate has synced and not published yet.

    One that is published meanwhile comes twice, rather than not at all.
    """
    root = Path(url.removeprefix(SPOOL))
    try:
        opened = _opened(root)
        published = (segment.read_bytes() for segment in sorted(root.glob(f"*/*{SEGMENT_SUFFIX}")))
        for data in chain(opened, published):
            yield from (data[frame.start : frame.end] for frame in walk(data) if not frame.fault)
    except OSError as error:
        raise QuarantineError(f"the spool {root} cannot be read: {error.strerror}") from None


def _opened(root: Path) -> list[bytes]:
    """Return the segments that are still written to, as far as they are."""
    found = []
    for segment in sorted(root.glob(f"*/*{OPEN_SUFFIX}")):
        with suppress(FileNotFoundError):
            found.append(segment.read_bytes())
    return found


def _of_topic(place: KafkaPlace, access: KafkaAccess) -> Iterator[bytes]:
    """Yield all values from the beginning of a topic to where it ends now."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415 - who spools does without it

    consumer = Consumer(
        {
            **access.for_librdkafka(place.brokers),
            "group.id": "hopwatch-quarantine",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "log_level": 0,
        }
    )
    try:
        topic = consumer.list_topics(place.topic, timeout=_WAIT_S).topics[place.topic]
        if topic.error is not None:
            raise QuarantineError(f"the topic {place.topic} cannot be read: {topic.error.str()}")
        parts = [TopicPartition(place.topic, number) for number in topic.partitions]
        bounds = {part.partition: consumer.get_watermark_offsets(part, timeout=_WAIT_S) for part in parts}
        left = {number: high for number, (low, high) in bounds.items() if high > low}
        consumer.assign([TopicPartition(place.topic, number, bounds[number][0]) for number in left])
        while left:
            yield from _next(consumer.consume(_AT_ONCE, _WAIT_S), left, place)
    except KafkaException as error:
        raise QuarantineError(f"the topic {place} cannot be read: {words(error)}") from None
    finally:
        consumer.close()


def _next(messages: Sequence[object], left: dict[int, int], place: KafkaPlace) -> Iterator[bytes]:
    from confluent_kafka import Message  # noqa: PLC0415 - as above

    if not messages:
        raise QuarantineError(f"the topic {place} cannot be read: nothing came for {_WAIT_S:g} s")
    for message in messages:
        if not isinstance(message, Message):
            continue
        if (error := message.error()) is not None:
            raise QuarantineError(f"the topic {place} cannot be read: {error.str()}")
        partition, offset = message.partition(), message.offset()
        if partition is None or offset is None:
            continue
        if offset < left.get(partition, 0):
            yield message.value() or b""
        if offset + 1 >= left.get(partition, 0):
            left.pop(partition, None)
