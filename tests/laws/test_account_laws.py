"""Laws of the account of a component: received = emitted + dropped + refused + in flight, and nothing stays there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import ids
from hopwatch.probes.metrics import samples
from hopwatch.probes.metrics.account import (
    GATE_OUTCOMES,
    Account,
    ComponentAccounts,
    DropReason,
    EventOutcome,
    Output,
    RefusalReason,
)
from hopwatch.probes.metrics.catalog import GATE, IN_FLIGHT_EVENTS, RECEIVED_EVENTS
from tests.support.gate_client import CHEAP, GOOD, KNOWN, AtEntrance, post

SETTLEMENTS = [
    *((EventOutcome.EMITTED, label) for label in Output),
    *((EventOutcome.DROPPED, label) for label in DropReason),
    *((EventOutcome.REFUSED, label) for label in RefusalReason),
]
DATA = st.sampled_from([GOOD, {"price": 11, "item": "x"}, {"price": 1, "item": "z"}, {"price": "x"}])
REQUESTS = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 5), DATA), min_size=1, max_size=4), st.booleans(), st.integers(0, 3)),
    min_size=1,
    max_size=5,
)


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.tuples(st.sampled_from(SETTLEMENTS), st.integers(0, 3))))))
def test_what_is_received_is_settled_or_in_flight(calls: list[tuple[int, list[tuple[Any, int]]]]) -> None:
    """Of any calls each of which settles no more than it received: what it leaves is interrupted, not forgotten."""
    account, received = Account(GATE_OUTCOMES), 0
    for count, settlements in calls:
        received += count
        with account.open_receipt(count) as receipt:
            for (outcome, label), most in settlements:
                now = min(most, receipt.left)
                before = account.snapshot().total(outcome, label)
                match outcome:
                    case EventOutcome.EMITTED:
                        receipt.emit(now, Output(label))
                    case EventOutcome.DROPPED:
                        receipt.drop(now, DropReason(label))
                    case _:
                        receipt.refuse(now, RefusalReason(label))
                assert account.snapshot().total(outcome, label) == before + now
            assert account.snapshot().in_flight == receipt.left
        assert account.snapshot().in_flight == 0
    parts = account.snapshot()
    assert parts.received == received == sum(parts.total(outcome) for outcome in EventOutcome)


@given(st.integers(0, 5), st.integers(0, 5))
def test_what_is_handed_on_stays_in_flight_until_it_is_settled(handed: int, rest: int) -> None:
    """Also when the call that received it has ended."""
    account = Account()
    with account.open_receipt(handed + rest) as receipt:
        receipt.hand_on(handed)
    assert account.snapshot().in_flight == handed
    assert account.snapshot().total(EventOutcome.REFUSED, RefusalReason.INTERRUPTED) == rest
    account.emit(handed, Output.STREAM)
    assert account.snapshot().in_flight == 0


@given(REQUESTS)
def test_the_account_of_the_gate_balances(requests: list[Any]) -> None:
    """Good, noted, held and bad events, repeats, taken ids; all or none, or each; transports that fail or are full."""
    gate = AtEntrance(CHEAP, KNOWN)
    known, sent = [gate.new_id() for _ in range(6)], 0
    for events, each, faults in requests:
        gate.outlet.is_full, gate.rejected.is_full = faults == 1, faults == 2
        gate.outlet.fails = {ids.parse_uuid(known[0])} if faults == 3 else set()
        post(gate, [{"id": known[at], "data": data} for at, data in events], each=str(each).lower())
        sent += len(events)
    parts = gate.intake.account.snapshot()
    assert (parts.received, parts.in_flight) == (sent, 0)
    assert parts.total(EventOutcome.EMITTED, Output.STREAM) == len(gate.outlet.left)
    assert parts.total(EventOutcome.EMITTED, Output.QUARANTINE) == len(gate.rejected.left)
    assert parts.total(EventOutcome.REFUSED, RefusalReason.INTERRUPTED) == 0


def test_a_scrape_between_two_steps_balances() -> None:
    """All figures of an account are of one moment, and what is neither emitted, dropped nor refused is in flight."""
    account = Account(GATE_OUTCOMES)
    account.receive(5)
    account.emit(2, Output.STREAM)
    account.refuse(1, RefusalReason.BUSY)
    found = {(one.metric.name, one.labels): one.value for one in samples.build_samples(_gate_of(account), "1")}
    assert found.pop((RECEIVED_EVENTS.name, (GATE, "orders"))) == 5
    assert found[IN_FLIGHT_EVENTS.name, (GATE, "orders")] == 2
    assert sum(value for (name, _), value in found.items() if "build" not in name) == 5


def test_an_error_of_our_own_is_in_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of a request that failed by an internal error count as interrupted, and none stays in flight."""
    gate = AtEntrance()

    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(gate.intake, "_check_event", fail)
    assert post(gate, [gate.event(), gate.event()]).status_code == 500
    parts = gate.intake.account.snapshot()
    assert (parts.in_flight, parts.total(EventOutcome.REFUSED, RefusalReason.INTERRUPTED)) == (0, 2)


def _gate_of(account: Account) -> ComponentAccounts:
    return ComponentAccounts(GATE, {"orders": account})
