"""Metrics endpoints of commands; wired here, because only commands know both results and alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hopwatch import __version__
from hopwatch.cli import console
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, DependencyError
from hopwatch.probes.contract.addresses import ListenAddress, parse_listen_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prometheus_client import CollectorRegistry
    from sqlalchemy import Engine

    from hopwatch.monitor.metrics.folding import FoldingPlan
    from hopwatch.monitor.metrics.snapshot import StoreSnapshot
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.spark.job import JobContext
    from hopwatch.monitor.stream_config import StreamConfig
    from hopwatch.probes.metrics.account import ComponentAccounts
    from hopwatch.probes.metrics.metric import Metric, Sample
    from hopwatch.probes.metrics.server import MetricsServer

FLAG: Final = "--metrics-listen"
MetricsListen = Annotated[
    str | None,
    typer.Option(FLAG, metavar="HOST:PORT", help="Where GET /metrics is served, for scrapers alone: nobody is asked."),
]


@contextmanager
def serve_metrics(place: JobContext, chosen: Settings) -> Iterator[JobContext]:
    """Serve metrics while the block runs, and yield the place with their observer; unchanged if metrics are off.

    Raises:
        DependencyError: the address is not available.
        StoreError: the store cannot be read.
    """
    if chosen.metrics.listen is None:
        yield place
        return
    import structlog

    from hopwatch.monitor.metrics.exposition import build_registry
    from hopwatch.monitor.metrics.folding import count_edges, plan_folding
    from hopwatch.monitor.metrics.recorder import MetricsRecorder
    from hopwatch.monitor.metrics.store_poller import StorePoller
    from hopwatch.monitor.selftest.stream import without_selftest
    from hopwatch.monitor.store import dialect, figures, schema

    clock = SystemClock()
    # A separate engine: the job never waits for a connection that a scrape uses.
    engine = dialect.create_engine(chosen.store.url)
    in_force = without_selftest(place.rules)
    with schema.open_snapshot(engine) as connection:
        begins = figures.read_starting_point(connection, in_force)

    def plan() -> FoldingPlan:
        return plan_folding({stream: count_edges(of) for stream, of in in_force.items()}, chosen.metrics.most_series)

    of_all = MetricsRecorder(in_force, plan(), clock, begins)

    def follow_config(rules: Mapping[str, StreamConfig] | None) -> None:
        nonlocal in_force
        if rules is None:
            of_all.refuse_config()
        else:
            in_force = without_selftest(rules)
            of_all.change_rules(in_force, plan())

    log = structlog.get_logger("hopwatch")

    def report(why: str) -> None:
        log.error("the page of metrics cannot be made", why=why)

    server = _open_server(chosen.metrics.listen, build_registry(of_all.known), report, "[metrics] listen")

    def read() -> StoreSnapshot:
        return _read_figures(engine, in_force, clock.now_us(), chosen)

    reading = StorePoller(read, of_all.read, clock)
    reading.start()
    server.start()
    console.stderr().print(f"hopwatch: {_announce(chosen.metrics.listen)}")
    try:
        yield replace(place, observer=of_all.committed, config_observer=follow_config)
    finally:
        reading.stop()
        server.close()
        engine.dispose()


@contextmanager
def serve_accounts(
    listen: str | None,
    build_accounts: Callable[[], ComponentAccounts],
    report: Callable[[str], None],
    build_more: Callable[[], Iterable[Sample]] = tuple,
) -> Iterator[None]:
    """Serve the accounts of a component, and more samples that it has, while the block runs, if an address is given.

    Raises:
        ConfigurationError: it is no address.
        DependencyError: the address is not available.
    """
    if listen is None:
        yield
        return
    from hopwatch.probes.metrics.catalog import COMPONENT_METRICS
    from hopwatch.probes.metrics.samples import build_samples

    def collect_samples() -> Iterator[Sample]:
        yield from build_samples(build_accounts(), __version__)
        yield from build_more()

    with serve_samples(listen, COMPONENT_METRICS, collect_samples, report):
        yield


@contextmanager
def serve_samples(
    listen: str | None,
    metrics: Sequence[Metric],
    build_samples: Callable[[], Iterable[Sample]],
    report: Callable[[str], None],
) -> Iterator[None]:
    """Serve a page of these metrics while the block runs, if an address is given.

    Raises:
        ConfigurationError: it is no address.
        DependencyError: the address is not available.
    """
    if listen is None:
        yield
        return
    try:
        address = parse_listen_address(listen)
    except ValueError as error:
        raise ConfigurationError(f"{FLAG}: {error}") from None
    from hopwatch.probes.metrics.exposition import build_registry

    registry = build_registry(metrics, build_samples)
    server = _open_server(address, registry, lambda why: report(f"the page of metrics cannot be made: {why}"), FLAG)
    server.start()
    try:
        report(_announce(address))
        yield
    finally:
        server.close()


def _open_server(
    address: ListenAddress, registry: CollectorRegistry, report: Callable[[str], None], said_by: str
) -> MetricsServer:
    """Open the server at an address that a key or a flag has said.

    Raises:
        DependencyError: the address is not available.
    """
    from hopwatch.probes.metrics.server import MetricsAddressError, MetricsServer

    try:
        return MetricsServer(*address, registry, report)
    except MetricsAddressError as error:
        raise DependencyError(f"{error}; name another place in {said_by}, or leave it out") from None


def _announce(address: ListenAddress) -> str:
    from hopwatch.probes.metrics.server import PATH

    return f"metrics are at http://{address}{PATH}"


def _read_figures(engine: Engine, rules: Mapping[str, StreamConfig], now_us: int, chosen: Settings) -> StoreSnapshot:
    from hopwatch.alerts.storage import figures as of_alerts
    from hopwatch.monitor.metrics.snapshot import StoreSnapshot
    from hopwatch.monitor.selftest.summary import SUMMARY_US
    from hopwatch.monitor.store import figures, publication, schema, selftest

    with schema.open_snapshot(engine) as connection:
        waiting = publication.count_waiting(connection) if chosen.results is not None else None
        tested = selftest.read_summary(connection, now_us - SUMMARY_US) if chosen.selftest is not None else None
        of_store = figures.read_figures(connection, rules)
        return StoreSnapshot(now_us, of_store, of_alerts.read_figures(connection), waiting, tested)
