"""Definition of a metric: name, type, labels and help text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Final, NamedTuple

MAX_OPEN_SERIES: Final = 100
"""Label sets of one of the monitor's own metrics at most; those beyond are one, ``OTHER`` in each label."""


class MetricType(StrEnum):
    """The types that Prometheus knows and the monitor has."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Label:
    """A label; ``values`` are all that it can have, none where they are not known beforehand."""

    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Its name ends in its unit, or in ``_total`` where it only ever grows."""

    name: str
    type: MetricType
    help: str
    labels: tuple[Label, ...] = ()

    @property
    def unit(self) -> str:
        """The base unit that the name ends in, empty where it counts things."""
        last = self.name.rpartition("_")[2]
        return last if last in {"seconds", "ratio"} else ""

    @property
    def series(self) -> int:
        """Number of series at most for one stream, one node, one edge, or the monitor itself."""
        closed = prod(len(label.values) for label in self.labels if label.values)
        more = 2 if self.type is MetricType.HISTOGRAM else 0
        is_open = any(not label.values and label.name not in {"stream", "source", "node"} for label in self.labels)
        return closed * (MAX_OPEN_SERIES + 1 if is_open else 1) + more


class Sample(NamedTuple):
    """One value. ``labels`` are in the order of the metric's; ``suffix`` is that of a histogram's parts."""

    metric: Metric
    labels: tuple[str, ...]
    value: float
    suffix: str = ""
