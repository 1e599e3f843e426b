"""``hopwatch demo``: a small pipeline with probes and a monitor, faults on demand, and injected against measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hopwatch.cli import console
from hopwatch.demo import dashboard_process, flags
from hopwatch.demo.entrance import packages
from hopwatch.demo.feed import run_feed
from hopwatch.demo.layout import default_folder
from hopwatch.demo.options import RunOptions, ServiceOptions
from hopwatch.demo.run import run_demo
from hopwatch.demo.service.run import run_service
from hopwatch.monitor import java
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings import locations, receivers
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace


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
    kafka: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Link the nodes, and probes and monitor, through Kafka.")
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
        bool,
        typer.Option(
            "--service",
            help="From hopwatch gate through two nodes to hopwatch deliver, and to two receivers that fail.",
        ),
    ] = False,
    fail: Annotated[
        float, typer.Option(min=0, max=1, help="With --service: the share of requests that receivers fail.")
    ] = 0.05,
    down: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, max=600, help="With --service: how long a receiver is down.")
    ] = 60,
    messages: Annotated[
        int | None,
        typer.Option(min=1, help="With --service: send so many, as fast as the gate takes them, and judge them once."),
    ] = None,
    kills: Annotated[
        int, typer.Option(min=0, max=1_000, help="With --messages: kill -9 at so many random moments.")
    ] = 0,
    brokers: Annotated[
        int | None, typer.Option(min=1, max=3, help="How many Kafka brokers of its own the demo starts.")
    ] = None,
    gate: Annotated[
        bool,
        typer.Option("--gate", help="Let events in by hopwatch gate, 1 in 100 malformed: those show as rejected."),
    ] = False,
    rate: Annotated[float, typer.Option(min=1, max=20_000, help="Messages a second.")] = 2000,
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

    The nodes are ingest, router, norm and connector; what names a NODE may be given once for each. At the end the demo
    holds what it did against what was measured: exit code 1 if the two differ.
    """
    wishes = {
        "--drop": drop,
        "--filter": filter_,
        "--reject": reject,
        "--duplicate": duplicate,
        "--delay": delay,
        "--skew": skew,
        "--probe-drop": probe_drop,
    }
    run_s = None if minutes is None else minutes * 60
    faults = flags.parse_faults(seed, {flag: values or () for flag, values in wishes.items()}, kill or (), run_s=run_s)
    if gate:
        packages.check_packages()
        faults = flags.add_malformed(faults)
    faults = flags.add_healing(faults, heal_after, rate, run_s=run_s)
    own = {"--store": store, "--alertmanager": alertmanager, "--dashboard-port": dashboard_port}
    for flag, what in own.items():
        if what is not None and into is not None:
            raise ConfigurationError(f"{flag} is for the demo's own monitor, and with --into it has none")
    if no_dashboard and dashboard_port is not None:
        raise ConfigurationError("--no-dashboard and --dashboard-port contradict each other: keep one of them")
    wish = RunOptions(
        workdir or default_folder(),
        faults,
        rate,
        run_s,
        _parse_brokers(kafka),
        _resolve_url("--store", store, "store", locations.parse_store_url),
        _resolve_url("--into", into, "transport", locations.parse_transport_url),
        _check_receiver(alertmanager),
        None if no_dashboard else dashboard_port or dashboard_process.PORT,
        gate,
    )
    if service:
        packages.check_packages()
        java.require_java()
        wish = replace(
            wish,
            own_broker_count=0 if wish.brokers else brokers or 1,
            faults=flags.add_malformed(faults),
            service=ServiceOptions(fail, down, messages or 0, kills),
        )
        raise typer.Exit(run_service(wish, console.stdout()))
    raise typer.Exit((run_feed if wish.sink_url else run_demo)(wish, console.stdout()))


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
