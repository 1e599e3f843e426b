"""Waiting topic of a validator: its checks before it starts, and the command that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hopwatch.cli.topics import format_allowed, with_allow_flag
from hopwatch.monitor import topics
from hopwatch.monitor.delivery_topics import DAY_MS, TopicNeed, TopicNumbers, create_missing, find_problems
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.texts.time_spans import format_duration
from hopwatch.probes.contract.kafka import KafkaPlace

if TYPE_CHECKING:
    from collections.abc import Callable

    from hopwatch.gate.fields import RecordFields
    from hopwatch.gate.transactions import OutputTopics
    from hopwatch.monitor.settings import Settings

GROUP_SUFFIX: Final = ".waiting"
"""End of the group that reads the waiting topic."""
CREATE: Final = "hopwatch validate create-topics"


def is_held(chosen: Settings, stream: str) -> bool:
    """Return whether records of a stream wait for their schema."""
    return chosen.gate.streams[stream].unknown_schema == "hold"


def check_unknown_schema(chosen: Settings, stream: str, spots: RecordFields) -> None:
    """Check that what is to become of records of unknown schemas can be done.

    Raises:
        ConfigurationError: it cannot: id or event time stand in the value, or what waits would have to be unique.
    """
    entrance = chosen.gate.streams[stream]
    told, subject = f"[gate.streams.{stream}] unknown_schema is {entrance.unknown_schema}", entrance.subject or stream
    if entrance.unknown_schema != "reject" and (spots.id_path is not None or spots.time_path is not None):
        told = f"{told}, and a value whose schema is not known cannot be read"
        raise ConfigurationError(f"{told}: leave --id and --time out, so that they stand in headers")
    for rule in chosen.gate.rules:
        if entrance.unknown_schema == "hold" and rule.kind == "uniqueness" and rule.subject == subject:
            told = (
                f"{told}, and the rule {rule.display_name!r} cannot tell what was unique when a record came that waits"
            )
            raise ConfigurationError(f"{told}: take another unknown_schema, or leave the rule out")


def find_waiting_topic(chosen: Settings, stream: str, outputs: OutputTopics, brokers: str, source: str) -> str:
    """Return the name of the waiting topic.

    Raises:
        ConfigurationError: it is in another cluster than the outputs, or one of the other topics.
    """
    place = find_place(chosen, stream)
    told = f"[gate.streams.{stream}] waiting is {place}"
    if place.brokers != brokers:
        raise ConfigurationError(f"{told}, and to is at {brokers}: a transaction lies within one cluster")
    if place.topic in {outputs.validated, outputs.rejected, source.rpartition("/")[2]}:
        raise ConfigurationError(f"{told}, which is read or written otherwise: name a topic of its own")
    return place.topic


def find_place(chosen: Settings, stream: str) -> KafkaPlace:
    """Return where records of a stream wait.

    Raises:
        ConfigurationError: it is no topic.
    """
    try:
        return KafkaPlace.parse(chosen.gate.streams[stream].waiting_url(stream))
    except ValueError as error:
        raise ConfigurationError(f"[gate.streams.{stream}] waiting: {error}") from None


def check_waiting_topic(chosen: Settings, stream: str, report: Callable[[str], None], *, allow_weak: bool) -> None:
    """Check the waiting topic; report a weakness that is allowed, and waits that outlast the amendments of a window.

    Raises:
        TransportError: it is missing, unfit or weak, or no broker answers.
    """
    for problem in find_problems(_build_need(chosen, stream), chosen.transport.access):
        if not (allow_weak and problem.is_weak):
            raise TransportError(str(with_allow_flag(problem)))
        report(format_allowed(problem))
    if told := describe_long_hold(chosen, stream):
        report(told)


def describe_long_hold(chosen: Settings, stream: str) -> str:
    """Return a warning if a record may wait for longer than its window is amended, else nothing."""
    from hopwatch.gate.held_records import SETTLED_WITHIN_US

    said, hold_us = chosen.streams[stream], chosen.gate.streams[stream].hold_for_us
    if hold_us + SETTLED_WITHIN_US <= said.transit_us + said.amend_for_us:
        return ""
    told = f"records wait up to {format_duration(hold_us)}, and windows of {stream} are amended for"
    return (
        f"{told} {format_duration(said.amend_for_us)}: they would stay UNKNOWN: raise amend_for of [streams.{stream}]"
    )


def create_waiting_topic(
    chosen: Settings, stream: str, *, replication: int, min_insync: int, retention_hours: int
) -> tuple[str, int] | None:
    """Make the waiting topic of a stream with as many partitions as the topic of what is validated.

    Return its name and its partitions, None if it is there.

    Raises:
        ConfigurationError: no records of the stream wait, or the brokers do not take these numbers.
        TransportError: no broker answers, or the topic of what is validated is missing.
    """
    if stream not in chosen.gate.streams or not is_held(chosen, stream):
        raise ConfigurationError(f'no records of {stream} wait: [gate.streams.{stream}] has no unknown_schema = "hold"')
    need, access = _build_need(chosen, stream), chosen.transport.access
    to = KafkaPlace.parse(chosen.gate.streams[stream].to)
    found = topics.describe_topic(to, access)
    if found is None:
        raise TransportError(f"the topic {to.topic} is not on {to.brokers}: make it first")
    numbers = TopicNumbers(found.partitions, replication, min_insync, retention_hours, 0)
    return (need.place.topic, found.partitions) if create_missing(need, access, numbers) else None


def _build_need(chosen: Settings, stream: str) -> TopicNeed:
    least_ms = chosen.gate.streams[stream].hold_for_us // 1_000 + DAY_MS
    return TopicNeed(find_place(chosen, stream), stream, least_ms, command=CREATE)
