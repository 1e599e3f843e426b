"""Tests of event times: accepted forms, and the errors for others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from hopwatch.probes.event_times import EventTime, event_time_us
from hopwatch.testing import EPOCH_US


@pytest.mark.parametrize("event_time", [EPOCH_US + 7, datetime(2023, 11, 14, 22, 14, 0, 7, tzinfo=UTC)])
def test_event_times_are_whole_microseconds(event_time: EventTime) -> None:
    """An aware datetime and its µs since 1970 are the same, in any zone."""
    assert event_time_us(event_time) == EPOCH_US + 7
    if isinstance(event_time, datetime):
        assert event_time_us(event_time.astimezone(timezone(timedelta(hours=-9)))) == EPOCH_US + 7


@pytest.mark.parametrize(
    ("event_time", "told"),
    [
        (datetime(2024, 1, 1), "has a zone, got the naive 2024-01-01T00:00:00: use datetime.now(timezone.utc)"),  # noqa: DTZ001
        (1.5, "is an aware datetime or whole µs since 1970, got float"),
        (-5, "lies between 1970 and 2255, got -5 µs since 1970"),
        (1 << 5_000, "lies between 1970 and 2255, got one of 5001 bits"),
    ],
)
def test_what_is_wrong_with_an_event_time_is_told(event_time: object, told: str) -> None:
    """The sentence says what was got and what to do."""
    with pytest.raises(ValueError, match="an event time") as caught:
        event_time_us(event_time)
    assert str(caught.value) == f"an event time {told}"
