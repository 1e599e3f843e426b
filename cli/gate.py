"""``hopwatch gate``: serve the entrances of streams and the schema registry by HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hopwatch.cli import console, metrics_server, signals
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.cli.gate_topics import find_gate_topics, find_topic_problems
from hopwatch.cli.metrics_server import MetricsListen
from hopwatch.cli.topics import AllowWeak, format_allowed, with_allow_flag
from hopwatch.monitor.errors import ConfigurationError, TransportError

if TYPE_CHECKING:
    from hopwatch.gate.gate import Gate
    from hopwatch.gate.outlets.change_topic import ChangeTopic
    from hopwatch.gate.registry.subjects import Registry
    from hopwatch.monitor.settings import Settings

PORT: Final = 8081
"""Default port of Confluent's registry."""
HOST: Final = "127.0.0.1"
TOKEN_BYTES: Final = 32

command = typer.Typer(
    help="Serve the gate for events, and the schema registry.", invoke_without_command=True, rich_markup_mode=None
)


@command.callback()
def gate(  # noqa: PLR0913, PLR0917 - one parameter a flag
    context: typer.Context,
    config: Config = DEFAULT_CONFIG,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where to listen.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; this machine's own alone.")] = HOST,
    health_port: Annotated[
        int | None,
        typer.Option("--health-port", min=1, max=65_535, help="Where health is served too, and nothing else."),
    ] = None,
    metrics_listen: MetricsListen = None,
    allow_weak: AllowWeak = False,  # noqa: FBT002 - a flag, which has no place
) -> None:
    """Serve the gate for events and the schema registry, see /openapi.json; Confluent's clients can use it."""
    if context.invoked_subcommand is None:
        found = load_settings(config)
        _check_topics(found, allow_weak=allow_weak)
        _serve(found, host, port, health_port, metrics_listen)


@command.command("token")
def token(*, as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False) -> None:
    """Make a token for a producer, and its hash.

    The hash stands in the configuration; neither is kept.
    """
    made = secrets.token_urlsafe(TOKEN_BYTES)
    digest = f"sha256:{sha256(made.encode()).hexdigest()}"
    if as_json:
        console.emit_json({"token": made, "hash": digest})
        return
    out = console.stdout()
    out.print(f"keep it secret; only the producer, or the reader, needs it: {made}")
    out.print(f'for tokens = [...] of [gate.producers.NAME] or [api.readers.NAME]: "{digest}"')


def _check_topics(chosen: Settings, *, allow_weak: bool) -> None:
    """Check the topics that the gate writes; report weak ones that are allowed.

    Raises:
        TransportError: one is missing or weak, or no broker answers.
    """
    if not find_gate_topics(chosen):
        return
    for problem in find_topic_problems(chosen):
        if not (allow_weak and problem.is_weak):
            raise TransportError(str(with_allow_flag(problem)))
        console.stderr().print(f"hopwatch: {format_allowed(problem)}", soft_wrap=True)


def _serve(chosen: Settings, host: str, port: int, health_port: int | None, metrics_listen: str | None) -> None:
    from hopwatch.cli.gate_builder import build_gate, open_change_topic, open_registry
    from hopwatch.cli.server_address import build_address
    from hopwatch.gate.app import build_app
    from hopwatch.gate.outlets import OutletError
    from hopwatch.probes.http.granian_server import PortTakenError, check_port, serve_app

    if health_port == port:
        raise ConfigurationError(f"--health-port is another port than --port, got {port} for both")
    listening, made = (
        replace(build_address(chosen.gate.tls, "gate.tls", host, port), health_port=health_port),
        build_gate(chosen),
    )
    changes = open_change_topic(chosen)
    try:
        for one in (port, *(() if health_port is None else (health_port,))):
            check_port(host, one)
        made.check_outlets()
        if changes is not None:
            changes.check()
    except (PortTakenError, OutletError) as error:
        raise TransportError(str(error)) from None
    registry = open_registry(chosen)
    words, stop = console.stderr(), Event()
    asks = "needs a token" if made.producers.is_token_required else "needs no token"
    told = f"hopwatch: the gate is at {listening.url}, which {asks}; Ctrl-C ends it"
    for said in _find_rule_errors(registry, made):
        words.print(f"hopwatch: {said}")
    metrics = metrics_server.serve_accounts(
        metrics_listen,
        made.accounts,
        lambda said: words.print(f"hopwatch: {said}"),
        made.build_samples,
    )
    with signals.stop_on_signals(stop), metrics, _writing_changes(chosen, changes), _watching_offsets(chosen, made):
        served = build_app(registry, made)
        try:
            serve_app(served, listening, stop, lambda: words.print(told))
        except PortTakenError as error:
            raise TransportError(str(error)) from None


@contextmanager
def _watching_offsets(chosen: Settings, made: Gate) -> Iterator[None]:
    """Tell throttles of the backlogs behind the gate during the block."""
    from hopwatch.cli.gate_builder import open_group_reader
    from hopwatch.gate.throttle.watcher import watch_offsets

    words = console.stderr()

    def report(said: str) -> None:
        words.print(f"hopwatch: {said}", soft_wrap=True)

    with ExitStack() as stack:
        for stream, intake in made.intakes.items():
            if intake.throttle is not None:
                reader = open_group_reader(chosen, stream)
                stack.enter_context(watch_offsets(intake.throttle, reader, made.clock, report))
        yield


@contextmanager
def _writing_changes(chosen: Settings, topic: ChangeTopic | None) -> Iterator[None]:
    """Write registrations to their topic during the block, if there is one."""
    from hopwatch.cli.gate_builder import open_schema_store
    from hopwatch.gate.registry.changes import RegistryChanges

    if topic is None:
        yield
        return
    words = console.stderr()
    changes = RegistryChanges(open_schema_store(chosen), topic, lambda said: words.print(f"hopwatch: {said}"))
    over = Event()
    thread = Thread(target=changes.run, args=(over,), name="hopwatch-registry-changes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        topic.close()


def _find_rule_errors(registry: Registry, made: Gate) -> Iterator[str]:
    """Yield errors of rules that do not fit the schema of their subject."""
    from hopwatch.gate.registry.avro_schema import Schema
    from hopwatch.gate.registry.subjects import UnknownError
    from hopwatch.gate.rule_check import find_mismatches

    for intake in made.intakes.values():
        try:
            kept = registry.entry(intake.subject).schema
        except UnknownError:
            continue
        yield from find_mismatches(intake.policy.rules, Schema.parse(kept.text))
