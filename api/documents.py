"""Parts of the OpenAPI document that several routes share."""

from __future__ import annotations

from typing import Any, Final

from hopwatch.probes.http import handlers

PROBLEMS: Final = {
    401: "missing, invalid or expired token",
    403: "the reader may not read this stream",
    404: "there is no such stream, window, node or contract",
    422: "a parameter is none",
    503: "the store is down, or too many wait: ask again after Retry-After",
}


def document(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route beside its own: those of all, and some more problems."""
    found = handlers.document_problems({status: PROBLEMS[status] for status in (401, 403, 422, 503, *more)})
    return {304: {"description": "the client has it: If-None-Match names its entity tag"}, **found}
