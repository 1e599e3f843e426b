"""Laws of the retry policy."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.policy import DeliveryPolicy, Order
from hopwatch.deliver.retry_policy import FailedTry, NextStep, decide_deferral, decide_retry, max_backoff_s

POLICY = DeliveryPolicy("http://127.0.0.1/")
failures = st.builds(
    FailedTry,
    tries=st.integers(1, 100),
    local_tries=st.integers(1, 100),
    held_s=st.floats(0, 100),
    age_s=st.floats(0, 200_000),
    asked_wait_s=st.just(0.0) | st.floats(0, 1e9),
)
chances = st.floats(0, 1, exclude_max=True)


@given(failures, chances)
def test_waits_and_tries_are_within_their_bounds(failed: FailedTry, chance: float) -> None:
    """A retry has tries and time left, a deferral waits as its tier does, and only what is too old expires."""
    decided = decide_retry(POLICY, failed, chance)
    assert (decided.step is NextStep.EXPIRE) == (failed.age_s >= POLICY.max_age_s)
    if decided.step is NextStep.RETRY:
        assert failed.local_tries < POLICY.local_tries
        assert failed.held_s + decided.wait_s <= POLICY.local_time_limit_s
        assert min(failed.asked_wait_s, POLICY.retry_after_max_s) <= decided.wait_s
        assert decided.wait_s <= max(POLICY.backoff_max_s, failed.asked_wait_s)
    if decided.step is NextStep.DEFER:
        assert decided.wait_s == POLICY.tiers_s[decided.tier]
        assert decided.wait_s >= min(failed.asked_wait_s, POLICY.retry_after_max_s)


@given(failures, chances)
def test_in_order_nothing_is_deferred(failed: FailedTry, chance: float) -> None:
    """With order by key a message is tried again until it is too old."""
    decided = decide_retry(dataclasses.replace(POLICY, order=Order.KEY), failed, chance)
    assert decided.step is (NextStep.EXPIRE if failed.age_s >= POLICY.max_age_s else NextStep.RETRY)
    assert decided.wait_s <= max(POLICY.backoff_max_s, POLICY.retry_after_max_s)


@pytest.mark.parametrize(
    ("tries", "tier"), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (6, 1), (7, 2), (9, 2), (10, 2), (10_000, 2)]
)
def test_the_tier_goes_by_the_tries(tries: int, tier: int) -> None:
    """Three tries to a tier, and all further ones to the last."""
    assert decide_deferral(POLICY, tries).tier == tier


def test_a_long_wait_leads_to_a_later_tier() -> None:
    """The first that waits as long as is asked, or the last."""
    assert [decide_deferral(POLICY, 1, asked_s).tier for asked_s in (30, 31, 300, 301, 1e9)] == [0, 1, 1, 2, 2]


def test_the_backoff_doubles_up_to_its_maximum() -> None:
    """From 0.1 s to 5 s, however many tries there are."""
    assert [max_backoff_s(POLICY, tries) for tries in (1, 2, 3, 6, 7, 10_000)] == [0.1, 0.2, 0.4, 3.2, 5.0, 5.0]


def test_the_jitter_is_full() -> None:
    """The wait is the chance's share of the bound."""
    assert decide_retry(POLICY, FailedTry(1, 1, 0.0, 0.0), 0.25).wait_s == 0.025
    assert decide_retry(POLICY, FailedTry(1, 1, 0.0, 0.0), 0.0).wait_s == 0.0
