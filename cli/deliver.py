"""``hopwatch deliver``: deliver the messages of topics to HTTP receivers, with retries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table
from typer.core import TyperGroup

from hopwatch.cli import console, metrics_server, signals
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_settings, parse_span_us
from hopwatch.cli.metrics_server import MetricsListen
from hopwatch.cli.tap_errors import translate_tap_errors
from hopwatch.cli.topics import (
    AllowWeak,
    MinInsync,
    Replication,
    RetentionHours,
    check_numbers,
    format_allowed,
    with_allow_flag,
)
from hopwatch.monitor import topics
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.garbage_collection import collect_rarely
from hopwatch.monitor.results import format_iso
from hopwatch.probes.taps.context import RunContext

if TYPE_CHECKING:
    from hopwatch.deliver.retry_topics import DeliveryTopics
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.settings.deliver import DeliverySettings

FINDING_EXIT_CODE: Final = 1
DRAIN_POLL_S: Final = 1.0
RUN: Final = "run"


class DeliverGroup(TyperGroup):
    """Group whose command without a name is ``run``, so that deliveries can be named at once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's context
        """Parse arguments, of which the first names a command, or else belongs to ``run``."""
        is_named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if is_named or "--help" in args else [RUN, *args])


command = typer.Typer(name="deliver", cls=DeliverGroup, help="Deliver topics to HTTP receivers.", rich_markup_mode=None)

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Deliveries, of [deliver.NAME]; all without one.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The delivery, of [deliver.NAME].")]


@command.callback()
def _deliver() -> None:
    """Deliver the messages of topics to HTTP receivers: hopwatch deliver [NAME]..., or one of these commands."""


@command.command(RUN)
def run_deliveries(
    names: Names = None,
    config: Config = DEFAULT_CONFIG,
    *,
    allow_weak: AllowWeak = False,
    metrics_listen: MetricsListen = None,
    as_json: Annotated[bool, typer.Option("--json", help="At the end, the counts as one JSON object.")] = False,
) -> None:
    """Deliver messages until Ctrl-C or SIGTERM.

    The word run may be left out.
    """
    _run(names, load_settings(config), metrics_listen, is_retrier=False, allow_weak=allow_weak, as_json=as_json)


@command.command("retrier")
def run_retrier(
    names: Names = None,
    config: Config = DEFAULT_CONFIG,
    *,
    allow_weak: AllowWeak = False,
    metrics_listen: MetricsListen = None,
    as_json: Annotated[bool, typer.Option("--json", help="At the end, the counts as one JSON object.")] = False,
) -> None:
    """Deliver from retry topics.

    A message is sent once its time has come.
    """
    _run(names, load_settings(config), metrics_listen, is_retrier=True, allow_weak=allow_weak, as_json=as_json)


@command.command("list")
def list_deliveries(config: Config = DEFAULT_CONFIG, *, as_json: AsJson = False) -> None:
    """List deliveries and their backlogs.

    The lag in the topic, the messages that wait for a retry, the oldest of them, and since when a delivery is paused.
    """
    from hopwatch.cli.delivery_builder import select_deliveries

    chosen = load_settings(config)
    with translate_tap_errors(TransportError):
        found = [_describe_delivery(chosen, name, said) for name, said in select_deliveries(chosen, ()).items()]
    if as_json:
        console.emit_json({"deliveries": found})
        return
    table = Table()
    for name in ("delivery", "stream", "topic", "lag", "retries", "oldest", "paused since"):
        table.add_column(name, overflow="fold", justify="right" if name in {"lag", "retries"} else "left")
    for one in found:
        counts = (f"{one['lag']:,}", f"{one['retries']:,}")
        by = f" by {', '.join(one['paused_by'])}" if one["paused_by"] else ""
        paused = f"{one['paused_since'] or ''}{by}"
        times = (one["oldest_retry"] or "", paused)
        table.add_row(one["delivery"], one["stream"], one["topic"], *counts, *times)
    console.stdout().print(table)


@command.command("pause")
def pause_delivery(name: Name, config: Config = DEFAULT_CONFIG) -> None:
    """Pause a delivery.

    In all its processes, and over restarts: messages in hand are finished, and no others are taken.
    """
    said = _select_one(load_settings(config), name)
    _write_pause(load_settings(config), name, said, is_paused=True)
    console.stdout().print(f"{name} is paused; 'hopwatch deliver resume {name}' ends it")


@command.command("resume")
def resume_delivery(name: Name, config: Config = DEFAULT_CONFIG) -> None:
    """End the pause of a delivery."""
    said = _select_one(load_settings(config), name)
    _write_pause(load_settings(config), name, said, is_paused=False)
    console.stdout().print(f"{name} goes on")


@command.command("drain")
def drain_delivery(
    name: Name,
    config: Config = DEFAULT_CONFIG,
    *,
    timeout: Annotated[str, typer.Option("--timeout", metavar="SPAN", help="How long to wait at most.")] = "1h",
) -> None:
    """Await an empty backlog, then pause.

    Neither the topic nor the retry topics have messages that wait then. The processes of the delivery go on meanwhile.
    Exit code 1 if something waits still after --timeout.
    """
    left_s = parse_span_us("--timeout", timeout) / 1e6
    chosen = load_settings(config)
    said = _select_one(chosen, name)
    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TransportError):
        waiting = _await_drain(chosen, name, said, around, around.monotonic_s() + left_s)
    if waiting:
        console.stderr().print(f"hopwatch deliver: {waiting:,} messages of {name} wait still, and it was not paused")
        raise typer.Exit(FINDING_EXIT_CODE)
    _write_pause(chosen, name, said, is_paused=True)
    console.stdout().print(f"{name} is drained and paused; 'hopwatch deliver resume {name}' ends the pause")


@command.command("create-topics")
def create_topics(  # noqa: PLR0913 - what a topic is made of
    names: Names = None,
    config: Config = DEFAULT_CONFIG,
    *,
    replication: Replication = topics.REPLICATION,
    min_insync: MinInsync = topics.MIN_INSYNC,
    retention_hours: RetentionHours = topics.RETENTION_HOURS,
    allow_weak: AllowWeak = False,
) -> None:
    """Create missing topics.

    For retries, rejected messages and pauses. Those for retries have as many partitions as the topic of the messages.
    """
    from hopwatch.cli.delivery_builder import find_needs, select_deliveries
    from hopwatch.monitor.delivery_topics import TopicNumbers, create_missing, find_message_bytes

    chosen = load_settings(config)
    access = chosen.transport.access
    check_numbers(replication, min_insync, allow_weak=allow_weak)
    for name, said in select_deliveries(chosen, names or ()).items():
        source, *others = find_needs(said, name)
        found = topics.describe_topic(source.place, access)
        if found is None:
            raise TransportError(f"the topic {source.place.topic} is not on {source.place.brokers}: make it first")
        for need in others:
            partitions = 1 if need.is_compacted else found.partitions
            most_bytes = find_message_bytes(found)
            numbers = TopicNumbers(partitions, replication, min_insync, retention_hours, most_bytes)
            if create_missing(need, access, numbers):
                _print_message(f"made the topic {need.place.topic}, {partitions} partitions, {replication} copies")


def _run(  # noqa: PLR0913 - what a flag each says
    names: Sequence[str] | None,
    chosen: Settings,
    metrics_listen: str | None,
    *,
    is_retrier: bool,
    allow_weak: bool,
    as_json: bool,
) -> None:
    """Run deliveries, or their retriers, until a stop is requested."""
    from hopwatch.cli.delivery_builder import (
        build_delivery,
        check_address,
        describe_long_wait,
        find_topics,
        select_deliveries,
    )
    from hopwatch.deliver.control_topic import ControlReader
    from hopwatch.deliver.runner import DeliveryRunner
    from hopwatch.probes.metrics.account import DELIVERY_OUTCOMES, Account, ComponentAccounts
    from hopwatch.probes.metrics.catalog import DELIVERY

    wanted = select_deliveries(chosen, names or ())
    around = RunContext(_print_message)
    accounts = {said.stream: Account(DELIVERY_OUTCOMES) for said in wanted.values()}
    with signals.stop_on_signals(around.stop), translate_tap_errors(TransportError):
        for name, said in wanted.items():
            check_address(said, name)
            _check_topics(chosen, name, said, allow_weak=allow_weak)
        built = [
            build_delivery(chosen, name, accounts[said.stream], around, is_retrier=is_retrier)
            for name, said in wanted.items()
        ]
        for name, said in wanted.items():
            _print_message(_announce(name, said, find_topics(said, name), is_retrier=is_retrier))
            if told := describe_long_wait(chosen, name, said):
                _print_message(told)
        brokers = sorted({said.place.brokers for said in wanted.values()})
        controls = [ControlReader(one, chosen.transport.access, around.report) for one in brokers]
        runner = DeliveryRunner(
            [(one.delivery, one.policy, one.receiver, one.figures) for one in built],
            controls,
            around,
            lambda name: _read_backlogs(chosen, name, wanted[name])[1:],
        )
        metrics = metrics_server.serve_accounts(
            metrics_listen,
            lambda: ComponentAccounts(DELIVERY, accounts),
            _print_message,
            lambda: [sample for one in built for sample in one.figures.build_samples()],
        )
        try:
            collect_rarely()
            with metrics:
                asyncio.run(runner.run())
        finally:
            _print_counts(accounts, as_json=as_json)


def _announce(name: str, said: DeliverySettings, found: DeliveryTopics, *, is_retrier: bool) -> str:
    from urllib.parse import urlsplit

    host = urlsplit(said.url).netloc
    what = f"the retries of {name}" if is_retrier else f"{found.source} as {name}"
    return f"delivering {what} to {host}; what it rejects goes to {found.rejected}"


def _print_counts(accounts: dict[str, Any], *, as_json: bool) -> None:
    from hopwatch.probes.metrics.account import EventOutcome, Output

    told = {}
    for stream, account in accounts.items():
        parts = account.snapshot()
        counts = {"polled": parts.received} | {
            name: parts.total(EventOutcome.EMITTED, output)
            for name, output in (
                ("delivered", Output.RECEIVER),
                ("rejected", Output.QUARANTINE),
                ("deferred", Output.RETRY),
            )
        }
        told[stream] = counts
        _print_message(f"{stream}: {', '.join(f'{count:,} {name}' for name, count in counts.items())}")
    if as_json:
        console.emit_json(told)


def _check_topics(chosen: Settings, name: str, said: DeliverySettings, *, allow_weak: bool) -> None:
    """Check the topics of a delivery; report weak ones that are allowed.

    Raises:
        TransportError: one is missing, unfit or weak, or no broker answers.
    """
    from hopwatch.cli.delivery_builder import find_needs
    from hopwatch.monitor.delivery_topics import find_problems

    for need in find_needs(said, name):
        for problem in find_problems(need, chosen.transport.access):
            if not (allow_weak and problem.is_weak):
                raise TransportError(str(with_allow_flag(problem)))
            _print_message(format_allowed(problem))


def _describe_delivery(chosen: Settings, name: str, said: DeliverySettings) -> dict[str, Any]:
    from hopwatch.deliver.control_topic import read_pauses

    lag, retries, oldest_us = _read_backlogs(chosen, name, said)
    pause = read_pauses(said.place.brokers, chosen.transport.access, _print_message).get(name)
    return {
        "delivery": name,
        "stream": said.stream,
        "topic": said.place.topic,
        "lag": lag,
        "retries": retries,
        "oldest_retry": None if oldest_us is None else format_iso(oldest_us),
        "paused_since": None if pause is None else format_iso(pause.since_us),
        "paused_by": [] if pause is None else list(pause.by),
    }


def _read_backlogs(chosen: Settings, name: str, said: DeliverySettings) -> tuple[int, int, int | None]:
    """Return the lag of a delivery, the backlog of its retry topics, and the time of the oldest message in them."""
    from hopwatch.cli.delivery_builder import find_group, find_topics
    from hopwatch.deliver.backlog import read_backlogs

    found, brokers, access = find_topics(said, name), said.place.brokers, chosen.transport.access
    group = find_group(said, name, is_retrier=False)
    (source,) = read_backlogs(brokers, access, group, [found.source], from_start=said.from_start)
    retries = [tier.topic for tier in found.tiers]
    group = find_group(said, name, is_retrier=True)
    waiting = read_backlogs(brokers, access, group, retries, from_start=True)
    times = [one.oldest_us for one in waiting if one.oldest_us is not None]
    return source.waiting, sum(one.waiting for one in waiting), min(times, default=None)


def _write_pause(chosen: Settings, name: str, said: DeliverySettings, *, is_paused: bool) -> None:
    from hopwatch.deliver.control_topic import Pause, write_pause

    pause = Pause(RunContext(_print_message).wall_us()) if is_paused else None
    with translate_tap_errors(TransportError):
        write_pause(said.place.brokers, chosen.transport.access, name, pause)


def _await_drain(chosen: Settings, name: str, said: DeliverySettings, around: RunContext, end_s: float) -> int:
    """Wait until nothing waits, the time is over or a stop is requested; return how many messages wait still."""
    while True:
        lag, retries, _ = _read_backlogs(chosen, name, said)
        if not lag + retries or around.monotonic_s() >= end_s or around.stop.is_set():
            return lag + retries
        _print_message(f"{name}: {lag:,} wait in the topic, {retries:,} for a retry")
        around.stop.wait(DRAIN_POLL_S)


def _select_one(chosen: Settings, name: str) -> DeliverySettings:
    from hopwatch.cli.delivery_builder import select_deliveries

    return select_deliveries(chosen, [name])[name]


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch deliver: {what}")
