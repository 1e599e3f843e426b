"""Builds the publishers of results, of metrics, and of answers to contracts, from the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.store import dialect

if TYPE_CHECKING:
    from hopwatch.api.contract_webhooks.notifier import ContractNotifier
    from hopwatch.api.otlp_metrics.exporter import MetricsExporter
    from hopwatch.api.results_topic.publisher import ResultsPublisher
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.store.dialect import StoreLock


@contextmanager
def open_publisher(chosen: Settings, hold: StoreLock, run: str) -> Iterator[ResultsPublisher | None]:
    """Yield the publisher of a run, over connections of its own; None without a topic. The schema is registered.

    Raises:
        ConfigurationError: the topic's subject holds other schemas than those of results.
        ModuleNotFoundError: an extra that the registry needs is not installed.
        StoreError: the store fails.
    """
    if chosen.results is None:
        yield None
        return
    from hopwatch.api.results_topic import publisher
    from hopwatch.api.results_topic.topic_writer import ResultsTopicWriter

    clock, place = SystemClock(), chosen.results.place
    engine = dialect.create_engine(chosen.store.url)
    try:
        number = publisher.register_schema(engine, clock, place.topic)
        writer = ResultsTopicWriter(place, chosen.transport.access, publisher.identify_store(engine))
        yield publisher.ResultsPublisher(engine, writer, schema_number=number, clock=clock, run=run, hold=hold)
    finally:
        engine.dispose()


@contextmanager
def open_exporter(chosen: Settings, hold: StoreLock, run: str) -> Iterator[MetricsExporter | None]:
    """Yield the exporter of metrics of a run, over connections of its own; None without a receiver.

    Raises:
        ModuleNotFoundError: an extra that it needs is not installed.
    """
    if chosen.otlp is None:
        yield None
        return
    from hopwatch.alerts.channels.http import Poster
    from hopwatch.api.otlp_metrics.exporter import HEADERS, POST_S, MetricsExporter

    clock, url, engine = SystemClock(), chosen.otlp.metrics_url, dialect.create_engine(chosen.store.url)
    poster = Poster(POST_S, chosen.otlp.ca_file)
    try:
        yield MetricsExporter(
            engine, url, lambda body, now_us: poster.post(url, body, HEADERS, now_us), clock=clock, run=run, hold=hold
        )
    finally:
        engine.dispose()


@contextmanager
def open_notifier(chosen: Settings, hold: StoreLock, run: str) -> Iterator[ContractNotifier | None]:
    """Yield the notifier of contracts with a webhook, over connections of its own; None without any.

    Raises:
        ConfigurationError: a file that holds a secret cannot be read any more.
    """
    channels = chosen.alerts.channels
    named = {name: one for name, one in chosen.completeness.items() if one.webhook and channels[one.webhook].enabled}
    if not named:
        yield None
        return
    from hopwatch.alerts.channels import factory
    from hopwatch.api.contract_webhooks.notifier import ContractNotifier, NotifiedContract

    clock, engine = SystemClock(), dialect.create_engine(chosen.store.url)
    contracts = []
    for name, one in named.items():
        receiver = factory.open_webhook(one.webhook, channels[one.webhook], clock)
        is_lineage = one.webhook_format == "openlineage"
        contracts.append(NotifiedContract(name, one.stream, one.over_us, receiver, is_lineage))
    try:
        yield ContractNotifier(engine, chosen, contracts, clock=clock, run=run, hold=hold)
    finally:
        engine.dispose()
