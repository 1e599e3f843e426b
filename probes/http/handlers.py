"""Shared responses of all apps: health, and problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route

from hopwatch.probes.http.problems import MEDIA_TYPE, SCHEMA, HttpProblem


class HealthAnswer(BaseModel):
    """Response of a health check."""

    status: str = "ok"


def document_problems(when: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Build the OpenAPI documentation of problems from their descriptions by status."""
    content = {MEDIA_TYPE: {"schema": SCHEMA}}
    return {status: {"description": told, "content": content} for status, told in when.items()}


def build_response(problem: HttpProblem) -> Response:
    """Build the response of a problem."""
    return Response(problem.body(), int(problem.status), problem.headers())


def add_handlers(api: FastAPI, advice: str, routes: Iterable[BaseRoute] = ()) -> None:
    """Add handlers to an app, which report problems, unknown routes and internal errors as problem responses.

    ``advice`` names the existing routes; ``routes`` are those of routers, which the app itself does not list.
    """
    own = tuple(routes)

    async def on_problem(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, HttpProblem)  # noqa: S101 - it is registered for these
        return build_response(problem)

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - as above
        status = HTTPStatus(error.status_code)
        answer = build_response(
            HttpProblem(status, status.phrase.lower().replace(" ", "-"), f"{error.detail}: {advice}")
        )
        answer.headers.update(error.headers or {})
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            # Each route knows its own alone.
            answer.headers["allow"] = ", ".join(sorted(_find_methods(request, (*api.routes, *own))))
        return answer

    async def on_fault(_: Request, error: Exception) -> Response:
        told = f"a fault of Hopwatch's own: {type(error).__name__}: please report it"
        return build_response(HttpProblem(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", told))

    api.add_exception_handler(HttpProblem, on_problem)
    api.add_exception_handler(HTTPException, on_http)
    api.add_exception_handler(Exception, on_fault)


def _find_methods(request: Request, routes: Iterable[BaseRoute]) -> set[str]:
    """Return the methods of all routes of a path."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return found
