"""Source of the metric that scaling goes by."""

from __future__ import annotations

from typing import Protocol


class MetricUnavailableError(OSError):
    """Metric that cannot be had now: processes neither start nor end for it."""


class MetricSource(Protocol):
    """Source of one metric."""

    def read(self) -> float:
        """Return the metric.

        Raises:
            MetricUnavailableError: it cannot be had now.
        """
