"""The app: the registry, and what its answers have in common; documented at ``/openapi.json``."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from probes.http.limits import App, Bounded, Limits
from probes.http.problems import Fault, Problem
from probes.registry import confluent, routes
from probes.registry.avro_schema import MAX_BYTES
from probes.registry.subjects import Registry

MOST_FAULTS: Final = 20
BODY_BYTES: Final = 2 * MAX_BYTES
"""In Confluent's API a schema is a text inside of JSON, which doubles its quotes."""


class Well(BaseModel):
    """That all is well."""

    status: str = "ok"


def app(registry: Registry, limits: Limits | None = None) -> App:
    """Return the app over a registry, behind its bounds."""
    api = FastAPI(
        title="Hopwatch gate",
        description="A schema registry, which speaks the API of Confluent's too.",
        version="1",
        docs_url=None,
        redoc_url=None,
    )
    # First: /schemas/types is no fingerprint.
    routers = (confluent.router(registry), routes.router(registry))
    for router in routers:
        api.include_router(router)
    api.state.own_routes = [route for router in routers for route in router.routes]

    @api.get("/healthz")
    async def healthz() -> Well:
        """Say that the gate runs."""
        return Well()

    @api.get("/readyz", responses=routes.responses(503))
    async def readyz() -> Well:
        """Say whether the store can be read."""
        await routes.asked(registry.level)
        return Well()

    api.add_exception_handler(Problem, _on_problem)
    api.add_exception_handler(confluent.Refusal, _on_refusal)
    api.add_exception_handler(RequestValidationError, _on_invalid)
    api.add_exception_handler(HTTPException, _on_http)
    api.add_exception_handler(Exception, _on_fault)
    return Bounded(api, limits or Limits(most_body_bytes=BODY_BYTES))


async def _on_problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)  # noqa: S101 - it is registered for these, as all below
    return Response(problem.body(), int(problem.status), problem.headers())


async def _on_refusal(_: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, confluent.Refusal)  # noqa: S101
    told = orjson.dumps({"error_code": refusal.code, "message": refusal.message})
    return Response(told, int(refusal.status), media_type=confluent.MEDIA_TYPE)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    faults = [Fault(_pointer(one["loc"]), str(one["msg"])[:200]) for one in error.errors()[:MOST_FAULTS]]
    told = "the request holds what cannot be: see errors"
    return await _on_problem(request, Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", told, faults))


def _pointer(place: tuple[int | str, ...]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    status = HTTPStatus(error.status_code)
    kind, told = status.phrase.lower().replace(" ", "-"), f"{error.detail}: see /openapi.json"
    answer = await _on_problem(request, Problem(status, kind, told))
    answer.headers.update(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        # Each route knows its own alone.
        answer.headers["allow"] = ", ".join(sorted(_allowed(request)))
    return answer


def _allowed(request: Request) -> set[str]:
    """Return the methods of all routes of a path."""
    found: set[str] = set()
    for route in (*request.app.routes, *request.app.state.own_routes):
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found


async def _on_fault(request: Request, error: Exception) -> Response:
    told = f"a fault of Hopwatch's own: {type(error).__name__}: please report it"
    return await _on_problem(request, Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", told))
