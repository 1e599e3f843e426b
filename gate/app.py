"""The app: the registry, the entrances of streams, and what their answers have in common; see ``/openapi.json``."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Final

import orjson
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from hopwatch.gate import routes as entrance
from hopwatch.gate.bodies import EVENT_BYTES
from hopwatch.gate.codecs import Codecs
from hopwatch.gate.gate import Gate
from hopwatch.gate.producers import STATE, Guarded
from hopwatch.gate.registry import confluent, routes
from hopwatch.gate.registry.avro_schema import MAX_BYTES
from hopwatch.gate.registry.subjects import ALL, Registry
from hopwatch.probes.clock import SystemClock
from hopwatch.probes.http import handlers
from hopwatch.probes.http.handlers import Well
from hopwatch.probes.http.limits import WITH_BODY, App, Bounded, Limits, Most, Scope
from hopwatch.probes.http.problems import MOST_FAULTS, Fault, Problem, pointer

MOST_REQUESTS: Final = 1_024
"""Most of them wait for a transport, which costs nothing but their bodies."""
BODY_BYTES: Final = 2 * MAX_BYTES
"""In Confluent's API a schema is a text inside of JSON, which doubles its quotes."""


def app(registry: Registry, gate: Gate | None = None, limits: Limits | None = None) -> App:
    """Return the app over a registry and a gate, behind its bounds."""
    gate = gate or Gate({}, SystemClock())
    api = FastAPI(
        title="Hopwatch gate",
        description="Takes events into streams, by schemas that it keeps; speaks the API of Confluent's registry too.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lambda _: gate.running(),
    )
    producers = gate.producers

    async def charged(request: Request) -> None:
        # Of others no body is read: it would have no bound.
        size = len(await request.body()) if request.method in WITH_BODY else 0
        producers.charge(request.scope[STATE], 1, size)

    async def owned(request: Request) -> None:
        producers.check_subject(request.scope[STATE], request.path_params.get("subject", ALL))

    # Confluent's first: /schemas/types is no fingerprint.
    schemas = [of(registry, [Depends(owned)]) for of in (confluent.router, routes.router)]
    events = entrance.router(gate.intakes, Codecs(registry, gate.clock), producers)
    api.include_router(events)
    for router in schemas:
        api.include_router(router, dependencies=[Depends(charged)])
    handlers.add(api, "see /openapi.json", (route for router in (events, *schemas) for route in router.routes))

    @cache
    def document() -> bytes:
        return orjson.dumps(api.openapi())

    async def openapi(_: Request) -> Response:
        # Anybody may ask for it, as often as he likes: it is made once.
        return Response(document(), media_type="application/json")

    api.add_route("/openapi.json", openapi, include_in_schema=False)

    @api.get("/healthz")
    async def healthz() -> Well:
        """Say that the gate runs."""
        return Well()

    @api.get("/readyz", responses=routes.responses(503))
    async def readyz() -> Well:
        """Say whether the store can be read, and every transport be written to."""
        await routes.asked(registry.level)
        await gate.check()
        return Well()

    api.add_exception_handler(confluent.Refusal, _on_refusal)
    api.add_exception_handler(RequestValidationError, _on_invalid)
    return Guarded(Bounded(api, limits or Limits(BODY_BYTES, MOST_REQUESTS), _most_of), producers)


def _most_of(scope: Scope) -> Most:
    """Return how large the body of a request may be."""
    is_put = scope["method"] == "PUT"
    if scope["path"].startswith("/streams/"):
        return Most(EVENT_BYTES, "an event") if is_put else Most(entrance.BODY_BYTES, "a request with events")
    return Most(MAX_BYTES, "a schema") if is_put else Most(BODY_BYTES, "a request with a schema")


async def _on_refusal(_: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, confluent.Refusal)  # noqa: S101 - it is registered for these
    told = orjson.dumps({"error_code": refusal.code, "message": refusal.message})
    return Response(told, int(refusal.status), media_type=confluent.MEDIA_TYPE)


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is registered for these
    faults = [Fault(pointer(one["loc"]), str(one["msg"])[:200]) for one in error.errors()[:MOST_FAULTS]]
    told = "the request holds what cannot be: see errors"
    return handlers.answered(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", told, faults))
