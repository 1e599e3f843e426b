"""Topics of deliveries: what has to be there, what is wrong with it, and how missing ones are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.monitor import topics
from hopwatch.monitor.topics import TopicDescription, TopicProblem
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace

DAY_MS: Final = 86_400_000
_CLEANUP: Final = "cleanup.policy"
_RETENTION: Final = "retention.ms"
_INSYNC: Final = "min.insync.replicas"
_MESSAGE_BYTES: Final = "max.message.bytes"
_DEFAULT_BYTES: Final = 1_048_588
"""Kafka's default of the largest record."""
_ADDED_BYTES: Final = 64 * 1024
"""Bytes that a delivery adds to a message at most: reasons and headers."""


class TopicNeed(NamedTuple):
    """Topic that a delivery, or a validator whose records wait, needs.

    ``least_ms`` is the time for which it has to keep records. One that is written can be made by ``command``; of its
    ``source`` its owner knows what it is to be. ``is_compacted`` is the topic that keeps the pauses.
    """

    place: KafkaPlace
    delivery: str
    least_ms: int = topics.MIN_RETENTION_MS
    is_source: bool = False
    is_compacted: bool = False
    command: str = "hopwatch deliver create-topics"


def find_problems(need: TopicNeed, access: KafkaAccess) -> Iterator[TopicProblem]:
    """Yield the problems of a topic that a delivery needs, those that no flag allows first.

    Raises:
        TransportError: no broker answers, or none lets us in.
    """
    found = topics.describe_topic(need.place, access)
    if found is None:
        what = f"the topic {need.place.topic} is not on {need.place.brokers}"
        advice = f"make it with '{need.command} {need.delivery}'"
        if need.is_source:
            advice = f"make it, or correct from of [deliver.{need.delivery}]"
        yield TopicProblem(what, advice, is_readable=False)
        return
    yield from _find_cleanup_problems(need, found)
    yield from topics.find_weaknesses(need.place, found, 0 if need.is_compacted else need.least_ms)


def _find_cleanup_problems(need: TopicNeed, found: TopicDescription) -> Iterator[TopicProblem]:
    cleanup = found.config.get(_CLEANUP, "delete")
    name = f"the topic {need.place.topic} has {_CLEANUP}={cleanup}"
    if need.is_compacted and "delete" in cleanup:
        yield TopicProblem(f"{name}, and pauses in it would age out", "make it anew, or set it to compact")
    if not need.is_compacted and not need.is_source and "compact" in cleanup:
        yield TopicProblem(f"{name}, which deletes messages that wait", "set it to delete")


def find_message_bytes(source: TopicDescription) -> int:
    """Return the size of the largest record that a topic takes."""
    return int(source.config.get(_MESSAGE_BYTES, _DEFAULT_BYTES))


class TopicNumbers(NamedTuple):
    """Numbers that a topic is made with; ``message_bytes`` is the largest record of the source."""

    partitions: int
    replication: int
    min_insync: int
    retention_hours: int
    message_bytes: int


def create_missing(need: TopicNeed, access: KafkaAccess, numbers: TopicNumbers) -> bool:
    """Make a topic that a delivery writes, if it is missing; return whether it was.

    Raises:
        ConfigurationError: the brokers do not take these numbers.
        TransportError: no broker answers, or none lets us in.
    """
    if need.is_source or topics.describe_topic(need.place, access) is not None:
        return False
    kept_ms = max(numbers.retention_hours * 3_600_000, need.least_ms)
    if need.is_compacted:
        kept = {_CLEANUP: "compact"}
    else:
        most_bytes = max(numbers.message_bytes, _DEFAULT_BYTES) + _ADDED_BYTES
        kept = {_CLEANUP: "delete", _RETENTION: str(kept_ms), _MESSAGE_BYTES: str(most_bytes)}
    topics.create_topic(
        need.place,
        access,
        partitions=numbers.partitions,
        replication=numbers.replication,
        config=kept | {_INSYNC: str(numbers.min_insync)},
    )
    return True
