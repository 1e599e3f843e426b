"""``hopwatch tap``: sidecars that stamp messages: lines of a file, a topic, HTTP requests, snapshots of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hopwatch.cli import console, import_files, metrics_server, remote_registry, signals, topic_tap_flags
from hopwatch.cli.configuration import load_streams
from hopwatch.cli.metrics_server import MetricsListen
from hopwatch.cli.tap_errors import translate_tap_errors
from hopwatch.monitor.errors import ConfigurationError, TapDownError
from hopwatch.probes.contract.limits import NAME_PATTERN
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.metrics.account import ComponentAccounts
from hopwatch.probes.metrics.catalog import JSONL_TAP, KAFKA_TAP, TABLE_TAP
from hopwatch.probes.taps.avro import AvroFraming
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.framing import RecordFraming
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.unknown_schemas import MAX_HOLD_S, UnknownSchema
from hopwatch.probes.values import IdFormat, TimeUnit

if TYPE_CHECKING:
    from hopwatch.probes.taps.avro import AvroValues
    from hopwatch.probes.taps.http.refusals import NodeName
    from hopwatch.probes.taps.otlp.intake import SpanIntake
    from hopwatch.probes.taps.stamper import TapStamper

STANDARD_INPUT: Final = "-"
STANDARD_INPUT_FILE: Final = 0
LOCAL: Final = "127.0.0.1"

command = typer.Typer(
    name="tap",
    no_args_is_help=True,
    help="Stamp the messages of a service from a sidecar, without changes to the service.",
    rich_markup_mode=None,
)

Stream = Annotated[str, typer.Option("--stream", help="The stream that the messages belong to.")]
Node = Annotated[str, typer.Option("--node", help="The node that they arrive at, or leave.")]
Sink = Annotated[str | None, typer.Option("--sink", help="Where stamps go; HOPWATCH_SINK without it.")]
Stamp = Annotated[StampSide, typer.Option("--stamp", help="in: the messages arrive at the node; out: they leave it.")]
IdAs = Annotated[IdFormat, typer.Option("--id-as", help="What the id is to be read as; auto knows a UUID by its form.")]
Unit = Annotated[TimeUnit, typer.Option("--time-unit", help="How the event time is written.")]
IgnoreBad = Annotated[
    bool, typer.Option("--ignore-bad", help="What cannot be read is no message: do not report it as dropped.")
]
Bye = Annotated[
    bool, typer.Option("--bye", help="When stopped, say that the service has ended too, or that another tap goes on.")
]
NoIdText = Annotated[
    bool, typer.Option("--no-id-text", help="Send of ids that are texts the hashes alone, where texts are secret.")
]
AsJson = Annotated[bool, typer.Option("--json", help="At the end, what was done, as one JSON object on stdout.")]

Host = Annotated[str, typer.Option("--host", help="The address to listen on; there is no authentication.")]
NodesConfig = Annotated[
    Path | None, typer.Option("--config", help="Stamp for the nodes that this file declares, and no others.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="STREAM/NODE", help="Stamp for this node, and no others; may be repeated."),
]


@command.command("jsonl")
def jsonl(  # noqa: PLR0913 - one parameter a flag
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that others write and rotate, or - for a pipe.")],
    *,
    stream: Stream,
    node: Node,
    id_path: Annotated[str, typer.Option("--id", metavar="PATH", help="Where the id is, such as meta.id.")],
    time_path: Annotated[str, typer.Option("--time", metavar="PATH", help="Where the event time is.")],
    sink: Sink = None,
    stamp: Stamp = StampSide.IN,
    id_as: IdAs = IdFormat.AUTO,
    time_unit: Unit = TimeUnit.US,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keeps the position, so that a restart skips nothing.")
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Without a position begin at the file's start, not at its end.")
    ] = False,
    ignore_bad: IgnoreBad = False,
    no_id_text: NoIdText = False,
    bye: Bye = False,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
) -> None:
    """Stamp each line of a file of JSON as it is written, or of a pipe."""
    from hopwatch.probes.taps.documents import DocumentReader
    from hopwatch.probes.taps.jsonl import JsonLinesTap, LineSource, Pipe, open_followed_file
    from hopwatch.probes.taps.stamper import TapStamper
    from hopwatch.probes.taps.startup import find_sink_url, open_probe
    from hopwatch.probes.taps.state import StateFile

    is_piped = file == STANDARD_INPUT
    if is_piped and (state is not None or from_start):
        raise ConfigurationError("standard input has no position: --state and --from-start are for files")
    around = RunContext(_print_message)
    kept = None if state is None or is_piped else StateFile(state, Path(file))
    with (
        signals.stop_on_signals(around.stop),
        translate_tap_errors(TapDownError),
        kept.lock() if kept else nullcontext(),
    ):
        reader = DocumentReader(id_path, time_path, id_as, time_unit)
        source: LineSource = (
            Pipe(STANDARD_INPUT_FILE)
            if is_piped
            else open_followed_file(Path(file), around, kept, from_start=from_start)
        )
        opened = open_probe(stream, node, sink, around, id_text=not no_id_text)
        stamping = TapStamper(opened, stamp, around, are_bad_messages=not ignore_bad)
        what = "reading standard input" if is_piped else f"following {file}"
        _print_message(f"{what}, stamps go to {find_sink_url(sink)}")
        _print_message(f"the event time is at {time_path} of each line, written in {time_unit}")
        if not is_piped and kept is None:
            _print_message("without --state a restart begins at the file's end: what is written until then goes unseen")
        accounts = ComponentAccounts(JSONL_TAP, {stream: stamping.account})
        metrics = metrics_server.serve_accounts(metrics_listen, lambda: accounts, _print_message)
        with _closing_probe(stamping, around, as_json=as_json, bye=lambda: bye or source.is_over), metrics:
            JsonLinesTap(source, reader, stamping, around, kept).run()


@command.command("kafka")
def kafka(  # noqa: PLR0913 - one parameter a flag
    context: typer.Context,
    *,
    source: Annotated[str, typer.Option("--from", metavar="URL", help="The topic: kafka://HOST:PORT/TOPIC.")],
    group: Annotated[str, typer.Option("--group", help="The consumer group; taps of one group share the topic.")],
    stream: Stream,
    node: Node,
    sink: Sink = None,
    stamp: Stamp = StampSide.IN,
    framing: Annotated[
        RecordFraming, typer.Option(help="debezium: change records, whose id and event time need no other flags.")
    ] = RecordFraming.PLAIN,
    id_header: Annotated[str, typer.Option(help="The header that the id stands in.")] = ID_HEADER,
    time_header: Annotated[str, typer.Option(help="The header that the event time stands in.")] = TIME_HEADER,
    id_json: Annotated[str | None, typer.Option(metavar="PATH", help="The id stands in a JSON value.")] = None,
    time_json: Annotated[str | None, typer.Option(metavar="PATH", help="The event time stands in it.")] = None,
    id_avro: Annotated[str | None, typer.Option(metavar="PATH", help="The id stands in an Avro value.")] = None,
    time_avro: Annotated[str | None, typer.Option(metavar="PATH", help="The event time stands in it.")] = None,
    avro_schema: Annotated[Path | None, typer.Option(metavar="FILE", help="The schema of all Avro values.")] = None,
    registry: remote_registry.RegistryUrl = None,
    avro_framing: Annotated[
        AvroFraming | None,
        typer.Option(
            help="What is before the value: 0x81 and SHA-256, 0 and an id, or nothing. confluent without it; with"
            " --registry the first byte tells."
        ),
    ] = None,
    unknown_schema: Annotated[
        UnknownSchema,
        typer.Option(help="A message whose schema is not registered counts as bad, or waits until it is."),
    ] = UnknownSchema.REJECT,
    hold: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="How long it waits at most, with --unknown-schema hold.")
    ] = MAX_HOLD_S,
    time_record: Annotated[
        bool, typer.Option("--time-record", help="The record's own time is the event time.")
    ] = False,
    take: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Of a topic of many types those of one: type:NAME, schema:FINGERPRINT or header:NAME=VALUE.",
        ),
    ] = None,
    id_as: IdAs = IdFormat.AUTO,
    time_unit: Unit = TimeUnit.US,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="A new group begins at the topic's start, not at its end.")
    ] = False,
    ignore_bad: IgnoreBad = False,
    no_id_text: NoIdText = False,
    bye: Bye = False,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
) -> None:
    """Stamp each message of a topic, as one of a consumer group.

    Access to the brokers is told by HOPWATCH_TRANSPORT__KAFKA__…, as for sinks, to a registry by HOPWATCH_REGISTRY_….
    """
    from hopwatch.probes.taps.debezium import DebeziumReader
    from hopwatch.probes.taps.kafka import KafkaTap
    from hopwatch.probes.taps.messages import MessageReader, RecordReader, choose_field
    from hopwatch.probes.taps.selection import parse_selection
    from hopwatch.probes.taps.stamper import TapStamper
    from hopwatch.probes.taps.startup import find_sink_url, open_probe
    from hopwatch.probes.taps.topic import SourceTopic

    topic_tap_flags.check_topic_flags(context)
    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TapDownError):
        avro = _open_schemas(avro_schema, registry, avro_framing, around, (unknown_schema, hold))
        reader: RecordReader
        if framing is RecordFraming.DEBEZIUM:
            reader, time_source = DebeziumReader(avro), "that of the change, as its database says it"
        else:
            time_spot = choose_field("time", time_header, time_json, time_avro, is_record=time_record)
            time_source = time_spot.describe(time_unit)
            reader = MessageReader(
                choose_field("id", id_header, id_json, id_avro),
                time_spot,
                id_kind=id_as,
                unit=time_unit,
                avro=avro,
                selection=None if take is None else parse_selection(take),
            )
        topic = SourceTopic(source, group, around, from_start=from_start)
        topic.check()
        opened = open_probe(stream, node, sink, around, id_text=not no_id_text)
        stamping = TapStamper(opened, stamp, around, are_bad_messages=not ignore_bad)
        _print_message(f"following {topic.place} as one of the group {group}, stamps go to {find_sink_url(sink)}")
        _print_message(f"the event time is {time_source}")
        accounts = ComponentAccounts(KAFKA_TAP, {stream: stamping.account})
        metrics = metrics_server.serve_accounts(metrics_listen, lambda: accounts, _print_message)
        with _closing_probe(stamping, around, as_json=as_json, bye=lambda: bye), metrics:
            KafkaTap(topic, reader, stamping, around).run()


@command.command("files")
def files(  # noqa: PLR0913 - one parameter a flag
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that finished files come to.")],
    *,
    stream: Stream,
    node: Node,
    id_column: import_files.IdColumn,
    time_column: import_files.TimeColumn,
    sink: Sink = None,
    time_unit: import_files.Unit = TimeUnit.US,
    zone: import_files.Zone = None,
    stamp: import_files.Stamp = None,
    id_as: IdAs = IdFormat.AUTO,
    arrived: import_files.Arrived = None,
    departed: import_files.Departed = None,
    server: import_files.Server = None,
    server_from: import_files.ServerFrom = None,
    file_format: import_files.Format = "auto",
    slices: import_files.SlicesOption = None,
    servers: import_files.Servers = None,
    bye: import_files.ByeOption = False,
    quiet: Annotated[
        float, typer.Option("--quiet", min=0, help="Seconds without a change after which a file is finished.")
    ] = 5.0,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keeps which files are through, so that a restart reads none again.")
    ] = None,
    no_id_text: NoIdText = False,
    as_json: AsJson = False,
) -> None:
    """Stamp the rows of each finished file of a folder.

    As hopwatch import does it, for a monitor that runs.
    """
    plan = import_files.build_plan(
        stream, node, id_column=id_column, time_column=time_column, time_unit=time_unit, zone=zone, stamp=stamp,
        id_as=id_as, arrived=arrived, departed=departed, server=server, server_from=server_from,
        file_format=file_format, slices=slices, servers=servers, bye=bye, id_text=not no_id_text,
    )  # fmt: skip
    from hopwatch.probes.files.done_files import DoneFiles
    from hopwatch.probes.files.importer import FileResult, Importer
    from hopwatch.probes.files.outputs import open_output
    from hopwatch.probes.files.watcher import FolderTap
    from hopwatch.probes.taps.startup import find_sink_url

    around = RunContext(_print_message)
    told = {"files": 0, "observations": 0, "faults": 0}

    def report(result: FileResult) -> None:
        told["files"] += 1
        told["observations"] += result.observations
        told["faults"] += not result.is_whole
        _print_message(import_files.describe_result(result) or f"{result.name}: {result.observations:,} rows")

    with signals.stop_on_signals(around.stop), translate_tap_errors(TapDownError):
        url = find_sink_url(sink)
        output = open_output(url, around, is_replay=False)
        done = None if state is None else DoneFiles(state, f"{stream} {node} {url} {plan.state_text}")
        with done.lock() if done else nullcontext():
            _print_message(f"watching the folder {folder}, stamps go to {url}")
            FolderTap(folder, Importer(plan, output), output, done, around, report, quiet).run()
    _print_message(f"{told['observations']:,} rows of {told['files']:,} files, {told['faults']:,} of them not whole")
    if as_json:
        console.emit_json(told)


@command.command("http")
def http(  # noqa: PLR0913 - one parameter a flag
    *,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="The port to listen on.")],
    sink: Sink = None,
    host: Host = LOCAL,
    config: NodesConfig = None,
    allow: Allow = None,
    no_id_text: NoIdText = False,
    bye: Bye = False,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
) -> None:
    """Stamp what is posted to /v1/observations, see /openapi.json."""
    from hopwatch.probes.http.granian_server import PortTakenError, ServerAddress, check_port, serve_app
    from hopwatch.probes.taps.http.app import build_app
    from hopwatch.probes.taps.http.intake import ObservationIntake
    from hopwatch.probes.taps.startup import find_sink_url

    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TapDownError, PortTakenError):
        allowed = parse_allowed_nodes(config, allow or [])
        check_port(host, port)
        intake = ObservationIntake(find_sink_url(sink), around, id_text=not no_id_text, allowed=allowed)
        if allowed is None:
            _print_message("any name of a node is taken: --config or --allow say which there are")
        try:
            listening = f"listening on http://{host}:{port}, without authentication"
            with metrics_server.serve_accounts(metrics_listen, intake.accounts, _print_message):
                serve_app(build_app(intake), ServerAddress(host, port), around.stop, lambda: _print_message(listening))
        finally:
            intake.close(bye=bye)
            refused = intake.books.refused_requests
            told = f"{intake.observations:,} observations and {intake.records:,} records taken"
            _print_message(f"{told}, {refused:,} requests refused")
            if as_json:
                told_of = {"observations": intake.observations, "records": intake.records, "refused": refused}
                console.emit_json(told_of)


@command.command("otlp")
def otlp(  # noqa: PLR0913 - one parameter a flag
    *,
    sink: Sink = None,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="The port to listen on.")] = 4_318,
    grpc_port: Annotated[
        int | None, typer.Option("--grpc-port", min=1, max=65_535, help="Listen for OTLP over gRPC, too.")
    ] = None,
    host: Host = LOCAL,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            metavar="SERVICE=N",
            help="At most so many processes of a service run at once; may be repeated. Losses of others are unknown.",
        ),
    ] = None,
    config: NodesConfig = None,
    allow: Allow = None,
    no_id_text: NoIdText = False,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
) -> None:
    """Stamp messages by the spans of OpenTelemetry.

    A receiver of OTLP over HTTP: spans come to /v1/traces, the metrics that SDKs tell of themselves to /v1/metrics. The
    port of OTLP over gRPC is 4317 by convention.
    """
    from hopwatch.probes.http.granian_server import PortTakenError, ServerAddress, check_port, serve_app
    from hopwatch.probes.taps.otlp.app import build_app
    from hopwatch.probes.taps.otlp.intake import KnownServices, SpanIntake
    from hopwatch.probes.taps.startup import find_sink_url

    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TapDownError, PortTakenError):
        allowed, counts = parse_allowed_nodes(config, allow or []), parse_instances(instances or [])
        streams = {} if config is None else load_streams(config).streams
        known = KnownServices(allowed, counts, {name: of.transit_us for name, of in streams.items()})
        if grpc_port == port:
            raise ConfigurationError(f"OTLP over HTTP and over gRPC need a port each, got {port} for both")
        for one in (port, grpc_port):
            if one is not None:
                check_port(host, one)
        intake = SpanIntake(find_sink_url(sink), around, known, id_text=not no_id_text)
        if not counts:
            _print_message("without --instances what is missing at a service is unknown, and no loss")
        try:
            listening = f"listening on http://{host}:{port}, without authentication"
            with (
                metrics_server.serve_accounts(metrics_listen, intake.accounts, _print_message),
                nullcontext() if grpc_port is None else _serving_grpc(intake, host, grpc_port),
            ):
                serve_app(build_app(intake), ServerAddress(host, port), around.stop, lambda: _print_message(listening))
        finally:
            intake.close()
            unused = intake.rejected.total()
            _print_message(f"{intake.spans:,} spans taken, {intake.stamps:,} stamps of messages, {unused:,} not used")
            if as_json:
                told_of = {"spans": intake.spans, "stamps": intake.stamps, "rejected": dict(intake.rejected)}
                console.emit_json(told_of)


@command.command("table")
def table(  # noqa: PLR0913 - one parameter a flag
    address: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="delta:PATH, iceberg:CATALOG/NAMESPACE.TABLE, parquet:DIR, or sql:URL."),
    ],
    *,
    stream: Stream,
    node: Node,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The column of the id.")],
    time_column: Annotated[str, typer.Option("--time", metavar="COLUMN", help="The column of the event time.")],
    sink: Sink = None,
    stamp: Stamp = StampSide.IN,
    id_as: IdAs = IdFormat.AUTO,
    time_unit: Unit = TimeUnit.US,
    zone: Annotated[
        str | None, typer.Option("--zone", help="The zone of event times without one, such as UTC.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keeps the snapshot, so that a restart skips none.")
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Without a state begin at the first snapshot, not behind the present.")
    ] = False,
    sql_table: Annotated[str | None, typer.Option("--table", metavar="NAME", help="sql: the table.")] = None,
    grows: Annotated[
        str | None, typer.Option("--grows", metavar="COLUMN", help="sql: a column whose values only grow.")
    ] = None,
    grace_s: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", min=0, help="sql: how long a transaction takes at most.")
    ] = 30.0,
    every_s: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="How often the table is looked at.")
    ] = 5.0,
    ignore_bad: IgnoreBad = False,
    no_id_text: NoIdText = False,
    bye: Bye = False,
    metrics_listen: MetricsListen = None,
    as_json: AsJson = False,
) -> None:
    """Stamp what has arrived in a table, or a folder of Parquet."""
    from hopwatch.probes.tables.sources import FolderReading, GrowingRows, open_table
    from hopwatch.probes.taps.startup import find_sink_url, open_probe

    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TapDownError):
        reading = FolderReading((id_column, time_column), state)
        opened = open_table(address, around.clock, GrowingRows(sql_table, grows, grace_s), reading)
        from hopwatch.probes.tables.message_rows import RowMapping
        from hopwatch.probes.tables.state import TableState
        from hopwatch.probes.tables.tap import TableTap, open_records_sink

        mapping = RowMapping(id_column, time_column, id_as, time_unit, zone)
        if there := list(opened.find_columns()):
            mapping.check(there, opened.name)
        kept = None if state is None else TableState(state, opened.identity, opened.name)
        with kept.lock() if kept else nullcontext():
            url = find_sink_url(sink)
            records = open_records_sink(url, around)
            probe, _ = open_probe(stream, node, sink, around, id_text=not no_id_text)
            tap = TableTap(
                opened, mapping, stamp, probe, records, around, kept,
                are_bad_messages=not ignore_bad, id_text=not no_id_text,
            )  # fmt: skip
            _print_message(f"reading the snapshots of {opened.name}, stamps go to {url}")
            _print_message(f"the event time is in the column {time_column}, the stamp is the snapshot's commit")
            if kept is None:
                _print_message(
                    "without --state a restart begins behind the present snapshot: what is before it is unknown"
                )
            accounts = ComponentAccounts(TABLE_TAP, {stream: tap.account})
            try:
                with metrics_server.serve_accounts(metrics_listen, lambda: accounts, _print_message):
                    tap.start(from_start=from_start)
                    tap.run(every_s)
            finally:
                tap.close(bye=bye)
                tap.tally.report(around)
                if as_json:
                    console.emit_json(tap.tally.summary(0 if ignore_bad else tap.tally.bad.total()))


def parse_allowed_nodes(config: Path | None, allow: Sequence[str]) -> frozenset[NodeName] | None:
    """Return the allowed nodes of a file and of flags; None allows all.

    Raises:
        ConfigurationError: a name is invalid, or the file is wrong or declares no stream.
    """
    from hopwatch.probes.taps.http.refusals import NodeName

    if config is None and not allow:
        return None
    found = set()
    for said in allow:
        stream, _, node = said.partition("/")
        if not all(NAME_PATTERN.fullmatch(name) for name in (stream, node)):
            raise ConfigurationError(f"--allow is STREAM/NODE, such as orders/router, got {said!r:.80}")
        found.add(NodeName(stream, node))
    if config is not None:
        try:
            streams = load_streams(config).streams
        except ImportError as error:
            told = f"--config needs hopwatch[monitor], of which {error.name} is missing"
            raise ConfigurationError(f"{told}: install it, or name each node with --allow") from None
        found |= {NodeName(stream, node) for stream, of in streams.items() for node in of.pathway.declared}
    return frozenset(found)


def parse_instances(said: Sequence[str]) -> dict[str, int]:
    """Return of services how many processes of each run at once.

    Raises:
        ConfigurationError: one cannot be.
    """
    found: dict[str, int] = {}
    for one in said:
        service, _, number = one.rpartition("=")
        if not NAME_PATTERN.fullmatch(service) or not number.isascii() or not number.isdigit() or int(number) < 1:
            raise ConfigurationError(f"--instances is SERVICE=N, such as billing=2, got {one!r:.80}")
        found[service] = int(number)
    return found


def _open_schemas(
    file: Path | None,
    registry: str | None,
    framing: AvroFraming | None,
    around: RunContext,
    unknown: tuple[UnknownSchema, float],
) -> AvroValues | None:
    """Return the schemas of Avro values; None without any.

    Raises:
        TapUsageError: the file cannot be used.
        ConfigurationError: the registry cannot be used.
    """
    from hopwatch.probes.taps.avro import FileSchema
    from hopwatch.probes.taps.registry_schemas import RegistrySchemas

    if file is not None:
        return FileSchema(file, framing or AvroFraming.CONFLUENT)
    if registry is None:
        return None
    source = remote_registry.open_remote_registry(registry)
    return RegistrySchemas(source, around, framing=framing, unknown=unknown[0], hold_s=unknown[1])


@contextmanager
def _serving_grpc(intake: SpanIntake, host: str, port: int) -> Iterator[None]:
    from hopwatch.probes.taps.otlp.grpc_server import serve_grpc

    with serve_grpc(intake, host, port):
        _print_message(f"listening on {host}:{port} for gRPC, without authentication")
        yield


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch tap: {what}")


@contextmanager
def _closing_probe(
    stamping: TapStamper, around: RunContext, *, as_json: bool, bye: Callable[[], bool]
) -> Iterator[None]:
    """Close the probe at the end of the block, and print the counts."""
    try:
        yield
    finally:
        stamping.probe.close(bye=bye())
        stamping.tally.report(around)
        if as_json:
            console.emit_json(stamping.tally.summary(stamping.probe.dropped))
