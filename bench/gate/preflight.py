"""Check before a measure: the entrance has the schema, and refuses (or accepts) an event that does not fit it."""

from __future__ import annotations

import http.client
import json
from http import HTTPStatus
from typing import Any, Final

from bench.gate import orders
from bench.gate.client import HOST
from bench.gate.load import PATH
from bench.gate.server import PLAIN, UNCHECKED
from bench.truth import WrongResultError

_PATIENCE_S: Final = 30.0


def check_entrance(kind: str, port: int) -> None:
    """Register the schema where there is a registry, and put an order whose price is a word.

    Raises:
        WrongResultError: it was taken by who validates, or refused by who does not.
    """
    if kind != PLAIN:
        status = _put(port, f"/subjects/{orders.STREAM}/schemas", orders.SCHEMA)
        if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise WrongResultError(f"the schema is registered, got {status}")
    (event_id,) = orders.ids(1)
    expected = HTTPStatus.CREATED if kind == UNCHECKED else HTTPStatus.UNPROCESSABLE_ENTITY
    status = _put(port, f"{PATH}/{event_id}", orders.order(0) | {"price": "cheap"})
    if status != expected:
        raise WrongResultError(f"the entrance {kind!r} answers {expected} to an order that does not fit, got {status}")


def _put(port: int, path: str, said: dict[str, Any]) -> int:
    """Put JSON, and return the status."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_PATIENCE_S)
    try:
        connection.request("PUT", path, json.dumps(said), {"content-type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()
