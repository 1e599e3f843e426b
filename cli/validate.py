"""``hopwatch validate``: validate streams that are in Kafka already, by the rules of the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hopwatch.cli import console, metrics_server, signals, waiting_topic
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.cli.metrics_server import MetricsListen
from hopwatch.cli.remote_registry import RegistryUrl, open_remote_registry
from hopwatch.cli.tap import NoIdText
from hopwatch.cli.tap_errors import translate_tap_errors
from hopwatch.cli.topics import AllowWeak, MinInsync, Replication, RetentionHours, check_numbers
from hopwatch.gate.framing import ValueFraming
from hopwatch.monitor import topics
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.store import dialect
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.metrics.account import ComponentAccounts
from hopwatch.probes.metrics.catalog import VALIDATOR
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import TimeUnit

if TYPE_CHECKING:
    from hopwatch.gate.fields import RecordFields
    from hopwatch.gate.record_checks import RecordChecker
    from hopwatch.gate.remote_writers import RemoteWriters
    from hopwatch.gate.rules import FieldPath as Way
    from hopwatch.gate.transactions import OutputTopics
    from hopwatch.gate.validator import Validator
    from hopwatch.monitor.settings import Settings

command = typer.Typer(
    name="validate",
    no_args_is_help=True,
    help="Validate streams that are in Kafka already.",
    rich_markup_mode=None,
)


@command.callback()
def _validate() -> None:
    """Validate streams that are in Kafka already."""


@command.command("kafka")
def kafka(  # noqa: PLR0913 - one parameter a flag
    *,
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str, typer.Option("--stream", help="The stream, one of [gate.streams].")],
    source: Annotated[str, typer.Option("--from", metavar="URL", help="The topic: kafka://HOST:PORT/TOPIC.")],
    group: Annotated[str, typer.Option("--group", help="The consumer group; those of one group share the topic.")],
    framing: Annotated[
        ValueFraming,
        typer.Option(help="What is before a value: 0x81 and SHA-256, 0 and an id, or nothing, as it is JSON."),
    ] = ValueFraming.AUTO,
    id_path: Annotated[
        str | None, typer.Option("--id", metavar="PATH", help="The id stands in the value, such as meta.id.")
    ] = None,
    time_path: Annotated[
        str | None, typer.Option("--time", metavar="PATH", help="The event time stands in it.")
    ] = None,
    time_unit: Annotated[
        TimeUnit | None, typer.Option("--time-unit", help="How it is written there, if the schema does not say.")
    ] = None,
    time_record: Annotated[
        bool, typer.Option("--time-record", help="The record's own time is the event time.")
    ] = False,
    registry: RegistryUrl = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="A new group begins at the topic's start, not at its end.")
    ] = False,
    no_id_text: NoIdText = False,
    metrics_listen: MetricsListen = None,
    allow_weak: AllowWeak = False,
    as_json: Annotated[bool, typer.Option("--json", help="At the end, the counts as one JSON object.")] = False,
) -> None:
    """Validate a topic: copy what is valid, set aside the rest."""
    chosen = load_settings(config)
    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TransportError):
        outputs, brokers = _check_outputs(chosen, stream, source)
        spots = parse_field_paths(id_path, time_path, time_unit, is_record=time_record)
        waiting_topic.check_unknown_schema(chosen, stream, spots)
        if waiting_topic.is_held(chosen, stream):
            waiting = waiting_topic.find_waiting_topic(chosen, stream, outputs, brokers, source)
            outputs = outputs._replace(waiting=waiting)
            waiting_topic.check_waiting_topic(chosen, stream, _print_message, allow_weak=allow_weak)
        validating = _build_validation(chosen, stream, framing, spots, registry)
        validator = _build_validator(
            chosen,
            (source, group),
            (brokers, outputs),
            validating=validating,
            around=around,
            from_start=from_start,
            id_text=not no_id_text,
        )
        where = f"validating {source} as one of the group {group}"
        _print_message(
            f"{where}: what may enter {stream} goes to {outputs.validated}, what may not to {outputs.rejected}"
        )
        accounts = ComponentAccounts(VALIDATOR, {stream: validator.account})
        held = validator.held
        metrics = metrics_server.serve_accounts(
            metrics_listen, lambda: accounts, _print_message, lambda: () if held is None else held.build_samples(stream)
        )
        validator.stamping.start()
        try:
            with metrics:
                validator.run()
        finally:
            # Without a bye the monitor knows that some stamps may be missing.
            validator.stamping.close(bye=not validator.is_in_doubt)
            validator.report_counts()
            if as_json:
                counts = validator.counts
                told = {"read": counts.read, "validated": counts.validated, "rejected": counts.rejected}
                if held is not None:
                    told |= {"held": counts.held, "released": counts.released}
                console.emit_json(told)


@command.command("create-topics")
def create_topics(  # noqa: PLR0913 - what a topic is made of
    streams: Annotated[list[str], typer.Argument(metavar="STREAM...", help="Streams of [gate.streams].")],
    config: Config = DEFAULT_CONFIG,
    *,
    replication: Replication = topics.REPLICATION,
    min_insync: MinInsync = topics.MIN_INSYNC,
    retention_hours: RetentionHours = topics.RETENTION_HOURS,
    allow_weak: AllowWeak = False,
) -> None:
    """Create missing waiting topics.

    Records wait in them for their schema. They have as many partitions as the topic that is validated.
    """
    chosen = load_settings(config)
    check_numbers(replication, min_insync, allow_weak=allow_weak)
    for stream in streams:
        made = waiting_topic.create_waiting_topic(
            chosen, stream, replication=replication, min_insync=min_insync, retention_hours=retention_hours
        )
        if made is not None:
            _print_message(f"made the topic {made[0]}, {made[1]} partitions, {replication} copies")


def parse_field_paths(
    id_path: str | None, time_path: str | None, unit: TimeUnit | None, *, is_record: bool
) -> RecordFields:
    """Parse the flags for the place of id and event time.

    Raises:
        ConfigurationError: they contradict each other, or a path is invalid.
    """
    from hopwatch.gate.fields import RecordFields

    if time_path is not None and is_record:
        raise ConfigurationError("the event time stands in one place, got --time and --time-record: name one of them")
    if unit is not None and time_path is None:
        raise ConfigurationError("--time-unit is how an event time in a value is written: say where with --time")
    return RecordFields(_parse_path("--id", id_path), _parse_path("--time", time_path), unit or TimeUnit.US, is_record)


def _parse_path(flag: str, path: str | None) -> Way | None:
    from hopwatch.gate.rules import FieldPath as Found
    from hopwatch.probes.taps.documents import parse_path

    try:
        return None if path is None else Found(parse_path(path))
    except TapUsageError as error:
        raise ConfigurationError(f"{flag}: {error}") from None


def _check_outputs(chosen: Settings, stream: str, source: str) -> tuple[OutputTopics, str]:
    """Check the output topics of a stream; return them and their brokers.

    Raises:
        ConfigurationError: there are none, or one of them is the input topic.
    """
    from hopwatch.gate.transactions import OutputTopics

    if stream not in chosen.gate.streams:
        known = ", ".join(chosen.gate.streams) or "none"
        raise ConfigurationError(f"--stream: there is no [gate.streams.{stream}], there are: {known}")
    entrance = chosen.gate.streams[stream]
    urls = {"to": entrance.to, "rejected": entrance.rejected_url(stream)}
    for key, url in urls.items():
        if not url.startswith(KAFKA):
            told = f"[gate.streams.{stream}] {key} is {url}, and what is in Kafka goes to topics"
            raise ConfigurationError(f'{told}: name one, such as "{KAFKA}HOST:PORT/TOPIC"')
    places = {key: KafkaPlace.parse(url) for key, url in urls.items()}
    if places["to"].brokers != places["rejected"].brokers:
        told = f"[gate.streams.{stream}] to and rejected are at {places['to'].brokers} and {places['rejected'].brokers}"
        raise ConfigurationError(f"{told}: a transaction lies within one cluster, name the same brokers")
    for key, place in places.items():
        if source.rpartition("/")[2] == place.topic:
            told = f"--from: {place.topic} is what [gate.streams.{stream}] {key} names"
            raise ConfigurationError(f"{told}: what is written there would be read again")
    return OutputTopics(places["to"].topic, places["rejected"].topic), places["to"].brokers


def _build_validation(
    chosen: Settings, stream: str, framing: ValueFraming, spots: RecordFields, url: str | None
) -> RecordChecker:
    """Build the checks of a stream's records; ``url`` is that of a registry which knows the schemas of writers.

    Raises:
        ConfigurationError: they cannot be built from what is said.
        TransportError: the store is down.
    """
    from hopwatch.cli.gate_builder import build_entrance
    from hopwatch.gate.record_checks import RecordChecker, UnknownSchemaPolicy
    from hopwatch.gate.registry.schema_store import SchemaStoreError
    from hopwatch.gate.registry.subjects import Registry, UnknownError
    from hopwatch.gate.resolution_cache import ResolutionCache
    from hopwatch.monitor.store.subjects import SubjectStore
    from hopwatch.probes.clock import SystemClock as ProbeClock

    subject = chosen.gate.streams[stream].subject or stream
    unknown = UnknownSchemaPolicy(chosen.gate.streams[stream].unknown_schema)
    registry = Registry(SubjectStore(dialect.create_engine(chosen.store.url), SystemClock()))
    versions = ResolutionCache(registry, subject, ProbeClock(), None if url is None else _open_writers(url))
    try:
        versions.get_codec()
    except UnknownError:
        advice = f"register it with hopwatch schema register --subject {subject} FILE"
        raise ConfigurationError(f"the subject {subject!r} has no schema: {advice}") from None
    except SchemaStoreError as error:
        raise TransportError(str(error)) from None
    return RecordChecker(stream, versions, build_entrance(chosen, stream).policy, spots, framing, unknown)


def _open_writers(url: str) -> RemoteWriters:
    from hopwatch.gate.remote_writers import RemoteWriters
    from hopwatch.probes.clock import SystemClock as ProbeClock

    return RemoteWriters(open_remote_registry(url), ProbeClock())


def _build_validator(  # noqa: PLR0913 - what a flag each says
    chosen: Settings,
    read: tuple[str, str],
    written: tuple[str, OutputTopics],
    *,
    validating: RecordChecker,
    around: RunContext,
    from_start: bool,
    id_text: bool,
) -> Validator:
    """Build the validator, after checking its topics."""
    from hopwatch.cli.gate_builder import build_stamping
    from hopwatch.gate.held_records import HeldRecords
    from hopwatch.gate.retry import KafkaRetry
    from hopwatch.gate.topic_source import TopicSource
    from hopwatch.gate.transactions import TransactionalWriter
    from hopwatch.gate.validator import Validator, find_lookback_us
    from hopwatch.probes.taps.topic import SourceTopic

    (url, group), (brokers, outputs), patience = read, written, KafkaRetry(around)
    access = chosen.transport.access
    topic = SourceTopic(url, group, around, from_start=True, access=access)
    topic.check()
    turns = TransactionalWriter(brokers, outputs, access, group=group, patience=patience)
    turns.check(topic.read_cluster_id())
    source = TopicSource(
        topic, patience, around, from_start=from_start, back_us=find_lookback_us(validating.policy.rules)
    )
    held = None
    if outputs.waiting:
        hold_us, place = chosen.gate.streams[validating.stream].hold_for_us, KafkaPlace(brokers, outputs.waiting)
        group += waiting_topic.GROUP_SUFFIX
        waiting = SourceTopic(str(place), group, around, from_start=True, access=access)
        waiting.check()
        held_source = TopicSource(waiting, patience, around, from_start=True)
        held = HeldRecords(held_source, validating, hold_us, around, name=outputs.waiting)
    stamping = build_stamping(chosen, validating.stream, id_text=id_text)
    return Validator(source, validating, turns, stamping=stamping, around=around, held=held)


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch validate: {what}")
