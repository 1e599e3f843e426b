"""``python -m bench``: what to measure, of what size, where; tables on stdout, or one JSON value."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Group, RenderableType

from bench import (
    alert_cost,
    api,
    client_cost,
    dashboard,
    dashboard_tables,
    detection_tables,
    files,
    forecasts,
    growth,
    instances,
    jvm_cost,
    kafka,
    label_cost,
    live,
    machine,
    nab,
    noise,
    otlp_cost,
    outage,
    outliers,
    scale,
    series_cost,
    soak,
    spark_job,
    speed,
    stamp_cost,
    store_size,
    suggestions,
    tables,
)
from bench.contestant import ContestantError
from bench.delivery import comparison as delivery
from bench.delivery import tables as delivery_tables
from bench.gate import comparison, ingest, throttle
from bench.gate import tables as gate_tables
from bench.month import Month
from bench.speed import Progress
from bench.steps import Steps
from hopwatch.cli import console
from hopwatch.cli.entry import INTERRUPTED_EXIT_CODE
from hopwatch.monitor import java
from hopwatch.monitor.errors import ConfigurationError, HopwatchError

OBSERVATIONS: Final = 40_000_000
DAYS: Final = 30
MINUTES: Final = 60.0
REPEATS: Final = 1
INSTANCES: Final = 4_000
STREAMS: Final = 300
MIN_OBSERVATIONS: Final = 400_000
MAX_OBSERVATIONS: Final = 400_000_000
FAILED_EXIT_CODE: Final = 1


class Measure(StrEnum):
    """Measures of this bench."""

    SPEED = "speed"
    PROBES = "probes"
    LIVE = "live"
    STREAMS = "streams"
    GROWTH = "growth"
    LABELS = "labels"
    KAFKA = "kafka"
    INSTANCES = "instances"
    OUTAGE = "outage"
    OUTLIERS = "outliers"
    WATCH = "watch"
    NOISE = "noise"
    NAB = "nab"
    ALERTS = "alerts"
    DASHBOARD = "dashboard"
    API = "api"
    GATE = "gate"
    DELIVER = "deliver"
    INGEST = "ingest"
    FILES = "files"
    SPARK = "spark"
    CLIENTS = "clients"
    JVM = "jvm"
    OTLP = "otlp"
    STORE = "store"
    SCALE = "scale"
    THROTTLE = "throttle"
    SOAK = "soak"
    ALL = "all"


class Request(NamedTuple):
    """Size and place of a measure, and its data from outside."""

    observations: int
    scratch: Path
    data: Path | None = None
    scorer: Path | None = None
    days: int = DAYS
    minutes: float = MINUTES
    repeats: int = REPEATS
    formats: Sequence[files.Format] = ()
    instances: int = INSTANCES
    streams: int = STREAMS


Measurement = tuple[list[Any], RenderableType]

_MEASURES: Final[dict[Measure, Callable[[Request, Progress], Measurement]]] = {
    Measure.SPEED: lambda of, tell: (
        lines := speed.measure(of.observations, of.scratch, tell),
        tables.speed(lines, of.observations),
    ),
    Measure.PROBES: lambda of, tell: (costs := stamp_cost.measure(of.scratch, tell), tables.probes(costs)),
    Measure.LIVE: lambda of, tell: (spans := live.measure(of.scratch, tell), tables.live(spans)),
    Measure.STREAMS: lambda of, tell: (
        spans := live.measure_triggers(of.scratch, tell, of.streams),
        tables.live(spans),
    ),
    Measure.GROWTH: lambda of, tell: (
        lines := growth.measure(of.observations, of.scratch, tell),
        tables.growth(lines),
    ),
    Measure.LABELS: lambda of, tell: (
        lines := label_cost.measure(of.observations, of.scratch, tell, of.repeats),
        label_cost.build_table(lines),
    ),
    Measure.KAFKA: lambda of, tell: (lines := kafka.measure(of.observations, of.scratch, tell), tables.kafka(lines)),
    Measure.INSTANCES: lambda of, tell: (
        runs := instances.measure(of.scratch, tell, of.instances),
        instances.build_table(runs),
    ),
    Measure.OUTAGE: lambda of, tell: (lines := outage.measure(of.scratch, tell), tables.outage(lines)),
    Measure.OUTLIERS: lambda of, tell: (lines := outliers.measure(of.scratch, tell), detection_tables.outliers(lines)),
    Measure.WATCH: lambda of, tell: (lines := series_cost.measure(of.scratch, tell), detection_tables.watch(lines)),
    Measure.NOISE: lambda of, tell: (
        [
            *(lines := noise.measure(of.scratch, tell)),
            *(trends := forecasts.measure(of.scratch, tell)),
            *(learnt := suggestions.measure(of.scratch, tell)),
        ],
        Group(detection_tables.noise(lines), forecasts.build_table(trends), suggestions.build_table(learnt)),
    ),
    Measure.NAB: lambda of, tell: (
        lines := nab.measure(of.data, of.scorer, of.scratch, tell),
        detection_tables.nab(lines),
    ),
    Measure.ALERTS: lambda of, tell: (lines := alert_cost.measure(of.scratch, tell), detection_tables.alerts(lines)),
    Measure.DASHBOARD: lambda of, tell: (
        lines := dashboard.measure(of.scratch, tell, Month(of.days)),
        dashboard_tables.dashboard(lines),
    ),
    Measure.API: lambda of, tell: (
        lines := api.measure(of.scratch, tell, Month(of.days)),
        api.build_table(lines),
    ),
    Measure.GATE: lambda of, tell: (lines := comparison.measure(of.scratch, tell), gate_tables.gate(lines)),
    Measure.DELIVER: lambda of, tell: (
        lines := delivery.measure(of.scratch, tell),
        delivery_tables.delivery(lines),
    ),
    Measure.INGEST: lambda of, tell: (lines := ingest.measure(of.scratch, tell), ingest.build_table(lines)),
    Measure.FILES: lambda of, tell: (
        lines := files.measure(of.observations, of.scratch, tell, of.formats),
        files.build_table(lines),
    ),
    Measure.SPARK: lambda of, tell: (costs := spark_job.measure(of.scratch, tell), spark_job.build_table(costs)),
    Measure.JVM: lambda of, tell: (costs := jvm_cost.measure(of.scratch, tell), jvm_cost.build_table(costs)),
    Measure.CLIENTS: lambda of, tell: (
        costs := client_cost.measure(of.scratch, tell),
        client_cost.build_table(costs),
    ),
    Measure.OTLP: lambda of, tell: (costs := otlp_cost.measure(of.scratch, tell), otlp_cost.build_table(costs)),
    Measure.STORE: lambda of, tell: (sizes := store_size.measure(of.scratch, tell), store_size.build_table(sizes)),
    Measure.SCALE: lambda of, tell: (runs := scale.measure(of.scratch, tell, of.repeats), tables.scale(runs)),
    Measure.THROTTLE: lambda of, tell: (lines := throttle.measure(of.scratch, tell), throttle.build_table(lines)),
    Measure.SOAK: lambda of, tell: (lines := soak.measure(of.scratch, tell, of.minutes), tables.soak(lines)),
}
_BY_DEFAULT: Final = (Measure.SPEED, Measure.PROBES, Measure.LIVE)

application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@application.command()
def bench(  # noqa: PLR0913 - one a flag
    what: Annotated[Measure | None, typer.Argument(help="By default speed, probes and live.")] = None,
    *,
    observations: Annotated[
        int,
        typer.Option(
            min=MIN_OBSERVATIONS,
            max=MAX_OBSERVATIONS,
            help="Of speed and labels; growth takes a quarter, all and three times as many, kafka half.",
        ),
    ] = OBSERVATIONS,
    scratch: Annotated[
        Path | None, typer.Option(file_okay=False, help="Where the work is made and kept; else a folder that goes.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(file_okay=False, help="Of nab: labelled series, as data/ and windows.json.")
    ] = None,
    scorer: Annotated[Path | None, typer.Option(dir_okay=False, help="Of nab: the program that scores them.")] = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="Of dashboard and api: how much their store holds.")] = DAYS,
    minutes: Annotated[float, typer.Option(min=1, max=10_000, help="Of soak: how long the monitor runs.")] = MINUTES,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Of scale and labels: runs of each.")] = REPEATS,
    instance_count: Annotated[
        int, typer.Option("--instances", min=4, max=100_000, help="Of instances: how many probe instances send.")
    ] = INSTANCES,
    stream_count: Annotated[
        int, typer.Option("--streams", min=1, max=10_000, help="Of streams: how many send, of four nodes each.")
    ] = STREAMS,
    formats: Annotated[
        list[files.Format] | None, typer.Option("--format", help="Of files: a format; may be repeated; else all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value instead of tables.")] = False,
) -> None:
    """Measure the monitor beside its peers, on two cores, in one run; every result is checked."""
    chosen = _chosen(what, has_labels=data is not None and scorer is not None)
    java.require_java()
    on = machine.describe_machine()
    told: dict[str, Any] = {"machine": on._asdict()}
    if not as_json:
        console.stdout().print(str(on))
    with _folder(scratch) as folder, Steps(console.stderr()) as steps:
        for one in chosen:
            measured, table = _MEASURES[one](
                Request(
                    observations,
                    folder,
                    data,
                    scorer,
                    days,
                    minutes,
                    repeats,
                    formats or (),
                    instance_count,
                    stream_count,
                ),
                steps.tell,
            )
            told[one.value] = [asdict(line) for line in measured]
            if not as_json:
                console.stdout().print(table)
    if as_json:
        console.emit_json(told)


def _chosen(what: Measure | None, *, has_labels: bool) -> tuple[Measure, ...]:
    """Return what is to be measured; all is without the soak, and without what needs files that were not named."""
    if what is Measure.ALL:
        return tuple(one for one in _MEASURES if one is not Measure.SOAK and (has_labels or one is not Measure.NAB))
    return (what,) if what else _BY_DEFAULT


@contextmanager
def _folder(scratch: Path | None) -> Iterator[Path]:
    """Yield the folder to work in; one that was not named is removed.

    Raises:
        ConfigurationError: the folder that was named cannot be made.
    """
    if scratch is None:
        with tempfile.TemporaryDirectory(prefix="hopwatch-bench-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    try:
        scratch.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the scratch folder {scratch} cannot be made: {error.strerror}") from error
    yield scratch


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for, those of this process by default; return the exit code."""
    try:
        application(arguments, prog_name="python -m bench")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except ContestantError as error:
        console.stderr().print(f"bench: {error}")
        return FAILED_EXIT_CODE
    except HopwatchError as error:
        console.stderr().print(f"bench: {error}")
        return error.exit_code
    return 0
