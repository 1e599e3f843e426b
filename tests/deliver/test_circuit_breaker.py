"""Tests of the circuit breaker: a table of its states, and the law that it lets nothing through while it is open."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.circuit_breaker import BreakerState, CircuitBreaker, Permit
from hopwatch.deliver.policy import BreakerPolicy

POLICY = BreakerPolicy(failures=3, open_s=1.0, max_open_s=4.0)


def acquire(breaker: CircuitBreaker, now_s: float) -> Permit:
    """Return the permit that there has to be."""
    permit = breaker.acquire_permit(now_s)
    assert permit is not None
    return permit


def open_breaker(now_s: float = 0.0, wait_s: float = 0.0) -> CircuitBreaker:
    """Return a breaker that has opened now."""
    breaker = CircuitBreaker(POLICY)
    for _ in range(3):
        breaker.record_failure(acquire(breaker, now_s), now_s, wait_s)
    assert breaker.state is BreakerState.OPEN
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    """A success between them begins the row anew."""
    breaker = CircuitBreaker(POLICY)
    for is_failure in (True, True, False, True, True):
        permit = acquire(breaker, 0.0)
        breaker.record_failure(permit, 0.0) if is_failure else breaker.record_success(permit)
        assert breaker.state is BreakerState.CLOSED
    breaker.record_failure(acquire(breaker, 0.0), 0.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.acquire_permit(0.99) is None
    assert breaker.remaining_s(0.25) == 0.75


def test_one_probe_closes_it() -> None:
    """A breaker whose time is over lets one request through; its success closes the breaker."""
    breaker = open_breaker()
    probe = acquire(breaker, 1.0)
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.acquire_permit(99.0) is None
    assert breaker.remaining_s(99.0) is None
    breaker.record_success(probe)
    assert breaker.remaining_s(1.0) == 0.0
    assert [acquire(breaker, 1.0) for _ in range(9)]


def test_a_probe_that_fails_opens_it_for_twice_as_long() -> None:
    """Up to the longest time; after a success it begins with the shortest again."""
    breaker, now_s, waits = open_breaker(), 1.0, []
    for _ in range(4):
        breaker.record_failure(acquire(breaker, now_s), now_s)
        waits.append(breaker.remaining_s(now_s) or 0.0)
        now_s += waits[-1]
    assert waits == [2.0, 4.0, 4.0, 4.0]
    breaker.record_success(acquire(breaker, now_s))
    for _ in range(3):
        breaker.record_failure(acquire(breaker, now_s), now_s)
    assert breaker.remaining_s(now_s) == 1.0


def test_it_stays_open_as_long_as_the_receiver_asks() -> None:
    """A Retry-After that is longer counts, a shorter one does not."""
    assert open_breaker(wait_s=30.0).remaining_s(0.0) == 30.0
    assert open_breaker(wait_s=0.5).remaining_s(0.0) == 1.0


def test_a_late_result_counts_for_nothing() -> None:
    """A request that began before it opened neither closes it nor makes it stay open."""
    breaker = CircuitBreaker(POLICY)
    early = [acquire(breaker, 0.0) for _ in range(5)]
    for permit in early[:3]:
        breaker.record_failure(permit, 0.0)
    breaker.record_success(early[3])
    assert breaker.state is BreakerState.OPEN
    breaker.record_failure(early[4], 0.9)
    assert breaker.remaining_s(0.9) == 1.0 - 0.9
    assert not breaker.is_valid(early[4])


def test_a_probe_that_is_given_up_leaves_room_for_another() -> None:
    """A probe that is given up says nothing about the receiver, and another one may be sent."""
    breaker = open_breaker()
    breaker.return_permit(acquire(breaker, 1.0), 1.5)
    assert acquire(breaker, 1.5)
    closed = CircuitBreaker(POLICY)
    closed.return_permit(acquire(closed, 0.0), 0.0)
    assert closed.state is BreakerState.CLOSED


@given(st.lists(st.tuples(st.sampled_from("asfr"), st.floats(0, 3), st.integers(0, 5)), max_size=80))
def test_it_lets_one_request_through_a_time_that_it_is_open_for(events: list[tuple[str, float, int]]) -> None:
    """For any sequence: while it is open there are no permits, half open there is one, and it never is stuck."""
    breaker, now_s, permits, opened_s = CircuitBreaker(POLICY), 0.0, list[Permit](), 0.0
    for kind, after_s, which in events:
        now_s += after_s
        before = breaker.state
        if kind == "a" or not permits:
            permit = breaker.acquire_permit(now_s)
            assert (permit is None) == (
                before is BreakerState.HALF_OPEN or (before is BreakerState.OPEN and now_s < opened_s)
            )
            permits += [permit] if permit is not None else []
            continue
        permit = permits.pop(which % len(permits))
        if kind == "s":
            breaker.record_success(permit)
        elif kind == "f":
            breaker.record_failure(permit, now_s)
        else:
            breaker.return_permit(permit, now_s)
        if breaker.state is BreakerState.OPEN and before is not BreakerState.OPEN:
            opened_s = now_s + (breaker.remaining_s(now_s) or 0.0)
            assert opened_s - now_s <= POLICY.max_open_s
        if breaker.state is BreakerState.HALF_OPEN:
            assert any(map(breaker.is_valid, permits))
