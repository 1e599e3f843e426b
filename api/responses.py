"""Responses of the API: JSON with an entity tag, by which a client that has it already is told so."""

from __future__ import annotations

from hashlib import blake2b
from http import HTTPStatus
from typing import Final

import orjson
from fastapi import Request, Response

JSON: Final = "application/json"
_TAG_BYTES: Final = 16


def respond(request: Request, value: object) -> Response:
    """Return a value as JSON; 304 without a body if the client names its entity tag (RFC 9110, If-None-Match)."""
    body = orjson.dumps(value)
    tag = f'"{blake2b(body, digest_size=_TAG_BYTES).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, media_type=JSON, headers=headers)
