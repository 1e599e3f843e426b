"""Bounds on requests before anything looks into them: how many at once, how large, and how slow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from probes.contract.limits import MAX_RECORD_BYTES
from probes.http.problems import Problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may be: bytes of its body, requests at once, and seconds in which the body comes."""

    most_body_bytes: int = MAX_RECORD_BYTES
    most_requests: int = 64
    body_s: float = 10.0


class Gone(Exception):  # noqa: N818 - no error: a client that hangs up owes nobody anything
    """The client has hung up."""


class Bounded:
    """An ASGI app behind its bounds; it is handed bodies whole."""

    def __init__(self, app: App, limits: Limits) -> None:
        """Stand before an app."""
        self._app, self._limits = app, limits
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or end it with what is wrong with it."""
        if scope["type"] != "http" or scope["method"] not in ("POST", "PUT", "PATCH"):
            await self._app(scope, receive, send)
            return
        self._running += 1
        try:
            self._check_busy()
            body = await self._body(scope, receive)
            await self._app(scope, _whole(body, receive), send)
        except Problem as problem:
            await send_problem(problem, send)
        except Gone:
            return
        finally:
            self._running -= 1

    def _check_busy(self) -> None:
        most = self._limits.most_requests
        if self._running > most:
            told = f"{most} requests are being worked on already: come again"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", told)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        most = self._limits.most_body_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value[:20]) > most:
                raise _too_large(most)
        try:
            async with asyncio.timeout(self._limits.body_s):
                return await _read(receive, most)
        except TimeoutError:
            told = f"the body did not come within {self._limits.body_s:g} s"
            raise Problem(HTTPStatus.REQUEST_TIMEOUT, "slow-body", told) from None


async def _read(receive: Receive, most_bytes: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most_bytes:
            raise _too_large(most_bytes)
        if not message.get("more_body", False):
            return b"".join(parts)


async def send_problem(problem: Problem, send: Send) -> None:
    """Answer with a problem; what is left of the body is not waited for."""
    headers = {**problem.headers(), "connection": "close"}
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": int(problem.status), "headers": encoded})
    await send({"type": "http.response.body", "body": problem.body()})


def _whole(body: bytes, receive: Receive) -> Receive:
    """Return what hands out a body that was read, and then what comes behind it."""
    is_handed_out = False

    async def hand_out() -> MutableMapping[str, Any]:
        nonlocal is_handed_out
        if is_handed_out:
            return await receive()
        is_handed_out = True
        return {"type": "http.request", "body": body, "more_body": False}

    return hand_out


def _too_large(most: int) -> Problem:
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", f"a body has at most {most} bytes: send two")
