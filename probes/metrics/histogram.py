"""Histogram of observed values, as a page of metrics shows it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from hopwatch.probes.metrics.metric import Metric, Sample


class FigureHistogram:
    """Histogram of observed values by upper bounds, which they may reach."""

    def __init__(self, metric: Metric, bounds: Sequence[float]) -> None:
        """Begin empty."""
        self._metric, self._bounds = metric, bounds
        self._counts, self._sum = [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def build_samples(self, *labels: str) -> Iterator[Sample]:
        """Yield the samples; ``labels`` are the values of all but the bound."""
        limits, counts = self._metric.labels[-1].values, list(self._counts)
        for limit, count in zip(limits, accumulate(counts), strict=True):
            yield Sample(self._metric, (*labels, limit), count, "_bucket")
        yield Sample(self._metric, labels, sum(counts), "_count")
        yield Sample(self._metric, labels, self._sum, "_sum")
