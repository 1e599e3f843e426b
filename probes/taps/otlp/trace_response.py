"""Answer to a request of spans: how many were not used, and why."""

from __future__ import annotations

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from hopwatch.probes.taps.otlp.intake import TakenSpans


def build_trace_response(taken: TakenSpans) -> ExportTraceServiceResponse:
    """Build the answer of OTLP, which is the same by HTTP and by gRPC."""
    answer = ExportTraceServiceResponse()
    if taken.rejected:
        answer.partial_success.rejected_spans = taken.rejected.total()
        answer.partial_success.error_message = ", ".join(
            f"{count:,} spans: {cause}" for cause, count in sorted(taken.rejected.items())
        )
    return answer
