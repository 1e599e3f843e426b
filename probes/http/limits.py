"""Limits on requests, checked before the app: concurrency, size, size after decompression, and time.

A request counts as running once its whole body is there: a slow body takes no other request's place.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from hopwatch.probes.contract.limits import MAX_RECORD_BYTES
from hopwatch.probes.http.problems import HttpProblem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


GZIP: Final = b"gzip"
BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods with a body."""
_GZIP_BITS: Final = 31
"""Window bits that zlib takes for gzip with the default window."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on requests: bytes of a decompressed body; requests at once; bytes of all bodies; seconds for a body."""

    max_body_bytes: int = MAX_RECORD_BYTES
    max_requests: int = 64
    max_held_bytes: int = 64 * 1024 * 1024
    body_s: float = 10.0


class BodyLimit(NamedTuple):
    """Maximum size of a decompressed body in bytes, and a noun for it in errors."""

    size: int
    noun: str = "a body"


class LimitMiddleware:
    """ASGI middleware that enforces the limits, and passes each body on whole."""

    def __init__(self, app: App, limits: Limits, most_of: Callable[[Scope], BodyLimit] | None = None) -> None:
        """Wrap an app; ``most_of`` returns the body limit of a request, if it depends on the request."""
        self._app, self._limits = app, limits
        self._body_limit = most_of or (lambda _: BodyLimit(limits.max_body_bytes))
        self._running = self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http" or scope["method"] not in BODY_METHODS:
            await self._app(scope, receive, send)
            return
        is_packed = _is_gzip(scope)
        body = _IncomingBody(self._body_limit(scope), is_packed=is_packed)
        try:
            await self._read(scope, receive, body)
            await self._run(_without_encoding(scope) if is_packed else scope, body.join(), receive, send)
        except HttpProblem as problem:
            await send_problem(problem, send)
        finally:
            self._held_bytes -= body.size

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        most = self._limits.max_requests
        if self._running >= most:
            raise _busy_problem(f"{most} requests are being worked on already")
        self._running += 1
        try:
            await self._app(scope, _replay_body(body, receive), send)
        finally:
            self._running -= 1

    async def _read(self, scope: Scope, receive: Receive, body: _IncomingBody) -> None:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > body.most.size:
                raise _too_large_problem(body.most)
        try:
            async with asyncio.timeout(self._limits.body_s):
                while await self._receive_part(receive, body):
                    pass
        except TimeoutError:
            told = f"the body did not come within {self._limits.body_s:g} s"
            raise HttpProblem(HTTPStatus.REQUEST_TIMEOUT, "slow-body", told) from None

    async def _receive_part(self, receive: Receive, body: _IncomingBody) -> bool:
        """Receive the next part of a body; return whether there is more."""
        message = await receive()
        if message["type"] == "http.disconnect":
            # The client has hung up, or its chunks are malformed: the server reports both alike.
            told = "the body ended before its end: the client hung up, or its chunks are none"
            raise HttpProblem(HTTPStatus.BAD_REQUEST, "cut-body", told)
        self._held_bytes += body.add(message.get("body", b""))
        if self._held_bytes > self._limits.max_held_bytes:
            raise _busy_problem(f"bodies of {self._limits.max_held_bytes:,} bytes are being worked on already")
        return bool(message.get("more_body", False))


class _IncomingBody:
    """Body that arrives in parts, decompressed part by part, so that it cannot grow beyond its limit."""

    def __init__(self, most: BodyLimit, *, is_packed: bool) -> None:
        self.most, self.size = most, 0
        self._parts: list[bytes] = []
        self._unpacking = zlib.decompressobj(_GZIP_BITS) if is_packed else None

    def add(self, part: bytes) -> int:
        """Add a part, and return its decompressed size in bytes."""
        if self._unpacking is not None:
            try:
                part = self._unpacking.decompress(part, self.most.size - self.size + 1)
            except zlib.error as error:
                raise _not_gzip_problem(str(error)) from None
            if self._unpacking.unused_data:
                raise _not_gzip_problem("bytes follow its end")
        if self.size + len(part) > self.most.size:
            raise _too_large_problem(self.most)
        self._parts.append(part)
        self.size += len(part)
        return len(part)

    def join(self) -> bytes:
        """Return the whole body."""
        if self._unpacking is not None and not self._unpacking.eof:
            raise _not_gzip_problem("it ends too early")
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


def _is_gzip(scope: Scope) -> bool:
    return any(name == b"content-encoding" and value.strip().lower() == GZIP for name, value in scope["headers"])


def _without_encoding(scope: Scope) -> Scope:
    """Return the scope of a request without the header content-encoding."""
    return {**scope, "headers": [one for one in scope["headers"] if one[0] != b"content-encoding"]}


async def send_problem(problem: HttpProblem, send: Send) -> None:
    """Answer with a problem, without waiting for the rest of the body."""
    headers = {**problem.headers(), "connection": "close"}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": int(problem.status), "headers": encoded})
    await send({"type": "http.response.body", "body": problem.body()})


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Build a receive function that returns a body already read, and then later messages."""
    is_handed_out = False

    async def hand_out() -> MutableMapping[str, Any]:
        nonlocal is_handed_out
        if is_handed_out:
            return await receive()
        is_handed_out = True
        return {"type": "http.request", "body": body, "more_body": False}

    return hand_out


def _too_large_problem(most: BodyLimit) -> HttpProblem:
    told = f"{most.noun} has at most {most.size:,} bytes, unpacked"
    return HttpProblem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", told)


def _busy_problem(why: str) -> HttpProblem:
    return HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", f"{why}: retry later")


def _not_gzip_problem(why: str) -> HttpProblem:
    return HttpProblem(HTTPStatus.BAD_REQUEST, "not-gzip", f"the body is said to be gzip, and is not: {why:.100}")
