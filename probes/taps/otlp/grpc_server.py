"""gRPC server of the OTLP tap: takes what its HTTP server takes, by the same intake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NoReturn

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from hopwatch.probes.http.granian_server import STOP_S, PortTakenError
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.metrics.account import EventOutcome
from hopwatch.probes.taps.otlp.app import MAX_BODY_BYTES, WORKERS
from hopwatch.probes.taps.otlp.intake import SpanIntake
from hopwatch.probes.taps.otlp.request_decoder import PROTOBUF
from hopwatch.probes.taps.otlp.trace_response import build_trace_response

TRACES_SERVICE: Final = "opentelemetry.proto.collector.trace.v1.TraceService"
METRICS_SERVICE: Final = "opentelemetry.proto.collector.metrics.v1.MetricsService"
MAX_CALLS: Final = 64
"""Maximum number of calls at once; further ones are refused, and are sent again."""
_CODES: Final[Mapping[HTTPStatus, grpc.StatusCode]] = MappingProxyType(
    {
        HTTPStatus.BAD_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
        HTTPStatus.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    }
)
"""Codes of gRPC for the statuses that an intake refuses with; OTLP sends again what was answered by UNAVAILABLE."""

_Take = Callable[[bytes], bytes]


@contextmanager
def serve_grpc(intake: SpanIntake, host: str, port: int) -> Iterator[None]:
    """Serve an intake by gRPC, without TLS, while the block runs.

    Raises:
        PortTakenError: the port cannot be listened on.
    """
    server = grpc.server(
        ThreadPoolExecutor(WORKERS, "hopwatch-grpc"),
        handlers=[
            _build_handler(intake, TRACES_SERVICE, partial(_take_spans, intake)),
            _build_handler(intake, METRICS_SERVICE, partial(_take_metrics, intake)),
        ],
        # A second process that listens on the port too would be given some of the connections.
        options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", MAX_BODY_BYTES)],
        maximum_concurrent_rpcs=MAX_CALLS,
    )
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        server.add_insecure_port(place)
    except RuntimeError:
        raise PortTakenError(f"{host} port {port} cannot be listened on: choose another") from None
    server.start()
    try:
        yield
    finally:
        server.stop(STOP_S).wait()


def _take_spans(intake: SpanIntake, body: bytes) -> bytes:
    answer: bytes = build_trace_response(intake.take_spans(body, PROTOBUF)).SerializeToString()
    return answer


def _take_metrics(intake: SpanIntake, body: bytes) -> bytes:
    intake.take_metrics(body, PROTOBUF)
    answer: bytes = ExportMetricsServiceResponse().SerializeToString()
    return answer


def _build_handler(intake: SpanIntake, service: str, take: _Take) -> grpc.GenericRpcHandler:
    """Build the handler of a service, which has the one method that OTLP has; bodies stay bytes, for the intake."""

    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        intake.requests.receive(1)
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        try:
            answer = take(body)
            status = HTTPStatus.OK
        except HttpProblem as problem:
            status = problem.status
            _abort(context, problem)
        finally:
            intake.requests.settle(1, EventOutcome.ANSWERED, str(int(status)))
        return answer

    return grpc.method_handlers_generic_handler(service, {"Export": grpc.unary_unary_rpc_method_handler(export)})


def _abort(context: grpc.ServicerContext, problem: HttpProblem) -> NoReturn:
    context.abort(_CODES.get(problem.status, grpc.StatusCode.INTERNAL), problem.detail)
    raise AssertionError  # abort raises
