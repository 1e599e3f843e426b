"""Tests of what holds queries against what is exported: it would notice."""

from __future__ import annotations

import pytest

from tests.alerts.promql import faults, metrics


@pytest.mark.parametrize(
    "query",
    [
        'max by (stream) (hopwatch_node_lag_seconds{stamp=~"in|out", stream=~"$stream", job="h"})',
        "rate(hopwatch_batch_duration_seconds_count[5m])",
        "hopwatch_lost_messages_total and on (job, instance) hopwatch_store_up == 1",
    ],
)
def test_what_is_exported_may_be_asked_for(query: str) -> None:
    """With labels that it has, values that they have, and what Prometheus adds."""
    assert list(faults(query)) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("hopwatch_lost_total", "no metric hopwatch_lost_total"),
        ("hopwatch_batch_duration_seconds", "no metric hopwatch_batch_duration_seconds"),
        ('hopwatch_store_up{node="a"}', "no label node of hopwatch_store_up"),
        ('hopwatch_window_verdict{verdict=~"LOSSY|LATE"}', "verdict of hopwatch_window_verdict is never LATE"),
        ("sum by (node) (hopwatch_lost_messages_total)", "no label node"),
    ],
)
def test_what_is_not_is_noticed(query: str, expected: str) -> None:
    """A metric, a label, a value."""
    assert list(faults(query)) == [expected]


def test_metrics_of_a_query_are_found() -> None:
    """Metrics are found at any depth of a query."""
    assert metrics("sum(rate(hopwatch_records_total[5m])) / hopwatch_store_up") == {
        "hopwatch_records_total",
        "hopwatch_store_up",
    }
