"""Tests of retry topics: their names, and the headers of messages that wait in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.retry_topics import (
    build_retry_headers,
    build_topics,
    format_wait,
)
from hopwatch.gate.retry_headers import (
    FIRST_SENT_HEADER,
    RETRY_HEADERS,
    TRIES_HEADER,
    UNTIL_HEADER,
    RetryState,
    parse_retry_headers,
)
from hopwatch.monitor.settings.durations import parse_duration_us

TIMES = st.integers(0, 10**18 - 1)
HEADERS = st.lists(st.tuples(st.sampled_from(["team", "hopwatch-id", TRIES_HEADER, "x"]), st.binary(max_size=8)))


def test_topics_are_named_after_source_delivery_and_wait() -> None:
    """The rejected topic may be another one."""
    topics = build_topics("orders", "billing", (30_000_000, 300_000_000))
    assert topics.outputs == ("orders.rejected", "orders.billing.retry.30s", "orders.billing.retry.5m")
    assert [topics.is_retry(name) for name in ("orders", "orders.rejected", "orders.billing.retry.5m")] == [
        False,
        False,
        True,
    ]
    assert build_topics("orders", "billing", (), "refused").outputs == ("refused",)


@pytest.mark.parametrize(("wait_us", "text"), [(500_000, "500ms"), (90_000_000, "90s"), (3_600_000_000, "1h")])
def test_waits_are_written_in_their_largest_unit(wait_us: int, text: str) -> None:
    """As short as the configuration writes them."""
    assert format_wait(wait_us) == text


@given(st.integers(1, 10**9))
def test_a_wait_is_read_as_it_is_written(wait_ms: int) -> None:
    """By the parser of the configuration."""
    assert parse_duration_us(format_wait(wait_ms * 1_000)) == wait_ms * 1_000


@given(HEADERS, st.builds(RetryState, TIMES, TIMES, TIMES))
def test_a_state_comes_back_and_other_headers_stay(headers: list[tuple[str, str | bytes]], state: RetryState) -> None:
    """In their order; an older state is replaced, id and event time are there."""
    built = build_retry_headers(headers, state, "a", 7)
    assert parse_retry_headers(built) == state
    kept = [one for one in headers if one[0] not in RETRY_HEADERS]
    assert built[: len(kept)] == kept
    assert dict(built)["hopwatch-time"] == "7"
    assert ("hopwatch-id", "a") in built or any(name == "hopwatch-id" for name, _ in headers)
    again = build_retry_headers(built, state, "b", 8)
    assert sorted(map(str, again)) == sorted(map(str, built))


def test_a_state_that_cannot_be_read_counts_as_none() -> None:
    """No number, negative, too long: the message is tried at once."""
    odd: list[tuple[str, str | bytes]] = [
        (TRIES_HEADER, b"\xff"),
        (FIRST_SENT_HEADER, b"-1"),
        (UNTIL_HEADER, b"9" * 19),
    ]
    assert parse_retry_headers(odd) == RetryState()
