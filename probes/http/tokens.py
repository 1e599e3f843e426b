"""Authentication by token, of which only the SHA-256 is kept."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from hopwatch.probes.http.limits import App, Receive, Scope, Send, send_problem
from hopwatch.probes.http.problems import HttpProblem

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no token."""
Headers = Iterable[tuple[bytes, bytes]]


class TokenHolder(Protocol):
    """Somebody with tokens."""

    @property
    def token_hashes(self) -> tuple[bytes, ...]:
        """The SHA-256 of each token."""


Holder = TypeVar("Holder", bound=TokenHolder)


def find_holder(headers: Headers, holders: Sequence[Holder], kind: str) -> Holder:
    """Return the holder of a request's token; ``kind`` names the problem of one that is not known.

    Raises:
        HttpProblem: the token is missing or unknown.
    """
    said = next((value for name, value in headers if name == b"authorization"), None)
    found = None if said is None else _find_by_hash(sha256(_parse_token(said)).digest(), holders)
    if found is None:
        what = "the token is not known" if said is not None else "there is no token"
        raise refuse_token(what, kind)
    return found


def refuse_token(what: str, kind: str) -> HttpProblem:
    """Return the problem of a token, with what to send instead."""
    told = f"{what}: send one in the header authorization, as Bearer TOKEN or as the password of Basic"
    more = {"www-authenticate": 'Bearer realm="hopwatch"'}
    return HttpProblem(HTTPStatus.UNAUTHORIZED, kind, told, extra_headers=more)


class AuthenticationMiddleware:
    """ASGI middleware that authenticates each request; the body of a refused one is not read."""

    def __init__(self, app: App, authenticate: Callable[[Headers], object], scope_key: str) -> None:
        """Wrap an app; what ``authenticate`` returns is in the scope under the key."""
        self._app, self._authenticate, self._scope_key = app, authenticate, scope_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with who sent it in the scope, or answer 401."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            try:
                scope[self._scope_key] = self._authenticate(scope["headers"])
            except HttpProblem as problem:
                await send_problem(problem, send)
                return
        await self._app(scope, receive, send)


def _find_by_hash(digest: bytes, holders: Sequence[Holder]) -> Holder | None:
    """Return the holder of a token's hash; the comparison takes constant time."""
    found = None
    for holder in holders:
        for one in holder.token_hashes:
            if hmac.compare_digest(one, digest):
                found = holder
    return found


def _parse_token(said: bytes) -> bytes:
    """Return the token of an authorization header; empty bytes if it is malformed."""
    kind, _, value = said.strip().partition(b" ")
    if kind.lower() == b"bearer":
        return value.strip()
    if kind.lower() == b"basic":
        try:
            return b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
