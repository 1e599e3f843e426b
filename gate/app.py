"""ASGI app of the gate: routes of the registry and of the streams, and their common answers; see ``/openapi.json``."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Final

import orjson
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from hopwatch.gate import routes as entrance
from hopwatch.gate.codec_cache import CodecCache
from hopwatch.gate.gate import Gate
from hopwatch.gate.ingest_times import IngestTimeMiddleware
from hopwatch.gate.producers import SCOPE_KEY
from hopwatch.gate.registry import confluent, routes
from hopwatch.gate.registry.avro_schema import MAX_SCHEMA_BYTES
from hopwatch.gate.registry.subjects import ALL_SUBJECTS, Registry
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES
from hopwatch.probes.clock import SystemClock
from hopwatch.probes.http import handlers
from hopwatch.probes.http.handlers import HealthAnswer
from hopwatch.probes.http.limits import BODY_METHODS, App, BodyLimit, LimitMiddleware, Limits, Scope
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, HttpProblem, json_pointer
from hopwatch.probes.http.request_count import RequestCountMiddleware
from hopwatch.probes.http.tokens import AuthenticationMiddleware

MAX_REQUESTS: Final = 1_024
"""Maximum number of concurrent requests; most of them wait for a transport and cost only the memory of their bodies."""
MAX_BODY_BYTES: Final = 2 * MAX_SCHEMA_BYTES
"""Maximum body size; Confluent's API sends a schema as a JSON string, in which each quote takes two bytes."""


def build_app(registry: Registry, gate: Gate | None = None, limits: Limits | None = None) -> App:
    """Return the app for a registry and a gate, behind authentication and request limits."""
    gate = gate or Gate({}, SystemClock())
    api = FastAPI(
        title="Hopwatch gate",
        description="Takes events into streams, by schemas that it keeps; speaks the API of Confluent's registry too.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lambda _: gate.lifespan(),
    )
    producers = gate.producers

    async def charged(request: Request) -> None:
        # Other methods have no limit on the body, so it is not read.
        size = len(await request.body()) if request.method in BODY_METHODS else 0
        producers.charge(request.scope[SCOPE_KEY], 1, size)

    async def owned(request: Request) -> None:
        producers.check_subject(request.scope[SCOPE_KEY], request.path_params.get("subject", ALL_SUBJECTS))

    # Confluent's routes come first: /schemas/types is not a fingerprint.
    schemas = [of(registry, [Depends(owned)]) for of in (confluent.build_router, routes.build_router)]
    events = entrance.build_router(gate.intakes, CodecCache(registry, gate.clock), producers)
    api.include_router(events)
    for router in schemas:
        api.include_router(router, dependencies=[Depends(charged)])
    handlers.add_handlers(api, "see /openapi.json", (route for router in (events, *schemas) for route in router.routes))

    @cache
    def document() -> bytes:
        return orjson.dumps(api.openapi())

    async def openapi(_: Request) -> Response:
        # Open to every client without a quota, so the document is built only once.
        return Response(document(), media_type="application/json")

    api.add_route("/openapi.json", openapi, include_in_schema=False)

    @api.get("/healthz")
    async def healthz() -> HealthAnswer:
        """Report that the gate runs."""
        return HealthAnswer()

    @api.get("/readyz", responses=routes.document_responses(503))
    async def readyz() -> HealthAnswer:
        """Report whether the schema store can be read and every transport can be written to."""
        await routes.call_registry(registry.level)
        await gate.check_ready()
        return HealthAnswer()

    api.add_exception_handler(confluent.ConfluentError, _on_refusal)
    api.add_exception_handler(RequestValidationError, _on_invalid)
    limited = LimitMiddleware(api, limits or Limits(MAX_BODY_BYTES, MAX_REQUESTS), _body_limit)
    known = AuthenticationMiddleware(limited, producers.authenticate, SCOPE_KEY)
    return IngestTimeMiddleware(RequestCountMiddleware(known, gate.requests), gate.ingest_times)


def _body_limit(scope: Scope) -> BodyLimit:
    """Return the maximum size of the body of a request."""
    is_put = scope["method"] == "PUT"
    if scope["path"].startswith("/streams/"):
        return (
            BodyLimit(MAX_EVENT_BYTES, "an event")
            if is_put
            else BodyLimit(entrance.MAX_BODY_BYTES, "a request with events")
        )
    return BodyLimit(MAX_SCHEMA_BYTES, "a schema") if is_put else BodyLimit(MAX_BODY_BYTES, "a request with a schema")


async def _on_refusal(_: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, confluent.ConfluentError)  # noqa: S101 - the handler is registered for this type only
    told = orjson.dumps({"error_code": refusal.code, "message": refusal.message})
    return Response(told, int(refusal.status), media_type=confluent.MEDIA_TYPE)


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler is registered for this type only
    faults = [Fault(json_pointer(one["loc"]), str(one["msg"])[:200]) for one in error.errors()[:MAX_FAULTS]]
    told = "the request is invalid: see errors"
    return handlers.build_response(HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", told, faults))
