"""Tests of the gate's answers as the demo reads them."""

from __future__ import annotations

import pytest

from hopwatch.client import OutcomeResult, SendOutcome
from hopwatch.demo.entrance.answers import GateAnswer, read_answer
from hopwatch.demo.link import LinkError
from tests.demo.entrance.paper_client import enter, reject
from tests.demo.simulation import NOON_US

EVENT = {"id": "a"}


def test_an_answer_has_the_first_error_of_a_rejected_event() -> None:
    """Status, arrival to the microsecond, and the place in the event, whatever its number was in the request."""
    assert read_answer(enter(EVENT)) == GateAnswer(201)
    rejected = reject(EVENT, "/data/distance", "no integer", NOON_US + 1)
    assert read_answer(rejected) == GateAnswer(422, "/data/distance", "no integer", NOON_US + 1)
    assert read_answer(reject(EVENT, "", "no event", NOON_US)).place == ""


@pytest.mark.parametrize("told", [b'{"detail": "there is no entrance"}', b"<html>"])
def test_a_request_that_is_refused_as_a_whole_ends_the_demo(told: bytes) -> None:
    """With what was said of it: it is a fault of the demo's, or of its configuration."""
    outcome = SendOutcome("a", OutcomeResult.REJECTED, 404, "HTTP 404 Not Found", b"", told)
    text = rf"^the gate answered HTTP 404 Not Found to a request with events: {told.decode()}$"
    with pytest.raises(LinkError, match=text):
        read_answer(outcome)
