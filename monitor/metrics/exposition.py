"""Registry of the monitor's page of metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from hopwatch.monitor.metrics import catalog
from hopwatch.monitor.metrics.samples import build_samples
from hopwatch.monitor.metrics.snapshot import MetricsSnapshot
from hopwatch.probes.metrics import exposition


def build_registry(known: Callable[[], MetricsSnapshot]) -> CollectorRegistry:
    """Return the registry of a page that is made from what is known at each scrape."""
    return exposition.build_registry(catalog.ALL_METRICS, lambda: build_samples(known()))
