"""Tests of what an answer means: the whole table, and the bounds of a wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.channels.channel import Accepted, Failure
from hopwatch.alerts.channels.http_responses import MAX_WAIT_S, parse_response, parse_retry_after_s

NOW_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_good_answer_takes_it(status: int) -> None:
    """A 2xx status is accepted with any body."""
    assert parse_response("x", status, "no") == Accepted()


@pytest.mark.parametrize("status", [401, 403, 404, 405, 407, 408, 425, 429, 500, 502, 503, 504, 599])
def test_what_can_be_mended_or_passes_is_tried_again(status: int) -> None:
    """Keys, places, rates, and the other side's own trouble."""
    assert parse_response("x", status, "no") == Failure(f"x answered {status}: no")


@pytest.mark.parametrize("status", [400, 402, 406, 409, 410, 413, 415, 422, 451])
def test_what_is_said_of_the_notification_is_for_good(status: int) -> None:
    """A status about the notification itself is a permanent failure."""
    assert parse_response("x", status, "no") == Failure(f"x answered {status}: no", is_for_good=True)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_a_failure_that_says_so(status: int) -> None:
    """Somebody has to name the place that it leads to; until then it is tried again."""
    told = f"x answered {status}; redirects are not followed: name the URL that it leads to"
    assert parse_response("x", status, "moved") == Failure(told)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        (" 12 ", 12.0),
        ("1000000", MAX_WAIT_S),
        ("9" * 5_000, MAX_WAIT_S),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:30", 30.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0.0),
        ("Fri, 02 Jan 2026 00:00:00 GMT", MAX_WAIT_S),
        ("Thu, 01 Jan 2026 02:00:30 +0200", 30.0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("Thu, 01 Jan 99999 00:00:30 GMT", None),
    ],
)
def test_a_wait_is_seconds_or_a_date(text: str, expected: float | None) -> None:
    """Both forms, and never longer than a quarter of an hour."""
    assert parse_retry_after_s(text, NOW_US) == expected


@given(st.one_of(st.text(), st.integers().map(str), st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %T GMT"))))
def test_whatever_is_asked_for_the_wait_has_bounds(text: str) -> None:
    """No answer makes it fail, or wait for ever."""
    found = parse_retry_after_s(text, NOW_US)
    assert found is None or 0 <= found <= MAX_WAIT_S
