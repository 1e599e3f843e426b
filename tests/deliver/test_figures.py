"""Tests of the figures of a delivery on the page of metrics."""

from __future__ import annotations

from collections.abc import Sequence

from hopwatch.deliver.answers import AttemptResult
from hopwatch.deliver.circuit_breaker import BreakerState
from hopwatch.deliver.figures import DeliveryFigures
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.exposition import MetricsCollector


def read(figures: DeliveryFigures) -> dict[tuple[str, ...], float]:
    """Return the samples as they are exposed: by name and values of labels."""
    families = MetricsCollector(catalog.COMPONENT_METRICS, figures.build_samples).collect()
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_requests_are_counted_by_result_size_and_time() -> None:
    """One that was given up is no longer in flight; bounds count what reaches them."""
    figures = DeliveryFigures("billing")
    for _ in range(3):
        figures.record_request(100, 5_000)
    figures.record_result(100, AttemptResult.ACCEPTED, 0.05)
    figures.record_cancellation()
    found = read(figures)
    assert found["hopwatch_delivery_in_flight_requests", "billing"] == 1
    assert found["hopwatch_delivery_requests_total", "billing", "accepted"] == 1
    assert found["hopwatch_delivery_requests_total", "billing", "cancelled"] == 1
    assert found["hopwatch_delivery_requests_total", "billing", "timeout"] == 0
    assert found["hopwatch_delivery_batch_messages_bucket", "billing", "50"] == 0
    assert found["hopwatch_delivery_batch_messages_bucket", "billing", "100"] == 3
    assert found["hopwatch_delivery_batch_messages_count", "billing"] == 3
    assert found["hopwatch_delivery_batch_messages_sum", "billing"] == 300
    assert found["hopwatch_delivery_round_trip_seconds_bucket", "billing", "0.02"] == 0
    assert found["hopwatch_delivery_round_trip_seconds_bucket", "billing", "0.05"] == 1
    assert found["hopwatch_delivery_round_trip_seconds_bucket", "billing", "+Inf"] == 1


def test_breaker_pause_and_backlog_are_as_they_were_recorded_last() -> None:
    """A backlog that was never read has no sample: a 0 would look like good news."""
    figures = DeliveryFigures("billing")
    before = read(figures)
    assert ("hopwatch_delivery_retry_backlog_messages", "billing") not in before
    assert before["hopwatch_delivery_breaker_state", "billing", "closed"] == 1
    figures.record_breaker_state(BreakerState.OPEN)
    figures.record_pause(is_paused=True)
    figures.record_backlog(7, 12.5)
    found = read(figures)
    states = {state: found["hopwatch_delivery_breaker_state", "billing", state] for state in catalog.BREAKER_STATES}
    assert states == {"closed": 0, "open": 1, "half-open": 0}
    assert found["hopwatch_delivery_paused", "billing"] == 1
    assert found["hopwatch_delivery_retry_backlog_messages", "billing"] == 7
    assert found["hopwatch_delivery_retry_age_seconds", "billing"] == 12.5


def test_messages_that_wait_in_hand_are_handed_on() -> None:
    """To whoever stamps them, if there is one."""
    told: list[tuple[Sequence[DeliveryMessage], int]] = []
    DeliveryFigures("billing", lambda messages, until_us: told.append((messages, until_us))).record_wait([], 5)
    DeliveryFigures("billing").record_wait([], 6)
    assert told == [([], 5)]


def test_the_catalog_knows_all_results_and_states() -> None:
    """Those of the engine, and requests that were given up."""
    assert {one.value for one in AttemptResult} | {"cancelled"} == set(catalog.ATTEMPT_RESULTS)
    assert {one.value for one in BreakerState} == set(catalog.BREAKER_STATES)
