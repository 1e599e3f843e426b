"""Requests of OTLP as SDKs of OpenTelemetry make them, of spans and of what an SDK says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint, Sum
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hopwatch.probes.taps.otlp import sdk_metrics
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
TOPIC = {"messaging.destination.name": "orders"}
IS_LOCAL, IS_REMOTE = 0x100, 0x300


def build_attributes(values: Mapping[str, str | int | bool]) -> list[KeyValue]:
    """Return attributes with values of their types."""
    made = []
    for key, value in values.items():
        if isinstance(value, bool):
            given = AnyValue(bool_value=value)
        else:
            given = AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)
        made.append(KeyValue(key=key, value=given))
    return made


def build_producer_span(context: bytes, start_ns: int, end_ns: int, **changed: Any) -> Span:  # noqa: ANN401 - fields
    """Return the span that sends a message, whose context is its own."""
    fields: dict[str, Any] = {
        "name": "orders send",
        "kind": Span.SPAN_KIND_PRODUCER,
        "trace_id": context[:16],
        "span_id": context[16:],
        "start_time_unix_nano": start_ns,
        "end_time_unix_nano": end_ns,
        "attributes": build_attributes(TOPIC),
    }
    return Span(**(fields | changed))


def build_consumer_span(
    own: bytes,
    contexts: Sequence[bytes],
    start_ns: int,
    end_ns: int,
    operation: str = "process",
    **changed: Any,  # noqa: ANN401
) -> Span:
    """Return the span that takes messages in, with a link to each of their contexts."""
    fields: dict[str, Any] = {
        "name": f"orders {operation}",
        "kind": Span.SPAN_KIND_CONSUMER,
        "trace_id": own[:16],
        "span_id": own[16:],
        "start_time_unix_nano": start_ns,
        "end_time_unix_nano": end_ns,
        "attributes": build_attributes(TOPIC | {"messaging.operation.type": operation}),
        "links": [Span.Link(trace_id=one[:16], span_id=one[16:]) for one in contexts],
    }
    return Span(**(fields | changed))


FAILED = Status(code=Status.STATUS_CODE_ERROR)


def build_resource(service: str | None, instance: str | None = None) -> Resource:
    """Return the resource of an SDK."""
    values = {"service.name": service, "service.instance.id": instance}
    return Resource(attributes=build_attributes({name: value for name, value in values.items() if value is not None}))


def build_traces(spans: Sequence[Span], service: str | None = "billing", instance: str | None = None) -> bytes:
    """Return a request of spans of one SDK."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add(resource=build_resource(service, instance))
    resource.scope_spans.add(spans=spans)
    return bytes(request.SerializeToString())


def build_metrics(
    reading: SdkReading,
    service: str = "billing",
    instance: str | None = None,
    temporality: Any = CUMULATIVE,  # noqa: ANN401
) -> bytes:
    """Return a request of what an SDK says of itself."""
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add(resource=build_resource(service, instance))

    def point(number: int, **attributes: str) -> NumberDataPoint:
        named = build_attributes({name.replace("_", ".", 1): value for name, value in attributes.items()})
        return NumberDataPoint(
            as_int=number, time_unix_nano=reading.at_ns, start_time_unix_nano=reading.since_ns, attributes=named
        )

    def result(number: int, value: str) -> NumberDataPoint:
        made = point(number)
        made.attributes.extend(build_attributes({"otel.span.sampling_result": value}))
        return made

    points = {
        sdk_metrics.STARTED: [result(reading.started, "RECORD_AND_SAMPLE"), result(reading.unsampled, "DROP")],
        sdk_metrics.LIVE: [result(reading.live, "RECORD_AND_SAMPLE")],
        sdk_metrics.PROCESSED: [point(reading.dropped, error_type="queue_full"), point(reading.ended)],
    }
    resource.scope_metrics.add(
        metrics=[
            Metric(name=name, sum=Sum(data_points=of, aggregation_temporality=temporality, is_monotonic=True))
            for name, of in points.items()
        ]
    )
    return bytes(request.SerializeToString())
