"""What the app says will never change is asked of it once: a new browser fetches dozens of files before it draws.

Streamlit reads each of them anew in a thread.
"""

from __future__ import annotations

from http import HTTPStatus
from posixpath import normpath
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all that is kept."""
_IMMUTABLE: Final = b"immutable"
_OF_ONE: Final = frozenset({b"set-cookie", b"vary", b"content-encoding"})
"""Headers of an answer that is for one browser, or for some."""
_PARTLY: Final = frozenset({b"range", b"if-none-match", b"if-modified-since"})
"""Headers of a request that asks for less than a whole body."""


class _Answer(NamedTuple):
    start: Message
    body: bytes


class Unchanging:
    """An ASGI app before another one."""

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES) -> None:
        """Stand before an app."""
        self._app, self._left = app, most_bytes
        self._kept: dict[str, _Answer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with what was kept, or let the app answer."""
        if not _is_whole(scope):
            await self._app(scope, receive, send)
            return
        if (answer := self._kept.get(scope["path"])) is not None:
            await send(answer.start)
            await send({"type": "http.response.body", "body": answer.body})
            return
        noted: list[Message] = []

        async def note(message: Message) -> None:
            if noted or (message["type"] == "http.response.start" and _never_changes(message)):
                noted.append(message)
            await send(message)
            if noted and message["type"] == "http.response.body" and not message.get("more_body", False):
                start, *parts = noted
                self._keep(scope["path"], _Answer(start, b"".join(part.get("body", b"") for part in parts)))

        await self._app(scope, receive, note)

    def _keep(self, path: str, answer: _Answer) -> None:
        """Keep an answer that is whole, under the one name that its file has."""
        headers = _headers(answer.start)
        size = len(answer.body) + len(path) + sum(len(name) + len(value) for name, value in headers.items())
        is_whole = headers.get(b"content-length") == str(len(answer.body)).encode()
        if is_whole and path not in self._kept and path == normpath(path) and size <= self._left:
            self._left -= size
            self._kept[path] = answer


def _is_whole(scope: Scope) -> bool:
    """Return whether a request asks for all of something, whose name is its path alone."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return False
    return not any(name in _PARTLY for name, _ in scope["headers"])


def _never_changes(start: Message) -> bool:
    headers = _headers(start)
    is_for_all = start["status"] == HTTPStatus.OK and not headers.keys() & _OF_ONE
    return is_for_all and _IMMUTABLE in headers.get(b"cache-control", b"")


def _headers(start: Message) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in start["headers"]}
