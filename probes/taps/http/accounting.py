"""Accounting of refused requests: each posted body that is not accepted is counted, however its request ends."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final

from hopwatch.probes.http.limits import App, Receive, Scope, Send
from hopwatch.probes.taps.http.books import Books
from hopwatch.probes.taps.http.refusals import RefusedObservations, estimate_max_count

NOTE: Final = "hopwatch.note"
"""Key of a request's note in its scope."""
_DIGEST_BYTES: Final = 16
_HUNG_UP: Final = 0
_MAX_DIGITS: Final = 18


@dataclass(slots=True, eq=False)
class RequestNote:
    """Note about a request: digest and size of its body, and the refused observations once the body is parsed."""

    refused: RefusedObservations | None = None
    size_bytes: int = 0
    is_whole: bool = False
    declared_bytes: int | None = None
    """Content-length of the request, if it is given."""
    is_compressed: bool = False
    is_accounted: bool = False
    _hash: Any = field(default_factory=lambda: blake2b(digest_size=_DIGEST_BYTES))

    def add_part(self, message: MutableMapping[str, Any]) -> None:
        """Note a part of the body."""
        if message["type"] == "http.request":
            part = message.get("body", b"")
            self.size_bytes += len(part)
            self._hash.update(part)
            self.is_whole = not message.get("more_body", False)

    def digest(self) -> bytes:
        """Return the digest of the body."""
        return bytes(self._hash.digest())

    def estimate_refused(self) -> RefusedObservations:
        """Estimate the observations of a body that was not parsed."""
        size_bytes = self.size_bytes if self.is_whole else self.declared_bytes
        if self.is_compressed or size_bytes is None:
            return RefusedObservations(untimed=None)
        return RefusedObservations(untimed=estimate_max_count(max(size_bytes, self.size_bytes)))


class AccountingMiddleware:
    """ASGI middleware that accounts for refusals before they are answered."""

    def __init__(self, app: App, books: Books) -> None:
        """Wrap an app."""
        self._app, self._books = app, books

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request, and account for its outcome."""
        if scope["type"] != "http" or scope["method"] not in ("POST", "PUT", "PATCH"):
            await self._app(scope, receive, send)
            return
        note = _build_note(scope)

        async def hear() -> MutableMapping[str, Any]:
            message = await receive()
            note.add_part(message)
            return message

        async def say(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._account_for(note, int(message["status"]))
            await send(message)

        try:
            await self._app({**scope, NOTE: note}, hear, say)
        finally:
            if not note.is_accounted:
                self._account_for(note, _HUNG_UP)

    def _account_for(self, note: RequestNote, status: int) -> None:
        if note.is_accounted:
            return
        note.is_accounted = True
        is_taken = status in (HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS)
        refused = note.refused
        if refused is None:
            refused = RefusedObservations() if is_taken else note.estimate_refused()
        told = HTTPStatus.UNPROCESSABLE_ENTITY if is_taken else status
        cause = f"http: refused with {int(told)}" if status else "http: the client hung up"
        if status == HTTPStatus.SERVICE_UNAVAILABLE and note.is_whole:
            self._books.await_resend(note.digest(), refused, cause)
            return
        self._books.mark_answered(note.digest())
        if refused:
            self._books.refuse(refused, cause)


def _build_note(scope: Scope) -> RequestNote:
    note = RequestNote()
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            note.declared_bytes = int(value[:_MAX_DIGITS])
        elif name == b"content-encoding" and value.strip().lower() != b"identity":
            note.is_compressed = True
    return note
