"""Routes of the API whose answers wait for something: completeness with a long poll, and changes as they come."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from hopwatch.api.changes import MAX_WAITING, ChangeFeed, StoreChange
from hopwatch.api.documents import document
from hopwatch.api.parameters import OfStream, check_access, parse_moment
from hopwatch.api.responses import respond
from hopwatch.api.result_store import ResultStore
from hopwatch.client import results
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.lookup.completeness import ask_completeness, is_decided
from hopwatch.probes.http.problems import HttpProblem

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

MAX_WAIT_S: Final = 60
"""Longest wait of one request."""
KEEP_ALIVE_S: Final = 15.0
"""Interval of comments while nothing changes: proxies end connections that are silent for longer."""


def build_router(store: ResultStore, feed: ChangeFeed, settings: Settings, clock: Clock) -> APIRouter:
    """Build the routes; the settings have the contracts."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/completeness", response_model=results.SpanCompleteness, responses=document(404))
    async def get_completeness(
        request: Request,
        contract: Annotated[str, Query(max_length=64, description="the contract, [completeness.NAME]")],
        until: Annotated[str, Query(max_length=40, description="the end of the span: a whole minute, ISO 8601")],
        wait: Annotated[
            int, Query(ge=0, le=MAX_WAIT_S, description="seconds to wait until it is complete, or will not be")
        ] = 0,
    ) -> Response:
        """Say whether the span of a contract that ends at a moment is complete, and what stands in its way."""
        try:
            said = settings.require_contract(contract)
        except ConfigurationError as error:
            raise HttpProblem(HTTPStatus.NOT_FOUND, "unknown-contract", str(error)[:400]) from None
        check_access(request, said.stream)
        until_us, deadline_s = parse_moment("until", until), time.monotonic() + wait

        def ask() -> dict[str, Any]:
            return store.ask(lambda engine: ask_completeness(engine, settings, contract, until_us, clock.now_us()))

        seen = feed.last.number
        answer = await to_thread.run_sync(ask)
        if wait and not is_decided(answer):
            with _waiting(feed):
                while not is_decided(answer) and (left_s := deadline_s - time.monotonic()) > 0:
                    change = await feed.wait(seen, left_s)
                    seen = seen if change is None else change.number
                    answer = await to_thread.run_sync(ask)
        return respond(request, answer)

    @routes.get(
        "/changes",
        response_class=StreamingResponse,
        responses={
            **{status: told for status, told in document().items() if status != HTTPStatus.NOT_MODIFIED},
            200: {"description": "server-sent events `change`", "content": {"text/event-stream": {}}},
        },
    )
    async def get_changes(
        request: Request,
        stream: OfStream = None,
        most: Annotated[int | None, Query(ge=1, le=1_000, description="end after so many events")] = None,
    ) -> Response:
        """Send an event for each change of the store: how far it was read, and the windows that are otherwise now.

        The first one has the windows that can still change.
        """
        check_access(request, stream)
        if feed.waiting >= MAX_WAITING:
            raise _busy_problem()
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        state = await feed.read_state()
        return StreamingResponse(
            _stream_changes(feed, state, stream, most), media_type="text/event-stream", headers=headers
        )

    return routes


async def _stream_changes(
    feed: ChangeFeed, change: StoreChange, stream: str | None, most: int | None
) -> AsyncIterator[bytes]:
    """Yield the events of one client, the first of a state."""
    with _waiting(feed):
        sent = 0
        while True:
            told = change.to_json(stream)
            yield b"event: change\nid: %d\ndata: %s\n\n" % (change.number, orjson.dumps(told))
            sent += 1
            if most is not None and sent >= most:
                return
            while (found := await feed.wait(change.number, KEEP_ALIVE_S)) is None:
                yield b": nothing has changed\n\n"
            change = found


@contextmanager
def _waiting(feed: ChangeFeed) -> Iterator[None]:
    """Count one more that waits during the block.

    Raises:
        HttpProblem: too many wait already.
    """
    if feed.waiting >= MAX_WAITING:
        raise _busy_problem()
    feed.waiting += 1
    try:
        yield
    finally:
        feed.waiting -= 1


def _busy_problem() -> HttpProblem:
    told = f"{MAX_WAITING:,} clients wait already: retry later"
    return HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", told)
