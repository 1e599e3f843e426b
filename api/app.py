"""ASGI app of the query API: its routes and their common answers; see ``/openapi.json``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import orjson
from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from hopwatch.api import finding_routes, live_routes, marker_routes, routes
from hopwatch.api.changes import LOOK_EVERY_S, ChangeFeed
from hopwatch.api.documents import document
from hopwatch.api.readers import SCOPE_KEY, Readers
from hopwatch.api.result_store import ResultStore
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.selftest.stream import without_selftest
from hopwatch.monitor.store import schema
from hopwatch.probes.http import handlers
from hopwatch.probes.http.handlers import HealthAnswer
from hopwatch.probes.http.limits import App, LimitMiddleware, Limits
from hopwatch.probes.http.problems import MAX_FAULTS, Fault, HttpProblem, json_pointer
from hopwatch.probes.http.tokens import AuthenticationMiddleware

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

MAX_BODY_BYTES: Final = 16 * 1_024
"""Maximum size of a body; only a marker has one."""
MAX_READS: Final = 6
"""Questions that read a little, answered at once. Python runs one thread at a time: more would wait for each other."""


def build_app(settings: Settings, readers: Readers, clock: Clock, look_every_s: float = LOOK_EVERY_S) -> App:
    """Return the app over the configured store, behind authentication and request limits."""
    store = ResultStore(settings.store.url)
    feed = ChangeFeed(store, without_selftest(settings.stream_configs()), look_every_s)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = MAX_READS
        async with feed.run():
            yield
        store.close()

    api = FastAPI(
        title="Hopwatch",
        description="Loss, lag and completeness of streams, and markers; the figures of `hopwatch report --json`.",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    routers = [routes.build_router(store, settings.stream_labels), finding_routes.build_router(store, clock)]
    routers.append(live_routes.build_router(store, feed, settings, clock))
    routers.append(marker_routes.build_router(store, settings, clock))
    for router in routers:
        api.include_router(router)
    handlers.add_handlers(api, "see /openapi.json", (route for router in routers for route in router.routes))

    @cache
    def describe() -> bytes:
        return orjson.dumps(api.openapi())

    async def openapi(_: Request) -> Response:
        return Response(describe(), media_type="application/json")

    api.add_route("/openapi.json", openapi, include_in_schema=False)

    @api.get("/healthz")
    async def healthz() -> HealthAnswer:
        """Report that the API runs."""
        return HealthAnswer()

    @api.get("/readyz", responses={503: document()[503]})
    def readyz() -> HealthAnswer:
        """Report whether the store can be read."""
        store.read(schema.check_version)
        return HealthAnswer()

    api.add_exception_handler(RequestValidationError, _on_invalid)
    limited = LimitMiddleware(api, Limits(MAX_BODY_BYTES))
    return AuthenticationMiddleware(limited, readers.authenticate, SCOPE_KEY)


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler is registered for this type only
    faults = [Fault(json_pointer(one["loc"]), str(one["msg"])[:200]) for one in error.errors()[:MAX_FAULTS]]
    told = "the request is invalid: see errors"
    return handlers.build_response(HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", told, faults))
