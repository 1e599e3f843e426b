"""Tests of the policy of a client."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hopwatch.client import ClientPolicy
from hopwatch.client.policy import MAX_BATCH_BYTES, MAX_BATCH_EVENTS, MAX_EVENT_BYTES
from hopwatch.gate import request_bodies, routes


def test_bounds_are_those_of_the_gate() -> None:
    """A request that the policy allows is none that the gate refuses for its size."""
    assert MAX_BATCH_EVENTS == request_bodies.MAX_EVENTS
    assert MAX_EVENT_BYTES == request_bodies.MAX_EVENT_BYTES
    assert MAX_BATCH_BYTES == routes.MAX_BODY_BYTES


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"batch_max_events": 1_001}, "batch_max_events is 1 to 1000, got 1001"),
        ({"batch_max_bytes": 0}, "batch_max_bytes is 1 to 1.04858e+06, got 0"),
        ({"linger_s": -1.0}, "linger_s is 0 to 60, got -1.0"),
        ({"timeout_s": 0.0}, "timeout_s is 0.001 to 600, got 0.0"),
        ({"backoff_base_s": 2.0, "backoff_max_s": 1.0}, "backoff_max_s is 2 to 3600, got 1.0"),
        ({"retry_after_max_s": -1.0}, "retry_after_max_s is 0 to 86400, got -1.0"),
        ({"max_waiting_bytes": 1_000}, "max_waiting_bytes is 1.04858e+06 to 1.09951e+12, got 1000"),
    ],
)
def test_a_value_outside_its_bounds_is_named(wrong: dict[str, Any], told: str) -> None:
    """The error names the key, its bounds and the value."""
    with pytest.raises(ValueError, match=re.escape(told)):
        ClientPolicy(**wrong)
