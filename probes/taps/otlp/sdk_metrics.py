"""Metrics that an SDK tells of itself: how many spans it has started, which of them are open, and which it dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint, ResourceMetrics

from hopwatch.probes.taps.otlp.message_spans import read_text

STARTED: Final = "otel.sdk.span.started"
LIVE: Final = "otel.sdk.span.live"
PROCESSED: Final = "otel.sdk.processor.span.processed"
EXPORTED: Final = "otel.sdk.exporter.span.exported"
SAMPLED: Final = "RECORD_AND_SAMPLE"

_RESULT: Final = "otel.span.sampling_result"
_ERROR: Final = "error.type"


class SdkReading(NamedTuple):
    """Reading of an SDK's own metrics at one moment, in ns since 1970; its numbers count since ``since_ns``.

    ``unsampled`` are the spans that it started and did not record.
    """

    at_ns: int
    since_ns: int
    started: int
    live: int
    unsampled: int
    dropped: int

    @property
    def ended(self) -> int:
        """Number of recorded spans that have ended."""
        return self.started - self.live


def read_sdk_metrics(resource: ResourceMetrics) -> SdkReading | None:
    """Return what an SDK tells of its spans in one export; None where it does not tell, or not since its start."""
    found: dict[str, list[Metric]] = {}
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            if metric.name in (STARTED, LIVE, PROCESSED, EXPORTED):
                found.setdefault(metric.name, []).append(metric)
    if STARTED not in found or LIVE not in found:
        return None
    metrics = [one for all_of in found.values() for one in all_of]
    if any(
        one.sum.aggregation_temporality != AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE for one in metrics
    ):
        return None
    started, live = list(_read_points(found[STARTED])), list(_read_points(found[LIVE]))
    if not started:
        return None
    sampled = sum(one.as_int for one in started if read_text(one.attributes, _RESULT) == SAMPLED)
    return SdkReading(
        max(one.time_unix_nano for one in (*started, *live)),
        min(one.start_time_unix_nano for one in started),
        sampled,
        sum(one.as_int for one in live if read_text(one.attributes, _RESULT) == SAMPLED),
        sum(one.as_int for one in started) - sampled,
        sum(
            one.as_int
            for name in (PROCESSED, EXPORTED)
            for one in _read_points(found.get(name, ()))
            if read_text(one.attributes, _ERROR) is not None
        ),
    )


def _read_points(metrics: Iterable[Metric]) -> Iterator[NumberDataPoint]:
    for metric in metrics:
        yield from metric.sum.data_points
