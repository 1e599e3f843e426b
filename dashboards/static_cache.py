"""ASGI middleware that caches immutable static files in memory: a new browser fetches dozens of them.

Streamlit reads each of them anew in a thread.
"""

from __future__ import annotations

from http import HTTPStatus
from posixpath import normpath
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of all that is kept."""
CHUNK_BYTES: Final = 64 * 1024
"""Of a body at once: as much as Streamlit reads of a file."""
_IMMUTABLE: Final = b"immutable"
_PER_CLIENT_HEADERS: Final = frozenset({b"set-cookie", b"vary", b"content-encoding"})
"""Headers of an answer that is for one browser, or for some."""
_PARTIAL_HEADERS: Final = frozenset({b"range", b"if-none-match", b"if-modified-since"})
"""Headers of a request that asks for less than a whole body."""


class _Response(NamedTuple):
    start: Message
    body: bytes


class StaticCacheMiddleware:
    """ASGI middleware that answers from memory what the app has marked immutable."""

    def __init__(self, app: ASGIApp, most_bytes: int = MAX_BYTES) -> None:
        """Stand before an app."""
        self._app, self._free_bytes = app, most_bytes
        self._responses: dict[str, _Response] = {}
        self._fetching: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with what was kept, or let the app answer."""
        if not _is_full_request(scope):
            await self._app(scope, receive, send)
            return
        if (answer := self._responses.get(scope["path"])) is None:
            answer = await self._fetch(scope, receive, send)
        if answer is not None:
            await send(answer.start)
            await _send_in_chunks(answer.body, send)

    async def _fetch(self, scope: Scope, receive: Receive, send: Send) -> _Response | None:
        """Let the app answer; what never changes is kept and returned, all else goes to who asked.

        It is gathered at the pace of the app, and for one at a time: clients that do not read cost no memory each.
        """
        path, noted = scope["path"], list[Message]()

        async def note(message: Message) -> None:
            if noted or (message["type"] == "http.response.start" and self._is_cacheable(message, path)):
                noted.append(message)
            else:
                await send(message)

        if path in self._fetching:
            await self._app(scope, receive, send)
            return None
        self._fetching.add(path)
        try:
            await self._app(scope, receive, note)
        finally:
            self._fetching.discard(path)
        if not noted:
            return None
        start, *parts = noted
        answer = _Response(start, b"".join(part.get("body", b"") for part in parts))
        self._store(path, answer)
        return answer

    def _is_cacheable(self, start: Message, path: str) -> bool:
        """Return whether an answer never changes, and is one that there is room for, under the one name of its file."""
        said = _read_headers(start).get(b"content-length", b"")
        has_room = said.isdigit() and int(said) + _measure_head(start, path) <= self._free_bytes
        return _is_immutable(start) and path == normpath(path) and has_room

    def _store(self, path: str, answer: _Response) -> None:
        """Keep an answer, if it is whole."""
        size = len(answer.body) + _measure_head(answer.start, path)
        is_whole = _read_headers(answer.start)[b"content-length"] == str(len(answer.body)).encode()
        if is_whole and path not in self._responses and size <= self._free_bytes:
            self._free_bytes -= size
            self._responses[path] = answer


async def _send_in_chunks(body: bytes, send: Send) -> None:
    """Send a body so that little of it waits in memory for a client that is slow to read it."""
    for start in range(0, len(body), CHUNK_BYTES):
        part = body[start : start + CHUNK_BYTES]
        await send({"type": "http.response.body", "body": part, "more_body": start + CHUNK_BYTES < len(body)})
    if not body:
        await send({"type": "http.response.body", "body": b""})


def _is_full_request(scope: Scope) -> bool:
    """Return whether a request asks for all of something, whose name is its path alone."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return False
    return not any(name in _PARTIAL_HEADERS for name, _ in scope["headers"])


def _is_immutable(start: Message) -> bool:
    headers = _read_headers(start)
    is_for_all = start["status"] == HTTPStatus.OK and not headers.keys() & _PER_CLIENT_HEADERS
    return is_for_all and _IMMUTABLE in headers.get(b"cache-control", b"")


def _measure_head(start: Message, path: str) -> int:
    return len(path) + sum(len(name) + len(value) for name, value in start["headers"])


def _read_headers(start: Message) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in start["headers"]}
