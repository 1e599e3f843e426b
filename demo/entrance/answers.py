"""The gate's answer for an event, read from the outcome that the client has of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from hopwatch.client import OutcomeResult, SendOutcome
from hopwatch.demo.link import LinkError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class GateAnswer(NamedTuple):
    """The gate's answer for one event; place, detail and arrival are those of a rejected one, by its first error."""

    status: int
    place: str = ""
    detail: str = ""
    arrived_us: int = 0


def read_answer(outcome: SendOutcome) -> GateAnswer:
    """Return the gate's answer for an event.

    Raises:
        LinkError: it refused the request as a whole.
    """
    if outcome.result is not OutcomeResult.REJECTED:
        return GateAnswer(outcome.status)
    try:
        told = json.loads(outcome.answer)
        arrived_us = (datetime.fromisoformat(told["arrived"]) - _EPOCH) // timedelta(microseconds=1)
        error = told["errors"][0]
    except (ValueError, KeyError):
        said = outcome.answer[:300].decode(errors="replace")
        raise LinkError(f"the gate answered {outcome.reason} to a request with events: {said}") from None
    _, slash, place = error["place"].removeprefix("/").partition("/")  # behind its number in the request
    return GateAnswer(outcome.status, slash + place, error["detail"], arrived_us)
