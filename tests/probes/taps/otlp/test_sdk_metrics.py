"""Metrics that an SDK tells of its own spans."""

from __future__ import annotations

from typing import Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, ResourceMetrics

from hopwatch.probes.taps.otlp import sdk_metrics
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading, read_sdk_metrics
from tests.support.otlp_requests import build_metrics

READING: Final = SdkReading(at_ns=50, since_ns=10, started=9, live=2, unsampled=4, dropped=3)
DELTA: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


def resource(**changed: object) -> ResourceMetrics:
    """Return the metrics of a request."""
    request = ExportMetricsServiceRequest()
    request.ParseFromString(build_metrics(READING, **changed))  # type: ignore[arg-type]
    told: ResourceMetrics = request.resource_metrics[0]
    return told


def test_a_reading_has_all_numbers() -> None:
    """Recorded spans and others apart, and drops of whatever cause."""
    told = read_sdk_metrics(resource())
    assert told == READING
    assert told is not None
    assert told.ended == 7


def test_an_sdk_that_tells_nothing_has_no_reading() -> None:
    """One that does not say how many spans have begun, or which of them are open."""
    for name in (sdk_metrics.STARTED, sdk_metrics.LIVE):
        told = resource()
        (scope,) = told.scope_metrics
        kept = [one for one in scope.metrics if one.name != name]
        del scope.metrics[:]
        scope.metrics.extend(kept)
        assert read_sdk_metrics(told) is None
    empty = resource()
    for metric in empty.scope_metrics[0].metrics:
        del metric.sum.data_points[:]
    assert read_sdk_metrics(empty) is None


def test_numbers_since_the_last_export_are_no_reading() -> None:
    """One export that is lost would leave out what nobody knows of."""
    assert read_sdk_metrics(resource(temporality=DELTA)) is None
