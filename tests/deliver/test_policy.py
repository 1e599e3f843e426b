"""Tests of the policy: each bound is checked, and its text says what was got."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hopwatch.deliver.policy import BodyFormat, BreakerPolicy, DeliveryPolicy

POLICY = DeliveryPolicy(
    "https://user:pass@receiver.example/hook/secret", (("Authorization", "Bearer x"),), signing_secrets=("whsec_x",)
)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("url", "ftp://receiver/", r"url is http://host… or https://host…, got 'ftp://receiver/'"),
        ("url", "https:///path", "got 'https:///path'"),
        ("headers", (("a b", "c"),), "a header is a name and one line of visible ASCII, got another one as 'a b'"),
        ("headers", (("X", "a\r\nY: b"),), "got another one as 'X'"),
        ("batch_max_events", 1_001, "batch_max_events is 1 to 1000, got 1001"),
        ("batch_max_bytes", 0, "batch_max_bytes is 1 to"),
        ("linger_s", -1, "linger_s is 0 to 60, got -1"),
        ("parallel", 0, "parallel is 1 to 1024, got 0"),
        ("timeout_s", 0, "timeout_s is 0.001 to 600, got 0"),
        ("local_tries", 0, "local_tries is 1 to 100, got 0"),
        ("backoff_base_s", 0, "backoff_base_s is 0.001 to 3600, got 0"),
        ("backoff_max_s", 0.01, "backoff_max_s is 0.1 to 3600, got 0.01"),
        ("local_time_limit_s", -1, "local_time_limit_s is 0 to 3600, got -1"),
        ("tiers_s", (), "number of tiers_s is 1 to 8, got 0"),
        ("tiers_s", (0.0,), "each of tiers_s is 0.001 to 604800, got 0.0"),
        ("tiers_s", (30.0, 3.0), "tiers_s grow from tier to tier, got 30.0, 3.0"),
        ("max_age_s", -1, "max_age_s is 0 to"),
        ("recoverable_statuses", frozenset({429, 500}), "split .5xx are recoverable anyway., got 500"),
        ("recoverable_statuses", frozenset({413, 200}), "got 200, 413"),
        ("retry_after_max_s", float("nan"), "retry_after_max_s is 0 to 86400, got nan"),
        ("max_in_hand_events", 99, "max_in_hand_events is 100 to 1e.06, got 99"),
        ("max_in_hand_bytes", 0, "max_in_hand_bytes is 1 to"),
        ("body_format", BodyFormat.VALUE, 'body_format "value" sends one event: batch_max_events is 1, got 100'),
    ],
)
def test_each_bound_is_checked(field: str, value: Any, told: str) -> None:  # noqa: ANN401 - of any field
    """A value out of bounds is named, with its bounds."""
    with pytest.raises(ValueError, match=told):
        dataclasses.replace(POLICY, **{field: value})


def test_the_bounds_of_a_breaker_are_checked() -> None:
    """A breaker opens after at least one failure, for a time above 0."""
    with pytest.raises(ValueError, match=r"failures is 1 to 1e.06, got 0"):
        BreakerPolicy(failures=0)
    with pytest.raises(ValueError, match=r"max_open_s is 1 to 86400, got 0\.5"):
        BreakerPolicy(max_open_s=0.5)


def test_a_description_has_no_secrets() -> None:
    """Neither the password, nor the path, nor headers or signing secrets are in it."""
    told = POLICY.describe()
    assert told.startswith("https://receiver.example: body_format=")
    assert not any(secret in told for secret in ("pass@", "secret", "Bearer", "whsec"))
