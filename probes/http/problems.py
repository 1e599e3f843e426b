"""What is wrong with a request, told as RFC 9457 has it: ``application/problem+json`` with the place of each error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import orjson

MEDIA_TYPE: Final = "application/problem+json"
MOST_FAULTS: Final = 20
"""As many errors of one body are told."""
MOST_NAME_CHARS: Final = 200
"""Of a name in a place: it may be a stranger's."""
RETRY_S: Final = 1
"""When a client that was turned away may come again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One error in a body: where, as a JSON pointer, and what."""

    place: str
    detail: str


@dataclass(eq=False)
class Problem(Exception):  # noqa: N818 - the word of RFC 9457
    """Ends a request with a status; ``kind`` is the name that programs go by."""

    status: HTTPStatus
    kind: str
    detail: str
    faults: list[Fault] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    """Members of its own that the kind has."""
    extra_headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Return it as JSON."""
        told: dict[str, Any] = {
            "type": f"urn:hopwatch:problem:{self.kind}",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": self.detail,
        }
        if self.faults:
            told["errors"] = [{"place": fault.place, "detail": fault.detail} for fault in self.faults]
        return orjson.dumps(told | self.more)

    def headers(self) -> dict[str, str]:
        """Return the headers that go with it."""
        again = {"retry-after": str(RETRY_S)} if self.status is HTTPStatus.SERVICE_UNAVAILABLE else {}
        return {"content-type": MEDIA_TYPE, **again, **self.extra_headers}


def pointer(place: Iterable[int | str]) -> str:
    """Return a JSON pointer (RFC 6901); names that are too long end in an ellipsis."""
    return "".join(f"/{_cut(str(part)).replace('~', '~0').replace('/', '~1')}" for part in place)


def _cut(name: str) -> str:
    return name if len(name) <= MOST_NAME_CHARS else f"{name[:MOST_NAME_CHARS]}…"


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
