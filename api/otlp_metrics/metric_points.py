"""Metrics of final windows, as OTLP has them: gauges and histograms of one minute of event time each.

A point has the start and the end of its window for times, so that one that is sent again is the same point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Exemplar,
    ExponentialHistogram,
    Gauge,
    Metric,
    NumberDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from hopwatch import __version__
from hopwatch.api.otlp_metrics.exponential_histogram import build_point
from hopwatch.monitor.kernel.centroids import Digest
from hopwatch.monitor.kernel.rollup import SpanPart
from hopwatch.monitor.results import NodeResult, WindowResult
from hopwatch.probes.contract.limits import WINDOW_US

MAX_EXEMPLARS: Final = 20
"""Lost ids of a node in a window that are named, at most."""
MESSAGES: Final = "{message}"

_TRACED: Final = re.compile(r"([0-9a-f]{32})-([0-9a-f]{16})(?:-[0-9a-f]+)?")
"""Id of a message of a traced service: trace and span that sent it, and perhaps its number."""
_STREAM: Final = "hopwatch.stream"
_NODE: Final = "hopwatch.node"

LostIds = Mapping[tuple[str, int, str], Sequence[str]]
"""Lost ids by stream, start of the window in µs, and node."""


class _Described(NamedTuple):
    name: str
    unit: str
    description: str


VERDICT: Final = _Described("hopwatch.window.verdict", "1", "1 for the verdict of the window.")
EXPECTED: Final = _Described("hopwatch.node.expected", MESSAGES, "Messages that were expected at the node.")
SEEN: Final = _Described("hopwatch.node.seen", MESSAGES, "Messages that were seen at the node.")
LOST: Final = _Described("hopwatch.node.lost", MESSAGES, "Messages that are surely lost; exemplars name some.")
LOST_MAX: Final = _Described("hopwatch.node.lost.max", MESSAGES, "Messages that are lost at most.")
LAG: Final = _Described("hopwatch.node.lag", "s", "Time since the event time, at arrival and at departure.")


def build_request(parts: Iterable[SpanPart[WindowResult]], lost_ids: LostIds) -> bytes:
    """Build the body of a request with the metrics of final windows."""
    gauges: dict[_Described, Gauge] = {}
    lags = ExponentialHistogram(aggregation_temporality=AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA)
    for part in parts:
        window = part.figures
        if window.verdict is not None:
            of_window = {_STREAM: window.stream, "hopwatch.verdict": window.verdict.value}
            _add_gauge(gauges, VERDICT, 1, window, of_window)
        for node, digests in zip(window.nodes, part.lags, strict=True):
            of_node = {_STREAM: window.stream, _NODE: node.node}
            named = lost_ids.get((window.stream, window.window_start_us, node.node), ())
            _add_node(gauges, window, node, of_node, named)
            for stamp, digest in (("in", digests.lag_in_us), ("out", digests.lag_out_us)):
                if digest.count:
                    _add_lag(lags, digest, window, of_node | {"hopwatch.stamp": stamp})
    metrics = [_build_metric(described, gauge=gauge) for described, gauge in gauges.items()]
    if lags.data_points:
        metrics.append(_build_metric(LAG, exponential_histogram=lags))
    request = ExportMetricsServiceRequest()
    of_monitor = request.resource_metrics.add(
        resource=Resource(attributes=_build_attributes({"service.name": "hopwatch"}))
    )
    of_monitor.scope_metrics.add(scope=InstrumentationScope(name="hopwatch", version=__version__), metrics=metrics)
    return bytes(request.SerializeToString())


def _add_node(
    gauges: dict[_Described, Gauge],
    window: WindowResult,
    node: NodeResult,
    of_node: Mapping[str, str],
    lost_ids: Sequence[str],
) -> None:
    _add_gauge(gauges, EXPECTED, node.expected, window, of_node)
    _add_gauge(gauges, SEEN, node.seen, window, of_node)
    if node.loss_upper is not None:
        _add_gauge(gauges, LOST_MAX, node.loss_upper, window, of_node)
    # Of a node that did not tell all nothing is known to be lost, which is no 0.
    if node.loss_upper is not None or node.loss_lower:
        point = _add_gauge(gauges, LOST, node.loss_lower, window, of_node)
        if node.loss == node.loss_lower:
            point.exemplars.extend(_build_exemplar(one, window) for one in lost_ids[:MAX_EXEMPLARS])


def _add_gauge(
    gauges: dict[_Described, Gauge], described: _Described, value: int, window: WindowResult, of: Mapping[str, str]
) -> NumberDataPoint:
    start_ns, end_ns = _find_times(window)
    point: NumberDataPoint = gauges.setdefault(described, Gauge()).data_points.add(
        start_time_unix_nano=start_ns, time_unix_nano=end_ns, as_int=value, attributes=_build_attributes(of)
    )
    return point


def _add_lag(lags: ExponentialHistogram, digest: Digest, window: WindowResult, of: Mapping[str, str]) -> None:
    point = build_point(digest)
    point.start_time_unix_nano, point.time_unix_nano = _find_times(window)
    point.attributes.extend(_build_attributes(of))
    lags.data_points.append(point)


def _build_exemplar(message_id: str, window: WindowResult) -> Exemplar:
    _, end_ns = _find_times(window)
    named = _build_attributes({"hopwatch.message.id": message_id})
    exemplar = Exemplar(filtered_attributes=named, time_unix_nano=end_ns, as_int=1)
    if traced := _TRACED.fullmatch(message_id):
        exemplar.trace_id, exemplar.span_id = (bytes.fromhex(part) for part in traced.groups())
    return exemplar


def _find_times(window: WindowResult) -> tuple[int, int]:
    start_us = window.window_start_us
    return start_us * 1_000, (start_us + WINDOW_US) * 1_000


def _build_metric(described: _Described, **data: Gauge | ExponentialHistogram) -> Metric:
    return Metric(**described._asdict(), **data)


def _build_attributes(values: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in values.items()]
