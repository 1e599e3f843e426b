"""Samples as prometheus_client shows them, in whatever format a scraper asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from hopwatch.probes.metrics.metric import Metric, MetricType, Sample


class MetricsCollector(Collector):
    """Makes the page anew for each scrape, from the samples of that moment."""

    def __init__(self, metrics: Sequence[Metric], build_samples: Callable[[], Iterable[Sample]]) -> None:
        """Take the metrics in the order of the page, and the function that builds their samples."""
        self._metrics, self._build_samples = metrics, build_samples

    def collect(self) -> Iterator[Family]:
        """Yield every metric that has a sample, in the order in which they are declared."""
        families = {
            metric.name: Family(metric.name.removesuffix("_total"), metric.help, metric.type.value, metric.unit)
            for metric in self._metrics
        }
        for sample in self._build_samples():
            families[sample.metric.name].add_sample(_sample_name(sample), _sample_labels(sample), sample.value)
        yield from (family for family in families.values() if family.samples)

    def describe(self) -> list[Family]:
        """Return nothing, so that registering makes no page."""
        return []


def build_registry(metrics: Sequence[Metric], build_samples: Callable[[], Iterable[Sample]]) -> CollectorRegistry:
    """Return a registry of its own: nothing that a library counts of this process gets in."""
    made = CollectorRegistry(auto_describe=False)
    made.register(MetricsCollector(metrics, build_samples))
    return made


def _sample_name(sample: Sample) -> str:
    return sample.metric.name + sample.suffix


def _sample_labels(sample: Sample) -> dict[str, str]:
    has_bounds = sample.metric.type is not MetricType.HISTOGRAM or sample.suffix == "_bucket"
    names = (label.name for label in sample.metric.labels if has_bounds or label.name != "le")
    return dict(zip(names, sample.labels, strict=True))
