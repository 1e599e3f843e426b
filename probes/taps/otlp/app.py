"""ASGI app of the OTLP tap: takes spans and metrics as every receiver of OTLP/HTTP does."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request, Response
from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from hopwatch.probes.http import handlers
from hopwatch.probes.http.handlers import HealthAnswer
from hopwatch.probes.http.limits import App, LimitMiddleware, Limits
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.http.request_count import RequestCountMiddleware
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http.periodic_work import run_periodically
from hopwatch.probes.taps.otlp.intake import SpanIntake
from hopwatch.probes.taps.otlp.request_decoder import JSON, PROTOBUF
from hopwatch.probes.taps.otlp.trace_response import build_trace_response

TRACES_PATH: Final = "/v1/traces"
METRICS_PATH: Final = "/v1/metrics"
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a decompressed body; SDKs send up to 512 spans at once, collectors up to 8,192."""
WORKERS: Final = 4
"""Threads that decode bodies; further requests wait."""


def build_app(intake: SpanIntake, limits: Limits | None = None) -> App:
    """Build the app of an intake, with its limits."""
    api = FastAPI(
        title="Hopwatch OTLP tap",
        version="1",
        docs_url=None,
        openapi_url=None,
        lifespan=lambda _: run_periodically(intake.tick),
    )
    limiter = CapacityLimiter(WORKERS)

    @api.post(TRACES_PATH)
    async def traces(request: Request) -> Response:
        kind = _check_media_type(request)
        taken = await to_thread.run_sync(intake.take_spans, await request.body(), kind, limiter=limiter)
        return _respond(build_trace_response(taken), kind)

    @api.post(METRICS_PATH)
    async def metrics(request: Request) -> Response:
        kind = _check_media_type(request)
        await to_thread.run_sync(intake.take_metrics, await request.body(), kind, limiter=limiter)
        return _respond(ExportMetricsServiceResponse(), kind)

    @api.get("/healthz")
    async def healthz() -> HealthAnswer:
        return HealthAnswer()

    @api.get("/readyz")
    async def readyz() -> HealthAnswer:
        try:
            await to_thread.run_sync(intake.check, limiter=limiter)
        except TapSourceError as error:
            raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-down", str(error)) from None
        return HealthAnswer()

    handlers.add_handlers(api, f"spans go to POST {TRACES_PATH}, metrics to POST {METRICS_PATH}")
    return RequestCountMiddleware(
        LimitMiddleware(api, limits or Limits(max_body_bytes=MAX_BODY_BYTES)), intake.requests
    )


def _respond(answer: Message, media_type: str) -> Response:
    body = answer.SerializeToString() if media_type == PROTOBUF else json_format.MessageToJson(answer)
    return Response(body, media_type=media_type)


def _check_media_type(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in (PROTOBUF, JSON) or encoding != "identity":
        got = f"{kind[:60] or 'no content-type'}, {encoding[:60]}"
        told = f"a body is {PROTOBUF} or {JSON}, as it is or by gzip; got {got}"
        raise HttpProblem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unknown-type", told)
    return kind
