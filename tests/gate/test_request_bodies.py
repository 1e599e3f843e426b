"""Tests of request bodies: each event is parsed by itself, as it was sent."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import request_bodies
from hopwatch.gate.request_bodies import MAX_EVENTS, SentEvent
from hopwatch.probes.http.problems import HttpProblem

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.lists(st.tuples(JSON, JSON, JSON), min_size=1, max_size=5))
def test_what_was_sent_is_handed_on_byte_for_byte(events: list[tuple[object, object, object]]) -> None:
    """The data as bytes, id and time as values, each with its place in the body."""
    said = [{"id": event_id, "time": time, "data": data} for event_id, time, data in events]
    found = request_bodies.parse_batch(orjson.dumps(said))
    assert found == [
        SentEvent(event_id, time, orjson.dumps(data), f"/{number}", f"/{number}/data")
        for number, (event_id, time, data) in enumerate(events)
    ]


def test_spaces_are_a_part_of_what_was_sent() -> None:
    """So that a signature over the bytes still holds in quarantine."""
    (found,) = request_bodies.parse_batch(b'[{"id": "x", "data": {"a" : 1.0e0 } }]')
    assert found.data == b'{"a" : 1.0e0 }'


@pytest.mark.parametrize(
    ("item", "event_id", "told"),
    [
        ('{"id": "x", "dato": 1}', "x", "Object contains unknown field `dato`"),
        ('{"id": "x"}', "x", "Object missing required field `data`"),
        ('{"data": 1}', None, "Object missing required field `id`"),
        ("7", None, "Expected `object`, got `int`"),
        ("null", None, "Expected `object`, got `null`"),
    ],
)
def test_an_item_that_is_no_event_is_told_by_itself(item: str, event_id: str | None, told: str) -> None:
    """With its place, its id if it has one, and all of its bytes; those beside it are as ever."""
    bad, good = request_bodies.parse_batch(f'[{item}, {{"id": "y", "data": 2}}]'.encode())
    assert (bad.event_id, bad.data, bad.place, bad.faults[0].place) == (event_id, item.encode(), "/0", "/0")
    assert bad.faults[0].detail == f"an event has id, data and perhaps time: {told}"
    assert good == SentEvent("y", None, b"2", "/1", "/1/data")


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"[", 400, "the body is no JSON: Input data was truncated"),
        (b"\xff", 400, "the body is no JSON: "),
        (b'{"id": 1}', 422, "the body is a list of events, such as [{...}]"),
        (b"[]", 422, "a request has 1 to 1,000 events, got 0"),
        (b"[" + b"1," * MAX_EVENTS + b"1]", 422, "a request has 1 to 1,000 events, got 1,001"),
    ],
)
def test_a_body_that_is_no_list_of_events_is_refused(body: bytes, status: int, told: str) -> None:
    """In a sentence."""
    with pytest.raises(HttpProblem) as caught:
        request_bodies.parse_batch(body)
    assert caught.value.status == HTTPStatus(status)
    assert caught.value.detail.startswith(told)


@given(st.binary() | JSON.map(orjson.dumps) | st.lists(JSON).map(orjson.dumps))
def test_no_body_makes_a_fault(body: bytes) -> None:
    """Any body is parsed as events or raises an HttpProblem."""
    with suppress(HttpProblem):
        assert request_bodies.parse_batch(body)
