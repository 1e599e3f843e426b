"""Problem details of a failed request (RFC 9457): ``application/problem+json`` with the place of each error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import orjson

MEDIA_TYPE: Final = "application/problem+json"
MAX_FAULTS: Final = 20
"""Errors of one body that are reported, at most."""
MAX_NAME_CHARS: Final = 200
"""Maximum length of a name in a place: it comes from the client."""
RETRY_AFTER_S: Final = 1
"""Value of Retry-After for a client that was turned away."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One error in a body: its place as a JSON pointer, and its description."""

    place: str
    detail: str


@dataclass(eq=False)
class HttpProblem(Exception):  # noqa: N818 - the word of RFC 9457
    """Exception that ends a request with a status; ``kind`` is the machine-readable name."""

    status: HTTPStatus
    kind: str
    detail: str
    faults: list[Fault] = field(default_factory=list)
    extra_members: dict[str, Any] = field(default_factory=dict)
    """Additional members of this kind."""
    extra_headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Return the problem as JSON."""
        told: dict[str, Any] = {
            "type": f"urn:hopwatch:problem:{self.kind}",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": self.detail,
        }
        if self.faults:
            told["errors"] = [{"place": fault.place, "detail": fault.detail} for fault in self.faults]
        return orjson.dumps(told | self.extra_members)

    def headers(self) -> dict[str, str]:
        """Return the response headers."""
        again = {"retry-after": str(RETRY_AFTER_S)} if self.status is HTTPStatus.SERVICE_UNAVAILABLE else {}
        return {"content-type": MEDIA_TYPE, **again, **self.extra_headers}


def json_pointer(place: Iterable[int | str]) -> str:
    """Return a JSON pointer (RFC 6901); names that are too long end in an ellipsis."""
    return "".join(f"/{_truncate(str(part)).replace('~', '~0').replace('/', '~1')}" for part in place)


def _truncate(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:MAX_NAME_CHARS]}…"


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "urn:hopwatch:problem: and a name"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["place", "detail"],
                "properties": {
                    "place": {"type": "string", "description": "a JSON pointer into the body"},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}
"""The schema of every problem."""
