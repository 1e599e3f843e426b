"""Samples as prometheus_client shows them, in whatever format a scraper asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from hopwatch.monitor.metrics import catalog
from hopwatch.monitor.metrics.metric import MetricType, Sample
from hopwatch.monitor.metrics.samples import build_samples
from hopwatch.monitor.metrics.snapshot import MetricsSnapshot


class MetricsCollector(Collector):
    """Makes the page anew for each scrape, from what is known by then."""

    def __init__(self, known: Callable[[], MetricsSnapshot]) -> None:
        """Ask this for what is known."""
        self._known = known

    def collect(self) -> Iterator[Family]:
        """Yield every metric that has a sample, in the order in which they are declared."""
        families = {
            metric.name: Family(metric.name.removesuffix("_total"), metric.help, metric.type.value, metric.unit)
            for metric in catalog.ALL_METRICS
        }
        for sample in build_samples(self._known()):
            families[sample.metric.name].add_sample(_sample_name(sample), _sample_labels(sample), sample.value)
        yield from (family for family in families.values() if family.samples)

    def describe(self) -> list[Family]:
        """Return nothing, so that registering makes no page."""
        return []


def build_registry(known: Callable[[], MetricsSnapshot]) -> CollectorRegistry:
    """Return a registry of its own: nothing that a library counts of this process gets in."""
    made = CollectorRegistry(auto_describe=False)
    made.register(MetricsCollector(known))
    return made


def _sample_name(sample: Sample) -> str:
    return sample.metric.name + sample.suffix


def _sample_labels(sample: Sample) -> dict[str, str]:
    if sample.metric.type is MetricType.HISTOGRAM and sample.suffix != "_bucket":
        return {}
    names = (label.name for label in sample.metric.labels)
    return dict(zip(names, sample.labels, strict=True))
