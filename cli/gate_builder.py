"""Builds the gate and its parts from the settings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hopwatch.gate import rules
from hopwatch.gate.event_checks import EventPolicy
from hopwatch.gate.gate import Gate
from hopwatch.gate.intake import EventIntake, GateStream
from hopwatch.gate.outlets import open_outlet
from hopwatch.gate.producers import Producer, Producers
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.rules import Action, EventRule, FieldPath, RuleCheck
from hopwatch.gate.stamper import GateStamper
from hopwatch.gate.throttle.group_offsets import GroupOffsetsReader
from hopwatch.gate.throttle.stream_throttle import StreamThrottle
from hopwatch.monitor.clock import SystemClock as MonitorClock
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.clock import SystemClock
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.sinks import Sink, open_sink
from hopwatch.probes.sinks.kafka import KafkaSink

if TYPE_CHECKING:
    from hopwatch.gate.outlets.change_topic import ChangeTopic
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.settings.gate import AnyRule


def build_gate(chosen: Settings, streams: Iterable[str] | None = None) -> Gate:
    """Build the gate with an entrance for each named stream, or for all; nothing is connected yet."""
    producers = [build_producer(chosen, name) for name in chosen.gate.producers]
    intakes = {stream: build_intake(chosen, stream) for stream in streams or chosen.gate.streams}
    return Gate(intakes, SystemClock(), Producers(producers))


def build_intake(chosen: Settings, stream: str) -> EventIntake:
    """Build the intake of one stream."""
    said, access, clock = chosen.gate.streams[stream], chosen.transport.access, SystemClock()
    return EventIntake(
        build_entrance(chosen, stream),
        open_outlet(said.to, stream, access, clock),
        open_outlet(said.rejected_url(stream), "", access, clock),
        stamping=build_stamping(chosen, stream),
        clock=clock,
        throttle=build_throttle(chosen, stream),
    )


def build_throttle(chosen: Settings, stream: str) -> StreamThrottle | None:
    """Build the throttle of a stream; None if it has none."""
    said = chosen.gate.streams[stream].throttle
    if said is None:
        return None
    return StreamThrottle(stream, said.target_us / 1e6, SystemClock(), is_dry_run=said.dry_run)


def open_group_reader(chosen: Settings, stream: str) -> GroupOffsetsReader:
    """Open the reader of the offsets that the throttle of a stream looks at; nothing is connected yet."""
    entrance = chosen.gate.streams[stream]
    place = entrance.find_throttle_place()
    assert place is not None  # noqa: S101 - the settings were checked
    assert entrance.throttle is not None  # noqa: S101 - there is a throttle
    return GroupOffsetsReader(place, entrance.throttle.group, chosen.transport.access)


def open_registry(chosen: Settings) -> Registry:
    """Open the registry in the configured store, and create the store if it does not exist."""
    return Registry(open_schema_store(chosen))


def open_schema_store(chosen: Settings) -> SubjectStore:
    """Open the schemas in the configured store, and create the store if it does not exist."""
    engine = dialect.create_engine(chosen.store.url)
    schema.prepare_store(engine)
    return SubjectStore(engine, MonitorClock())


def open_change_topic(chosen: Settings) -> ChangeTopic | None:
    """Open the topic of registrations; None without one. Nothing is connected yet."""
    if chosen.gate.registry is None:
        return None
    from hopwatch.gate.outlets.change_topic import ChangeTopic

    return ChangeTopic(KafkaPlace.parse(chosen.gate.registry.changes_topic), chosen.transport.access)


def build_stamping(chosen: Settings, stream: str, *, id_text: bool = True) -> GateStamper:
    """Build the stamping of events at the entrance of a stream, into the configured transport."""
    node = chosen.gate.streams[stream].node
    sink = open_stamp_sink(chosen, f"{stream}.{node}.gate-{os.getpid()}")
    return GateStamper(stream, node, sink, SystemClock(), id_text=id_text)


def build_entrance(chosen: Settings, stream: str) -> GateStream:
    """Build the entrance of a stream: its subject and rules."""
    subject = chosen.gate.streams[stream].subject or stream
    own = tuple(build_rule(rule) for rule in chosen.gate.rules if rule.subject == subject)
    return GateStream(stream, subject, EventPolicy(chosen.streams[stream].max_age_us, own))


def build_rule(said: AnyRule) -> EventRule:
    """Build a rule from its settings."""
    return EventRule(said.display_name, _build_check(said), Action(said.action))


def build_producer(chosen: Settings, name: str) -> Producer:
    """Build a producer from its settings; it owns the subjects of its streams."""
    said = chosen.gate.producers[name]
    hashes = tuple(bytes.fromhex(one.partition(":")[2]) for one in said.tokens)
    own = frozenset(chosen.gate.streams[stream].subject or stream for stream in said.streams)
    return Producer(
        name, hashes, frozenset(said.streams), said.events_per_second, said.bytes_per_second, own | {*said.subjects}
    )


def _build_check(said: AnyRule) -> RuleCheck:
    if said.kind == "freshness":
        return rules.Freshness(said.within_us)
    field = FieldPath.parse(said.field)
    match said.kind:
        case "required":
            return rules.Required(field)
        case "range":
            return rules.NumberRange(field, said.min, said.max)
        case "pattern":
            return rules.Pattern(field, said.pattern)
        case "enumeration":
            return rules.Enumeration(field, said.values)
        case "uniqueness":
            return rules.Uniqueness(field, said.within_us)


def open_stamp_sink(chosen: Settings, instance: str) -> Sink:
    """Open the sink of a command's own stamps; for Kafka with the monitor's access."""
    clock, place = SystemClock(), chosen.transport.kafka_place
    named = f"{instance}.{clock.wall_ns()}"
    if place is None:
        return open_sink(chosen.transport.url, named, clock)
    return KafkaSink(place, named, clock, access=chosen.transport.access)
