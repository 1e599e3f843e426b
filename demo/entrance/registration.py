"""Registration of the demo's schema with the gate, which may be starting still."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Final

from hopwatch.demo.entrance.events import SCHEMA, SUBJECT
from hopwatch.demo.link import LinkError

HOST: Final = "127.0.0.1"
TIMEOUT_S: Final = 30.0
RETRY_S: Final = 0.5
JSON_HEADERS: Final = {"content-type": "application/json"}
RETRY_STATUSES: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
)
"""HTTP statuses after which the schema is sent again."""


class _GateAwayError(Exception):
    """The gate did not answer, or cannot answer now."""


def register_schema(
    port: int,
    patience_s: float,
    now_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Register the schema of flights with the gate at a port of this machine; retry for ``patience_s``.

    Raises:
        LinkError: the gate does not answer, or refuses the schema.
    """
    give_up_s = now_s() + patience_s
    while True:
        try:
            _put_schema(port)
        except _GateAwayError as error:
            if now_s() >= give_up_s:
                raise describe_silence(patience_s, str(error)) from None
            sleep(RETRY_S)
        else:
            return


def describe_silence(patience_s: float, why: str) -> LinkError:
    """Return the error that says that the gate was given up."""
    return LinkError(f"the gate has taken nothing for {patience_s:g} s: {why}; look into its log")


def _put_schema(port: int) -> None:
    path = f"/subjects/{SUBJECT}/schemas"
    with closing(HTTPConnection(HOST, port, timeout=TIMEOUT_S)) as connection:
        try:
            connection.request("PUT", path, json.dumps(SCHEMA), JSON_HEADERS)
            answer = connection.getresponse()
            status, told = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise _GateAwayError(str(error) or type(error).__name__) from None
    if status in RETRY_STATUSES:
        raise _GateAwayError(f"{status} {told[:200].decode(errors='replace')}")
    if status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
        raise LinkError(f"the gate answered {status} to PUT {path}: {told[:300].decode(errors='replace')}")
