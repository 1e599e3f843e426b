"""Tests of the records of events."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.client.event_records import EventRecord, build_record
from hopwatch.client.policy import MAX_EVENT_BYTES
from hopwatch.gate import ids

NOW_US = 1_700_000_000_123_456
V7 = "0192d5a0-0000-7000-8000-000000000001"
V4 = "6f1d2f6e-9c3e-4b7e-8a56-0d6c6f1d2f6e"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def item(record: EventRecord) -> Any:  # noqa: ANN401 - JSON
    """Return the item of a record."""
    return json.loads(record.item)


@given(values.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_an_event_is_encoded_as_it_is(data: object) -> None:
    """The data is that of the caller, the time is now and the id knows it, and the spool gives the same record."""
    record = build_record(data, None, None, NOW_US)
    assert item(record) == {"id": record.id_text, "time": NOW_US, "data": data}
    assert ids.uuid_time_us(record.event_id) == NOW_US // 1_000 * 1_000
    assert EventRecord.decode(record.encode()) == record


def test_an_id_of_the_caller_is_kept() -> None:
    """An id that knows its time goes alone, so that it has the same time whenever it is sent again."""
    assert item(build_record(1, V7, None, NOW_US)) == {"id": V7, "data": 1}
    assert item(build_record(1, UUID(V7), 5, NOW_US)) == {"id": V7, "time": 5, "data": 1}
    at = datetime(2024, 1, 2, 3, 4, 5, 678_901, UTC)
    assert item(build_record(1, V4.upper(), at, NOW_US)) == {"id": V4, "time": 1_704_164_645_678_901, "data": 1}


@pytest.mark.parametrize(
    ("data", "event_id", "event_time", "told"),
    [
        ({1, 2}, None, None, "the data of an event is JSON, got set: Object of type set is not JSON serializable"),
        (float("nan"), None, None, "the data of an event is JSON, got float: Out of range float values are not"),
        ("\ud800", None, None, "the data of an event is JSON, got str: 'utf-8' codec can't encode"),
        ("x" * MAX_EVENT_BYTES, None, None, "has at most 262,144 bytes as JSON, got 262,146"),
        (1, "no", None, "an id is a UUID such as 0192d5a0-0000-7000-8000-000000000001, got 'no'"),
        (1, V4, None, f"the id {V4} knows no time (UUIDs of versions 1, 6 and 7 do): give event_time, too"),
        (1, None, datetime(2024, 1, 2), "an event time has a time zone, got 2024-01-02T00:00:00 without one"),  # noqa: DTZ001
        (1, None, -1, "an event time is a datetime, or whole µs since 1970, got -1"),
        (1, None, 1_704_164_645.678901, "an event time is a datetime, or whole µs since 1970, got 1704164645.678901"),
        (1, None, "2024-01-02", "an event time is a datetime, or whole µs since 1970, got '2024-01-02'"),
    ],
)
def test_a_wrong_argument_is_told_when_it_is_sent(data: object, event_id: Any, event_time: Any, told: str) -> None:  # noqa: ANN401
    """Data, ids and times that the gate could not read are refused at once, with a reason."""
    with pytest.raises(ValueError, match=re.escape(told)):
        build_record(data, event_id, event_time, NOW_US)


def test_a_record_that_is_too_short_is_none() -> None:
    """Zeros that a power failure has left are no record."""
    with pytest.raises(ValueError, match="a record has an id of 16 bytes and an event, got 3 bytes"):
        EventRecord.decode(b"abc")
