"""Metrics and labels of the shipped queries, compared with those that are exported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hopwatch.monitor.metrics import catalog
from hopwatch.probes.metrics.metric import Metric, MetricType

OF_A_SCRAPE: Final = frozenset({"job", "instance"})
"""Labels that Prometheus adds itself."""
EXPORTED: Final[Mapping[str, Metric]] = {
    name: metric
    for metric in catalog.ALL_METRICS
    for name in (
        [f"{metric.name}_bucket", f"{metric.name}_count", f"{metric.name}_sum"]
        if metric.type is MetricType.HISTOGRAM
        else [metric.name]
    )
}
_SELECTOR: Final = re.compile(r"\b(hopwatch_[a-z0-9_]+)(?:\{([^}]*)\})?")
_MATCHER: Final = re.compile(r'([a-z_]+)\s*(=~|=|!=|!~)\s*"([^"]*)"')
_GROUPING: Final = re.compile(r"\b(?:by|on|ignoring|without)\s*\(([a-z_, ]+)\)")
_VARIABLE: Final = re.compile(r"\$[a-z_]+|<<[^>]+>>")


def metrics(query: str) -> set[str]:
    """Return the metrics that a query asks for."""
    return {name for name, _ in _SELECTOR.findall(query)}


def faults(query: str) -> Iterator[str]:
    """Yield what a query asks for that is not exported: a metric, a label, a value that a label never has."""
    known: set[str] = set(OF_A_SCRAPE)
    for name, matchers in _SELECTOR.findall(query):
        if name not in EXPORTED:
            yield f"no metric {name}"
            continue
        values = {label.name: label.values for label in EXPORTED[name].labels}
        known |= set(values)
        for label, operator, asked in _MATCHER.findall(matchers):
            if label not in values and label not in OF_A_SCRAPE:
                yield f"no label {label} of {name}"
            elif not _VARIABLE.search(asked):
                yield from _odd_values(
                    name, label, values.get(label, ()), asked.split("|") if "~" in operator else [asked]
                )
    for group in _GROUPING.findall(query):
        yield from (f"no label {one}" for one in re.findall(r"[a-z_]+", group) if one not in known)


def _odd_values(name: str, label: str, values: tuple[str, ...], asked: Iterable[str]) -> Iterator[str]:
    for one in asked:
        if values and one not in values:
            yield f"{label} of {name} is never {one}"
