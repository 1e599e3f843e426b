"""``hopwatch demo``: a small pipeline with probes and a monitor, faults on demand, and injected against measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from hopwatch.cli import console
from hopwatch.demo import dashboard_process, flags
from hopwatch.demo.entrance import packages
from hopwatch.demo.feed import run_feed
from hopwatch.demo.layout import default_folder
from hopwatch.demo.options import RunOptions, ServiceOptions
from hopwatch.demo.run import MAX_BROKERS, run_demo
from hopwatch.demo.service.kills import KILLABLE
from hopwatch.demo.service.run import run_service
from hopwatch.demo.stream import NODES, SERVICE_STEPS
from hopwatch.monitor import java
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings import locations, receivers
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace

OWN: Final = "own"
"""Value of ``--kafka`` for brokers that the demo starts."""
RATE_PER_S: Final = 2000.0
SERVICE_RATE_PER_S: Final = 500.0


class CommandClass(TyperCommand):
    """Command whose flag ``--kafka`` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's context
        """Parse arguments, in which ``--kafka`` without a value stands for brokers of the demo's own."""
        given = []
        for argument, following in pairwise([*args, "-"]):
            given += [argument, OWN] if argument == "--kafka" and following.startswith("-") else [argument]
        return super().parse_args(ctx, given)


def command(  # noqa: PLR0913 - one parameter a flag
    *,
    minutes: Annotated[
        float | None, typer.Option(min=0.05, max=10_080, help="End after so many minutes; else with Ctrl-C.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="NODE=RATIO", help="Lose messages silently.")] = None,
    filter_: Annotated[
        list[str] | None, typer.Option("--filter", metavar="NODE=RATIO", help="Stop messages on purpose, and say so.")
    ] = None,
    reject: Annotated[list[str] | None, typer.Option(metavar="NODE=RATIO", help="Refuse messages, and say so.")] = None,
    duplicate: Annotated[list[str] | None, typer.Option(metavar="NODE=RATIO", help="Handle messages twice.")] = None,
    delay: Annotated[
        list[str] | None, typer.Option(metavar="NODE=SECONDS", help="Keep every message that long.")
    ] = None,
    skew: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE=SECONDS", help="Set the probe's clock ahead, or behind with a minus."),
    ] = None,
    kill: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE@SECONDS", help="kill -9 a node so long after the start; repeatable."),
    ] = None,
    probe_drop: Annotated[
        list[str] | None, typer.Option(metavar="NODE=RATIO", help="Refuse batches of the probe.")
    ] = None,
    deploy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE@SECONDS=VERSION",
            help="Deploy a version that loses 3% of one lane of four, and mark it; not with --service.",
        ),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:PORT]",
            help="Link the nodes, and probes and monitor, through Kafka; without an address by a broker of its own.",
        ),
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="An empty database for the results; else a file of the run.")
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Run no monitor of its own: the probes write here, for another one."),
    ] = None,
    alertmanager: Annotated[
        str | None, typer.Option(metavar="URL", help="Tell an Alertmanager what is wrong, and when it is over.")
    ] = None,
    heal_after: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=1, help="Lose, stop and copy no message that is made later than that."),
    ] = None,
    service: Annotated[
        bool, typer.Option("--service", help="From the gate through two nodes to hopwatch deliver, and two receivers.")
    ] = False,
    fail: Annotated[
        float | None, typer.Option(min=0, max=1, help="With --service: share of requests that fail at receivers; 0.05.")
    ] = None,
    down: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, max=600, help="With --service: how long one receiver is down; 60."),
    ] = None,
    messages: Annotated[
        int | None,
        typer.Option(min=1, help="With --service: send so many, as fast as the gate takes them, and judge them once."),
    ] = None,
    kills: Annotated[
        int, typer.Option(min=0, max=1_000, help="With --messages: kill -9 a process at so many random moments.")
    ] = 0,
    brokers: Annotated[
        int | None, typer.Option(min=1, max=MAX_BROKERS, help="How many Kafka brokers of its own the demo starts.")
    ] = None,
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Let events in by hopwatch gate, 1 in 100 malformed: those show as rejected."),
    ] = False,
    rate: Annotated[
        float | None, typer.Option(min=1, max=20_000, help="Messages a second; 2,000, with --service 500.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed, the same messages are hit.")] = 0,
    no_dashboard: Annotated[bool, typer.Option("--no-dashboard", help="Show the terminal's table alone.")] = False,
    dashboard_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help=f"Where the dashboard listens on this machine; {dashboard_process.PORT}, or any free one.",
        ),
    ] = None,
    workdir: Annotated[
        Path | None, typer.Option(help="A new folder for the files of the run; var/demo/TIME by default.")
    ] = None,
) -> None:
    """Start a small pipeline with probes, a monitor and a dashboard, and show its loss and lag.

    The nodes are ingest, router, norm and connector; what names a NODE may be given once for each. With --service they
    are router and norm, and gate, deliver and retrier can be killed, too. At the end the demo holds what it did against
    what was measured: exit code 1 if the two differ.
    """
    asked = {"--fail": fail, "--down": down, "--messages": messages, "--kills": kills or None}
    _check_together(asked, service=service, gate=gate, into=into, kafka=kafka, brokers=brokers, minutes=minutes)
    rate_per_s = rate or (SERVICE_RATE_PER_S if service else RATE_PER_S)
    wishes = {
        "--drop": drop,
        "--filter": filter_,
        "--reject": reject,
        "--duplicate": duplicate,
        "--delay": delay,
        "--skew": skew,
        "--probe-drop": probe_drop,
    }
    if service and deploy:
        raise ConfigurationError("--deploy is for the demo without --service: leave one of them out")
    run_s = None if minutes is None else minutes * 60
    faults = flags.parse_faults(
        seed,
        {flag: values or () for flag, values in wishes.items()},
        kill or (),
        run_s=run_s,
        nodes=SERVICE_STEPS if service else NODES,
        killable=KILLABLE if service else NODES,
    )
    if service:
        packages.check_packages(packages.SERVICE_PACKAGES, "--service", "monitor,taps,gate,kafka,deliver")
    elif gate:
        packages.check_packages()
    if gate or service:
        faults = flags.add_malformed(faults)
    faults = flags.add_deploys(faults, deploy or (), rate_per_s, run_s=run_s)
    faults = flags.add_healing(faults, heal_after, rate_per_s, run_s=run_s)
    own = {"--store": store, "--alertmanager": alertmanager, "--dashboard-port": dashboard_port}
    for flag, what in own.items():
        if what is not None and into is not None:
            raise ConfigurationError(f"{flag} is for the demo's own monitor, and with --into it has none")
    if no_dashboard and dashboard_port is not None:
        raise ConfigurationError("--no-dashboard and --dashboard-port contradict each other: keep one of them")
    named = _parse_brokers(None if kafka == OWN else kafka)
    wish = RunOptions(
        workdir or default_folder(),
        faults,
        rate_per_s,
        run_s,
        named,
        _resolve_url("--store", store, "store", locations.parse_store_url),
        _resolve_url("--into", into, "transport", locations.parse_transport_url),
        _check_receiver(alertmanager),
        None if no_dashboard else dashboard_port or dashboard_process.PORT,
        gate,
        own_broker_count=brokers or 1 if kafka == OWN or (service and not named) else 0,
    )
    if wish.own_broker_count:
        java.require_java()
    if service:
        chosen = {"fail_ratio": fail, "down_s": down, "message_count": messages, "kill_count": kills}
        given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
        raise typer.Exit(run_service(replace(wish, service=ServiceOptions(**given)), console.stdout()))
    raise typer.Exit((run_feed if wish.sink_url else run_demo)(wish, console.stdout()))


def _check_together(  # noqa: PLR0913 - the flags that depend on each other
    of_service: Mapping[str, object],
    *,
    service: bool,
    gate: bool,
    into: str | None,
    kafka: str | None,
    brokers: int | None,
    minutes: float | None,
) -> None:
    """Check flags that go with others alone, or not with them."""
    alone = next((flag for flag, value in of_service.items() if value is not None), "")
    if not service and alone:
        raise ConfigurationError(f"{alone} is for the service: add --service")
    if brokers is not None and not (kafka == OWN or (service and kafka is None)):
        raise ConfigurationError("--brokers is for brokers of the demo's own: add --kafka without an address")
    if into is not None and (service or kafka == OWN):
        flag = "--service" if service else "--kafka without an address"
        raise ConfigurationError(f"--into and {flag} contradict each other: leave one of them out")
    if service and gate:
        raise ConfigurationError("--gate is a part of --service already: leave it out")
    if of_service["--kills"] is not None and of_service["--messages"] is None:
        raise ConfigurationError("--kills are spread over so many messages: add --messages, or name each by --kill")
    if of_service["--messages"] is not None and minutes is not None:
        raise ConfigurationError("--messages and --minutes both say when the run ends: keep one of them")


def _parse_brokers(kafka: str | None) -> str:
    try:
        return KafkaPlace.parse(f"{KAFKA}{kafka}/").brokers if kafka is not None else ""
    except ValueError:
        example = "--kafka 127.0.0.1:9092"
        raise ConfigurationError(f"--kafka: expected HOST:PORT, for example {example}, got {kafka!r:.80}") from None


def _check_receiver(url: str | None) -> str:
    try:
        return receivers.check_url(url) if url is not None else ""
    except ValueError as error:
        raise ConfigurationError(f"--alertmanager: {error}") from None


def _resolve_url(flag: str, asked: str | None, table: str, check: Callable[[object], str]) -> str:
    """Check the URL of a flag, and resolve its relative path from the current folder."""
    if asked is None:
        return ""
    try:
        checked = check(asked)
    except ValueError as error:
        raise ConfigurationError(f"{flag}: {error}") from None
    return str(locations.resolve_paths({table: {"url": checked}}, Path.cwd())[table]["url"])
