"""Checks of the environment, each with a finding and advice; nothing is changed or started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hopwatch.cli.checks import alerts, data, folders, kafka, machine, selftest, stores
from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.settings import Settings

__all__ = ["Finding", "Level", "run_checks"]


def run_checks(path: Path | None, settings: Settings, clock: Clock, *, allow_weak: bool = False) -> Iterator[Finding]:
    """Run all checks, and yield each finding at once; the check of the data may have several.

    ``path`` is the file of the settings, if there is one; ``allow_weak`` accepts a topic that may lose data.
    """
    yield folders.check_configuration(path, settings.streams)
    yield machine.check_python()
    yield machine.check_java()
    yield machine.check_spark()
    if settings.transport.kafka_place is not None:
        # Arrival times come from the brokers' clocks, which cannot be queried.
        yield kafka.check_topic(settings.transport.kafka_place, settings.transport.access, allow_weak=allow_weak)
    else:
        transport = folders.check_spool(settings.transport.spool)
        yield transport
        if transport.level is not Level.FAIL and settings.transport.spool.exists():
            yield folders.check_clocks(settings.transport.spool, clock)
    if (entrances := kafka.check_gate_topics(settings, allow_weak=allow_weak)) is not None:
        yield entrances
    store = stores.check_store(settings.store.url)
    yield store
    if store.level is not Level.FAIL and (ids := stores.check_ids(settings.store.url, settings.streams)) is not None:
        yield ids
    if store.level is not Level.FAIL:
        yield from data.check_data(settings.store.url, settings.streams, clock.now_us())
        if settings.selftest is not None:
            yield selftest.check_selftest(settings.store.url, clock.now_us())
    if settings.streams:
        yield alerts.check_channels(settings.alerts)
    yield folders.check_workdir(settings.monitor.workdir)
