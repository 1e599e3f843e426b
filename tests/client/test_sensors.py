"""Tests of the question of a sensor: what each answer of the API means to a task that waits."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from hopwatch.client.errors import ResultsError
from hopwatch.client.results_client import ResultsClient
from hopwatch.client.sensors import ask_contract
from tests.support.http_receiver import Behaviour, answers, closes, receiving

UNTIL: Final = "2026-01-01T00:01:00Z"
ANSWER: Final[dict[str, Any]] = {
    "contract": "billing",
    "stream": "orders",
    "nodes": [],
    "state": "complete",
    "until": UNTIL,
    "known": 10,
    "lost_lower": 0,
    "lost_upper": 0,
    "in_flight": 0,
    "revisions": 0,
    "earliest": None,
    "amendable_until": UNTIL,
    "read_through": UNTIL,
    "blocked": [],
    "probes": [],
    "holes": [],
}


def told(**more: object) -> Behaviour:
    """Answer with a state of the contract."""
    return answers(200, json.dumps(ANSWER | more).encode())


def hole(number: int) -> dict[str, Any]:
    """Return records that aged out."""
    place = {"partition": "0", "from_offset": 0, "to_offset": 9, "after": None, "before": None}
    return place | {"text": f"hole {number}"}


@pytest.mark.parametrize(
    ("behaviour", "state", "text"),
    [
        (told(), "complete", "billing: orders until 2026-01-01T00:01:00Z is complete"),
        (told(state="pending", holes=[hole(1)]), "pending", "is pending: hole 1"),
        (told(state="failed", holes=[hole(1), hole(2), hole(3)]), "failed", "is failed: hole 1 (and 2 more)"),
        (answers(503, b'{"detail": "the store is locked"}'), "unknown", "the API does not answer: 503: the store is"),
        (answers(429), "unknown", "the API does not answer: 429"),
        (closes, "unknown", "billing: the API does not answer: the API does not answer: "),
        (answers(200, b"<html>"), "unknown", "is the URL that of hopwatch api?"),
    ],
)
def test_an_answer_is_a_state_and_a_line(behaviour: Behaviour, state: str, text: str) -> None:
    """An API that is down, busy or another program leaves the state unknown: the task goes on waiting."""
    with receiving(behaviour) as receiver:
        found = ask_contract(ResultsClient(receiver.url("")), "billing", UNTIL)
    assert found.state == state
    assert text in found.text


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_raised(status: int) -> None:
    """Asking again changes nothing: no such contract, a token that is wrong."""
    with receiving(answers(status, b'{"detail": "no"}')) as receiver:
        client = ResultsClient(receiver.url(""), token="t")  # noqa: S106 - of a test
        with pytest.raises(ResultsError, match=f"{status}: no"):
            ask_contract(client, "billing", UNTIL)
        assert receiver.requests[0].headers["authorization"] == "Bearer t"
        assert receiver.requests[0].path.startswith("/v1/completeness?contract=billing&until=2026-01-01T00%3A01%3A00Z")


@pytest.mark.parametrize("until", ["2999-01-01T00:00:00Z", "2999-01-01T00:00:00", "2999-01-01T02:00:00+02:00"])
def test_a_moment_that_lies_ahead_is_not_asked_for(until: str) -> None:
    """The API refuses it, and the task waits; a moment without a zone is UTC."""
    with receiving(closes) as receiver:
        found = ask_contract(ResultsClient(receiver.url("")), "billing", until)
        assert receiver.connections == 0
    assert (found.state, found.text) == ("unknown", f"billing: {until} is in the future")


def test_text_that_is_no_moment_is_refused() -> None:
    """As a template that was not rendered."""
    with receiving(closes) as receiver, pytest.raises(ValueError, match=r"Invalid isoformat string: '\{\{ end \}\}'"):
        ask_contract(ResultsClient(receiver.url("")), "billing", "{{ end }}")
