"""Metrics endpoint of ``hopwatch run``; wired here, because only commands know both results and alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from hopwatch.cli import console
from hopwatch.monitor.clock import SystemClock

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from hopwatch.monitor.metrics.snapshot import StoreSnapshot
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.spark.job import JobContext
    from hopwatch.monitor.stream_config import StreamConfig


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
    from hopwatch.monitor.metrics.folding import plan_folding
    from hopwatch.monitor.metrics.recorder import MetricsRecorder
    from hopwatch.monitor.metrics.server import PATH, MetricsServer
    from hopwatch.monitor.metrics.store_poller import StorePoller
    from hopwatch.monitor.store import dialect, figures, schema

    clock = SystemClock()
    # A separate engine: the job never waits for a connection that a scrape uses.
    engine = dialect.create_engine(chosen.store.url)
    with schema.open_snapshot(engine) as connection:
        begins = figures.read_starting_point(connection, place.rules)
    nodes = {stream: of.pathway.nodes for stream, of in place.rules.items()}
    of_all = MetricsRecorder(place.rules, plan_folding(nodes, chosen.metrics.most_series), clock, begins)
    host, port = chosen.metrics.listen
    server = MetricsServer(host, port, of_all.known)
    reading = StorePoller(lambda: _read_figures(engine, place.rules, clock.now_us()), of_all.read, clock)
    reading.start()
    server.start()
    console.stderr().print(f"hopwatch: metrics are at http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    try:
        yield replace(place, observer=of_all.committed)
    finally:
        reading.stop()
        server.close()
        engine.dispose()


def _read_figures(engine: Engine, rules: Mapping[str, StreamConfig], now_us: int) -> StoreSnapshot:
    from hopwatch.alerts.storage import figures as of_alerts
    from hopwatch.monitor.metrics.snapshot import StoreSnapshot
    from hopwatch.monitor.store import figures, schema

    with schema.open_snapshot(engine) as connection:
        return StoreSnapshot(now_us, figures.read_figures(connection, rules), of_alerts.read_figures(connection))
