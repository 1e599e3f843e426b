"""HTTP client of the gate: one persistent connection that registers a schema and posts events in batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, NamedTuple

from hopwatch.demo.entrance.breakage import Item
from hopwatch.demo.link import LinkError

HOST: Final = "127.0.0.1"
ANSWERS_WITHIN_S: Final = 30.0
JSON_HEADERS: Final = {"content-type": "application/json"}
RETRY_STATUSES: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
)
"""HTTP statuses after which a request is sent again."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class GateAwayError(Exception):
    """The gate did not answer, or cannot answer now: send the request again."""


class GateAnswer(NamedTuple):
    """The gate's answer for one event; ``place`` and ``detail`` are its first error, if any."""

    status: int
    arrived_us: int
    place: str
    detail: str


class EntranceClient:
    """Client of one gate on this machine."""

    def __init__(self, port: int) -> None:
        """Take the port; the connection is opened at the first request."""
        self._connection = HTTPConnection(HOST, port, timeout=ANSWERS_WITHIN_S)

    def register(self, subject: str, schema: dict[str, Any]) -> None:
        """Register a schema as that of a subject.

        Raises:
            GateAwayError: the gate does not answer now.
            LinkError: it refuses the schema.
        """
        self._asked("PUT", f"/subjects/{subject}/schemas", schema, {HTTPStatus.OK, HTTPStatus.CREATED})

    def post(self, stream: str, items: Sequence[Item]) -> list[GateAnswer]:
        """Post events and return the gate's answer for each, in their order; each is accepted or rejected by itself.

        Raises:
            GateAwayError: the gate does not answer now.
            LinkError: it refuses the request as a whole.
        """
        told = self._asked("POST", f"/streams/{stream}/events?each=true", items, {HTTPStatus.MULTI_STATUS})
        return [_parse_answer(number, one) for number, one in enumerate(told["events"])]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _asked(self, method: str, path: str, body: object, good: set[HTTPStatus]) -> Any:  # noqa: ANN401 - JSON
        try:
            self._connection.request(method, path, json.dumps(body, separators=(",", ":")), JSON_HEADERS)
            answer = self._connection.getresponse()
            status, told = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise GateAwayError(str(error) or type(error).__name__) from None
        if status in RETRY_STATUSES:
            raise GateAwayError(f"{status} {told[:200].decode(errors='replace')}")
        if status not in good:
            raise LinkError(f"the gate answered {status} to {method} {path}: {told[:300].decode(errors='replace')}")
        return json.loads(told)


def _parse_answer(number: int, one: dict[str, Any]) -> GateAnswer:
    errors = one.get("errors") or [{"place": "", "detail": ""}]
    arrived_us = (datetime.fromisoformat(one["arrived"]) - _EPOCH) // timedelta(microseconds=1)
    return GateAnswer(one["status"], arrived_us, errors[0]["place"].removeprefix(f"/{number}"), errors[0]["detail"])
