"""Builds deliveries and their parts from the settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hopwatch.cli.gate_builder import open_stamp_sink
from hopwatch.deliver.assignment import Assignment
from hopwatch.deliver.figures import DeliveryFigures
from hopwatch.deliver.kafka_delivery import KafkaDelivery
from hopwatch.deliver.kafka_records import RecordParser
from hopwatch.deliver.kafka_settlement import KafkaSettlementSink
from hopwatch.deliver.kafka_source import DeliverySource
from hopwatch.deliver.policy import BodyFormat, DeliveryPolicy, Order
from hopwatch.deliver.retry_topics import DeliveryTopics, build_topics
from hopwatch.deliver.stamper import RETRIER_DELAY_S, DeliveryStamper
from hopwatch.gate.retry import KafkaRetry
from hopwatch.gate.transactions import TransactionalWriter
from hopwatch.monitor.delivery_topics import DAY_MS, TopicNeed
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.texts.time_spans import format_duration
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.http.address_rules import refusal_reason
from hopwatch.probes.metrics.account import Account
from hopwatch.probes.probe import Probe
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.topic import SourceTopic
from hopwatch.probes.values import TimeUnit

if TYPE_CHECKING:
    from hopwatch.deliver.http_client import HttpReceiver
    from hopwatch.gate.records import RejectedRecord
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.settings.deliver import DeliverySettings

RETRIER_SUFFIX = ".retrier"
"""End of the group that reads the retry topics."""
MAX_FETCHED_KBYTES = 16 * 1_024
"""Messages that the client of a delivery reads ahead, in KiB."""


@dataclass(frozen=True, slots=True)
class BuiltDelivery:
    """Delivery with its policy, its receiver and its figures; nothing is connected yet."""

    delivery: KafkaDelivery
    policy: DeliveryPolicy
    receiver: HttpReceiver
    figures: DeliveryFigures


def select_deliveries(chosen: Settings, names: Sequence[str]) -> dict[str, DeliverySettings]:
    """Return the named deliveries, all without a name.

    Raises:
        ConfigurationError: there is none, or none of such a name.
    """
    if not chosen.deliver:
        raise ConfigurationError("there is nothing to deliver: add a table [deliver.NAME] with stream, from and url")
    unknown = [name for name in names if name not in chosen.deliver]
    if unknown:
        known = ", ".join(chosen.deliver)
        raise ConfigurationError(f"there is no [deliver.{unknown[0]}], there are: {known}")
    return {name: chosen.deliver[name] for name in dict.fromkeys(names or chosen.deliver)}


def find_topics(said: DeliverySettings, name: str) -> DeliveryTopics:
    """Return the topics of a delivery."""
    rejected = KafkaPlace.parse(said.rejected_url()).topic
    return build_topics(said.place.topic, name, said.retry_us, rejected)


def find_group(said: DeliverySettings, name: str, *, is_retrier: bool) -> str:
    """Return the consumer group that reads the source of a delivery, or its retry topics."""
    return said.group_name(name) + (RETRIER_SUFFIX if is_retrier else "")


def find_needs(said: DeliverySettings, name: str) -> list[TopicNeed]:
    """Return the topics that a delivery needs, its source first."""
    from hopwatch.deliver.control_topic import CONTROL_TOPIC

    topics, brokers = find_topics(said, name), said.place.brokers
    waiting = [
        TopicNeed(KafkaPlace(brokers, tier.topic), name, tier.wait_us // 1_000 + DAY_MS) for tier in topics.tiers
    ]
    return [
        TopicNeed(said.place, name, is_source=True),
        TopicNeed(KafkaPlace(brokers, topics.rejected), name, DAY_MS),
        *waiting,
        TopicNeed(KafkaPlace(brokers, CONTROL_TOPIC), name, is_compacted=True),
    ]


def build_policy(said: DeliverySettings) -> DeliveryPolicy:
    """Build the policy of a delivery."""
    secret = said.read_secret("secret")
    return DeliveryPolicy(
        url=said.url,
        headers=tuple((header, value.get_secret_value()) for header, value in said.headers.items()),
        body_format=BodyFormat(said.body),
        batch_max_events=said.batch,
        batch_max_bytes=said.batch_bytes,
        linger_s=said.linger_us / 1e6,
        parallel=said.parallel,
        timeout_s=said.timeout_us / 1e6,
        order=Order(said.order),
        local_tries=said.tries,
        tiers_s=tuple(wait_us / 1e6 for wait_us in said.retry_us),
        max_age_s=said.max_age_us / 1e6,
        recoverable_statuses=frozenset(said.recoverable),
        signing_secrets=(secret,) if secret else (),
    )


def describe_long_wait(chosen: Settings, name: str, said: DeliverySettings) -> str:
    """Return a warning if a message that needs all retries outlasts the amendments of its window, else nothing."""
    stream, policy = chosen.streams[said.stream], build_policy(said)
    try_us = round((policy.local_time_limit_s + policy.timeout_s + RETRIER_DELAY_S) * 1e6)
    waits_us = sum(tier.wait_us + try_us for tier in find_topics(said, name).tiers)
    if waits_us <= stream.transit_us + stream.amend_for_us:
        return ""
    told = f"a message that needs all retries of {name} waits up to {format_duration(waits_us)}"
    amended = f"windows of {said.stream} are amended for {format_duration(stream.amend_for_us)}"
    return f"{told}, and {amended}: they would stay UNKNOWN: raise amend_for of [streams.{said.stream}]"


def check_address(said: DeliverySettings, name: str) -> None:
    """Check that the receiver is not at an address that nothing is sent to; names are checked when they are resolved.

    Raises:
        ConfigurationError: it is.
    """
    host = (urlsplit(said.url).hostname or "").partition("%")[0]
    try:
        reason = refusal_reason(ip_address(host))
    except ValueError:
        return
    if reason:
        raise ConfigurationError(f"[deliver.{name}] url is at {host}, {reason}: nothing is sent there")


def build_delivery(
    chosen: Settings, name: str, account: Account, around: RunContext, *, is_retrier: bool
) -> BuiltDelivery:
    """Build a delivery, or its retrier.

    Raises:
        ConfigurationError: a path of its id or event time is invalid.
        TapSourceError: its topic cannot be reached, or does not exist.
    """
    said = chosen.deliver[name]
    policy = build_policy(said)
    topics, access, brokers = find_topics(said, name), chosen.transport.access, said.place.brokers
    group = find_group(said, name, is_retrier=is_retrier)
    reads = [tier.topic for tier in topics.tiers] if is_retrier else [topics.source]
    try:
        parser = RecordParser(topics, said.id_json, said.time_json, TimeUnit(said.time_unit))
        url = str(KafkaPlace(brokers, reads[0]))
        source_topic = SourceTopic(
            url,
            group,
            around,
            from_start=True,
            access=access,
            more={"client.id": "hopwatch-deliver", "queued.max.messages.kbytes": MAX_FETCHED_KBYTES},
        )
    except TapUsageError as error:
        raise ConfigurationError(f"[deliver.{name}] {error}") from None
    source_topic.check()
    writer = TransactionalWriter(
        brokers, topics.outputs, access, group=group, patience=KafkaRetry(around), client_id="hopwatch-deliver"
    )
    writer.check(source_topic.read_cluster_id())
    stamper = DeliveryStamper(_open_probe(chosen, said), policy.local_time_limit_s + policy.timeout_s)
    assignment = Assignment()
    source = DeliverySource(
        source_topic,
        reads,
        parser,
        assignment=assignment,
        stamper=stamper,
        account=account,
        retry=KafkaRetry(around),
        around=around,
        from_start=said.from_start or is_retrier,
    )
    sink = KafkaSettlementSink(
        said.stream,
        name,
        topics,
        source=source,
        assignment=assignment,
        writer=writer,
        stamper=stamper,
        account=account,
        retry=KafkaRetry(around),
        around=around,
    )
    delivery = KafkaDelivery(name, source, sink, stamper, around)
    return BuiltDelivery(delivery, policy, build_receiver(said), DeliveryFigures(name, source.stamp_waiting))


def build_receiver(said: DeliverySettings) -> HttpReceiver:
    """Build the receiver of a delivery; nothing is connected yet."""
    from hopwatch.deliver.http_client import HttpReceiver, create_tls_context

    context = create_tls_context(said.ca_file, said.certificate_file, said.key_file)
    return HttpReceiver(said.url, said.timeout_us / 1e6, said.parallel, context)


def replay_rejected(
    chosen: Settings, name: str, wanted: Sequence[RejectedRecord], data: bytes | None
) -> list[tuple[RejectedRecord, str]]:
    """Hand rejected messages of a delivery to its retrier; return those that cannot be, each with the reason.

    Raises:
        TransportError: the topics cannot be read or written.
    """
    from hopwatch.deliver.replay import find_refusal, read_replayable, replay_messages
    from hopwatch.gate.quarantine import QuarantineError

    said, access, around = chosen.deliver[name], chosen.transport.access, RunContext(lambda _: None)
    topics = find_topics(said, name)
    refused = [(one, why) for one in wanted if (why := find_refusal(one, has_data=data is not None))]
    able = {one for one in wanted if not find_refusal(one, has_data=data is not None)}
    group = find_group(said, name, is_retrier=True)
    writer = TransactionalWriter(said.place.brokers, topics.outputs, access, group=group, patience=KafkaRetry(around))
    try:
        place = KafkaPlace.parse(said.rejected_url())
        found = [one for one in read_replayable(place, access, name) if one.rejected in able]
        if found and not replay_messages(found, name, topics, writer, now_us=around.wall_us(), data=data):
            raise TransportError(f"the topics of {name} were not written: try again, what entered is listed no more")
    except (QuarantineError, TapSourceError) as error:
        raise TransportError(str(error)) from None
    finally:
        writer.close()
    return refused


def _open_probe(chosen: Settings, said: DeliverySettings) -> Probe:
    """Open the probe of a delivery; a topic may have messages of any age, and the delivery may be behind or paused."""
    sink = open_stamp_sink(chosen, f"{said.stream}.{said.node}.deliver-{os.getpid()}")
    return Probe(said.stream, said.node, sink, max_age_s=None, follows=True, close_on_sigterm=False)
