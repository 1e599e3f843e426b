"""Readers of the query API: authentication by token, stored only as hashes, until a moment, for some streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.results import format_iso
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.http.tokens import find_holder, refuse_token

SCOPE_KEY: Final = "hopwatch.reader"
"""Key of the request's reader in the ASGI scope."""
UNKNOWN: Final = "unknown-reader"


@dataclass(frozen=True, slots=True)
class Reader:
    """Reader of results: the SHA-256 of each of its tokens, its streams (all, if none is named), and until when.

    ``may_mark`` allows it to set markers.
    """

    name: str
    token_hashes: tuple[bytes, ...]
    streams: frozenset[str] = frozenset()
    expires_us: int | None = None
    may_mark: bool = False

    def check_stream(self, stream: str | None) -> None:
        """Check that it may read a stream; None stands for all of them.

        Raises:
            HttpProblem: it may not.
        """
        if self.streams and stream not in self.streams:
            asked = "all streams: name one" if stream is None else f"{stream!r:.140}"
            told = f"{self.name} may read {', '.join(sorted(self.streams))}, not {asked}"
            raise HttpProblem(HTTPStatus.FORBIDDEN, "other-stream", told[:400])

    def check_may_mark(self) -> None:
        """Check that it may set markers.

        Raises:
            HttpProblem: it may not.
        """
        if not self.may_mark:
            who = self.name or "without [api.readers] nobody"
            told = f"{who} may {'not ' if self.name else ''}set markers: set may_mark = true in [api.readers.NAME]"
            raise HttpProblem(HTTPStatus.FORBIDDEN, "no-marker", told)

    def is_expired(self, now_us: int) -> bool:
        """Return whether its time is over."""
        return self.expires_us is not None and self.expires_us <= now_us


ANYBODY: Final = Reader("", ())
"""Reader of all requests when no readers are configured."""


class Readers:
    """Authenticate readers; without any reader, every request is answered."""

    def __init__(self, readers: Sequence[Reader], clock: Clock) -> None:
        """Take the readers."""
        self._readers, self._clock = tuple(readers), clock

    @property
    def is_token_required(self) -> bool:
        """Requests must carry a token, as readers are configured."""
        return bool(self._readers)

    def authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> Reader:
        """Return the reader of a request, by its token.

        Raises:
            HttpProblem: the token is missing, unknown or expired.
        """
        if not self._readers:
            return ANYBODY
        found = find_holder(headers, self._readers, UNKNOWN)
        if found.expires_us is not None and found.is_expired(self._clock.now_us()):
            raise refuse_token(f"the token of {found.name} expired at {format_iso(found.expires_us)}", UNKNOWN)
        return found
