"""Routes of the API whose answers wait for something: completeness with a long poll, and changes as they come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from hopwatch.api.changes import MAX_WAITING, ChangeFeed, StoreChange
from hopwatch.api.documents import document
from hopwatch.api.parameters import OfStream, check_access, parse_moment
from hopwatch.api.readers import SCOPE_KEY, Reader
from hopwatch.api.responses import respond
from hopwatch.api.result_store import ResultStore
from hopwatch.client import results
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.lookup.completeness import ask_completeness, is_decided
from hopwatch.probes.http.limits import Receive, Scope, Send
from hopwatch.probes.http.problems import HttpProblem

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

Json = dict[str, Any]
MAX_WAIT_S: Final = 60
"""Longest wait of one request."""
KEEP_ALIVE_S: Final = 15.0
"""Interval of comments while nothing changes: proxies end connections that are silent for longer."""


def build_router(store: ResultStore, feed: ChangeFeed, settings: Settings, clock: Clock) -> APIRouter:
    """Build the routes; the settings have the contracts."""
    routes = APIRouter(prefix="/v1")

    def answer_contract(contract: str, until_us: int) -> Coroutine[Any, Any, Json]:
        return store.ask_slowly(lambda engine: ask_completeness(engine, settings, contract, until_us, clock.now_us()))

    questions = _SharedQuestions(answer_contract)

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
        said = settings.completeness.get(contract)
        if said is None:
            raise _unknown_contract(contract, settings, request.scope[SCOPE_KEY])
        check_access(request, said.stream)
        until_us, deadline_s = parse_moment("until", until), time.monotonic() + wait
        seen = feed.last.number
        answer = await questions.ask(contract, until_us, seen)
        if wait and not is_decided(answer):
            with _waiting(feed):
                while not is_decided(answer) and (left_s := deadline_s - time.monotonic()) > 0:
                    change = await feed.wait(seen, left_s)
                    seen = seen if change is None else change.number
                    answer = await questions.ask(contract, until_us, seen)
        return respond(request, answer)

    @routes.get(
        "/changes",
        response_class=StreamingResponse,
        responses={
            **{status: told for status, told in document(404).items() if status != HTTPStatus.NOT_MODIFIED},
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
        if stream is not None and stream not in settings.streams:
            raise HttpProblem(HTTPStatus.NOT_FOUND, "unknown-stream", f"the configuration has no stream {stream!r}")
        if feed.waiting >= MAX_WAITING:
            raise _busy_problem()
        reader: Reader = request.scope[SCOPE_KEY]
        events = _stream_changes(feed, await feed.read_state(), stream, most, lambda: reader.is_expired(clock.now_us()))
        return _EventResponse(feed, events)

    return routes


class _EventResponse(StreamingResponse):
    """Events of one client, who waits for as long as they are sent; one too many gets a problem instead."""

    def __init__(self, feed: ChangeFeed, events: AsyncIterator[bytes]) -> None:
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Before anything is sent: a problem that is found later can be told to nobody.
        with _waiting(self._feed):
            await super().__call__(scope, receive, send)


async def _stream_changes(
    feed: ChangeFeed, change: StoreChange, stream: str | None, most: int | None, is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the events of one client, the first of a state."""
    sent = 0
    while not is_over():
        yield change.to_event(stream)
        sent += 1
        if most is not None and sent >= most:
            return
        while (found := await feed.wait(change.number, KEEP_ALIVE_S)) is None:
            if is_over():
                return
            yield b": nothing has changed\n\n"
        change = found


class _SharedQuestions:
    """Questions that are being answered: who asks the same at the same time shares one.

    A contract of days reads thousands of windows, and each change wakes all who wait.
    """

    def __init__(self, answer: Callable[[str, int], Coroutine[Any, Any, Json]]) -> None:
        self._answer = answer
        self._running: dict[tuple[str, int], tuple[int, asyncio.Task[Json]]] = {}

    async def ask(self, contract: str, until_us: int, number: int) -> Json:
        """Return an answer that was begun when the change of a number was known."""
        key = contract, until_us
        begun = self._running.get(key)
        if begun is None or begun[0] < number or begun[1].done():
            begun = self._running[key] = number, asyncio.create_task(self._answer(contract, until_us))
            begun[1].add_done_callback(lambda task: self._forget(key, task))
        return await asyncio.shield(begun[1])

    def _forget(self, key: tuple[str, int], task: asyncio.Task[Json]) -> None:
        if self._running.get(key, (0, None))[1] is task:
            del self._running[key]
        if not task.cancelled():
            # All who asked may have left.
            task.exception()


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


def _unknown_contract(contract: str, settings: Settings, reader: Reader) -> HttpProblem:
    """Return the problem of a contract that is not there, with the names of those whose streams the reader may read."""
    visible = [
        name for name, one in settings.completeness.items() if not reader.streams or one.stream in reader.streams
    ]
    told = f"there is no [completeness.{contract:.80}], the configuration has: {', '.join(visible) or 'none'}"
    return HttpProblem(HTTPStatus.NOT_FOUND, "unknown-contract", told[:400])


def _busy_problem() -> HttpProblem:
    told = f"{MAX_WAITING:,} clients wait already: retry later"
    return HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", told)
