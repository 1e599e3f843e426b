"""Samples of a component's page of metrics, from its accounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.account import AccountSnapshot, ComponentAccounts, EventOutcome
from hopwatch.probes.metrics.metric import Metric, Sample

_EVENTS: Final = {
    EventOutcome.EMITTED: catalog.EMITTED_EVENTS,
    EventOutcome.DROPPED: catalog.DROPPED_EVENTS,
    EventOutcome.REFUSED: catalog.REFUSED_EVENTS,
}
_REQUESTS: Final = {EventOutcome.ANSWERED: catalog.ANSWERED_REQUESTS, EventOutcome.DROPPED: catalog.DROPPED_REQUESTS}


def build_samples(accounts: ComponentAccounts, version: str) -> Iterator[Sample]:
    """Yield all samples of a component."""
    yield Sample(catalog.BUILD, (accounts.component, version), 1)
    for stream, account in accounts.events.items():
        labels, parts = (accounts.component, stream), account.snapshot()
        yield Sample(catalog.RECEIVED_EVENTS, labels, parts.received)
        yield from _settled_samples(_EVENTS, labels, parts)
        yield Sample(catalog.IN_FLIGHT_EVENTS, labels, parts.in_flight)
    if accounts.requests is not None:
        of, parts = (accounts.component,), accounts.requests.snapshot()
        yield Sample(catalog.RECEIVED_REQUESTS, of, parts.received)
        yield from _settled_samples(_REQUESTS, of, parts)
        yield Sample(catalog.IN_FLIGHT_REQUESTS, of, parts.in_flight)


def _settled_samples(
    metrics: Mapping[EventOutcome, Metric], labels: tuple[str, ...], parts: AccountSnapshot
) -> Iterator[Sample]:
    for (outcome, label), count in parts.settled.items():
        yield Sample(metrics[outcome], (*labels, str(label)), count)
