"""Tests of the throttle of one stream: what it admits, refuses and says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.throttle.group_offsets import OffsetsUnknownError
from hopwatch.gate.throttle.queue_wait import GroupOffsets
from hopwatch.gate.throttle.stream_throttle import BLIND_S, StreamThrottle
from hopwatch.gate.throttle.watcher import watch_offsets
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.metrics.account import EventOutcome, Output, RefusalReason
from hopwatch.testing import ManualClock
from tests.gate.throttle.simulation import split_offsets
from tests.support.gate_client import AtEntrance

LEFT_PER_S: Final = 10
FAULT: Final = "a fault"


def limited(clock: ManualClock, *, is_dry_run: bool = False) -> tuple[StreamThrottle, list[str]]:
    """Return a throttle of a stream of which 10 a second are consumed, as 20 a second came, and what it said."""
    throttle, said, second = StreamThrottle("orders", 20.0, clock, is_dry_run=is_dry_run), "", 0
    while not said:
        clock.advance(1)
        throttle.admit(20)
        second += 1
        said = throttle.observe(split_offsets(20 * second, LEFT_PER_S * second))
    return throttle, [said]


def admits(throttle: StreamThrottle, count: int) -> bool:
    """Return whether events are admitted."""
    try:
        throttle.admit(count)
    except HttpProblem:
        return False
    return True


def figures(throttle: StreamThrottle) -> dict[str, float]:
    """Return the values of the metrics by their names."""
    return {sample.metric.name: sample.value for sample in throttle.build_samples()}


@given(st.lists(st.integers(1, 50), min_size=20, max_size=20))
def test_no_more_is_admitted_than_the_limit_and_one_request(counts: list[int]) -> None:
    """Spread over requests of any size, ten seconds admit ten times the limit, and one request on top."""
    clock = ManualClock()
    throttle, _ = limited(clock)
    limit = figures(throttle)["hopwatch_gate_throttle_limit_events_per_second"]
    admitted = 0
    for count in counts:
        clock.advance(0.5)
        admitted += count if admits(throttle, count) else 0
    assert admitted <= 11 * limit + max(counts)


def test_the_refusal_says_why_and_when_to_come_again() -> None:
    """With 429, and the time until a token is there again."""
    clock = ManualClock()
    throttle, said = limited(clock)
    assert said == ["orders: messages wait 11.0 s, of 20 s at most; the gate admits 9.5 events a second"]
    clock.advance(10)
    throttle.admit(100)
    with pytest.raises(HttpProblem, match="messages of orders wait 11 s for the consumers behind the gate") as refused:
        throttle.admit(1)
    assert refused.value.status == 429
    assert int(dict(refused.value.extra_headers)["retry-after"]) == 10


def test_a_dry_run_admits_all_and_counts_what_it_would_refuse() -> None:
    """Its log says what it would do."""
    throttle, said = limited(ManualClock(), is_dry_run=True)
    assert said == ["orders: messages wait 11.0 s, of 20 s at most; the gate would admit 9.5 events a second"]
    assert all(admits(throttle, 20) for _ in range(100))
    assert figures(throttle)["hopwatch_gate_throttled_events_total"] > 1_000


def test_brokers_that_are_silent_hold_nobody_up() -> None:
    """For half a minute the limit stays, and then there is none."""
    clock = ManualClock()
    throttle, _ = limited(clock)
    clock.advance(BLIND_S)
    assert throttle.observe(None) == ""
    assert "hopwatch_gate_throttle_limit_events_per_second" in figures(throttle)
    clock.advance(1)
    assert throttle.observe(None) == "orders: the backlog has not been known for 30 s: all events are admitted"
    assert throttle.observe(None) == ""
    assert all(admits(throttle, 1_000) for _ in range(100))


def test_a_limit_that_is_lifted_is_told() -> None:
    """After a minute of short waits without a refusal."""
    clock = ManualClock()
    throttle, _ = limited(clock)
    said = []
    for second in range(120):
        clock.advance(1)
        said.append(throttle.observe(split_offsets(600 + second, 600 + second)))
    told = "orders: messages wait 0.0 s, of 20 s at most; the gate admits all events again"
    assert [one for one in said if one] == [told]


class Reader:
    """Reader of offsets that are set by hand; a text stands for why there are none."""

    def __init__(self, looks: list[GroupOffsets | str]) -> None:
        """Take the answers, the last of which stands."""
        self.looks, self.ended, self.is_closed = looks, Event(), False

    def read(self, now_s: float) -> GroupOffsets:
        """Return the next answer."""
        del now_s
        if len(self.looks) == 1:
            self.ended.set()
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if look == FAULT:
            raise ZeroDivisionError
        if isinstance(look, str):
            raise OffsetsUnknownError(look)
        return look

    def close(self) -> None:
        """Note that it was closed."""
        self.is_closed = True


@contextmanager
def watched(looks: list[GroupOffsets | str], said: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Let a thread look at such offsets."""
    monkeypatch.setattr("hopwatch.gate.throttle.watcher.LOOK_EVERY_S", 0.001)
    reader, clock = Reader(looks), ManualClock()
    with watch_offsets(StreamThrottle("orders", 20.0, clock), reader, clock, said.append):
        yield reader
    assert reader.is_closed


def test_a_backlog_that_is_not_known_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as it lasts, and again when it begins again."""
    said: list[str] = []
    known = split_offsets(5, 5)
    with watched(["no brokers", "no brokers", known, "no brokers", "no brokers", known], said, monkeypatch) as reader:
        assert reader.ended.wait(20)
    assert said == ["orders: the throttle does not know the backlog: no brokers"] * 2


def test_a_fault_of_our_own_is_as_a_silent_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread goes on, so that no limit stays for ever."""
    said: list[str] = []
    with watched([FAULT, FAULT, split_offsets(5, 5), FAULT], said, monkeypatch) as reader:
        assert reader.ended.wait(20)
    told = "orders: the throttle does not know the backlog: a fault of Hopwatch's own: ZeroDivisionError"
    assert said == [told] * 2


def test_a_throttled_event_is_refused_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the stream nor the quarantine has it, and the account has it as refused."""
    gate = AtEntrance()
    throttle, _ = limited(gate.clock)
    monkeypatch.setattr(gate.intake, "throttle", throttle)
    answers = [gate.ask("POST", "/streams/orders/events", [gate.event()]) for _ in range(30)]
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {201, 429}
    refused = answers[statuses.index(429)]
    assert refused.json()["type"].endswith("throttled")
    assert int(refused.headers["retry-after"]) >= 1
    account = gate.intake.account.snapshot()
    assert account.total(EventOutcome.REFUSED, RefusalReason.THROTTLED) == statuses.count(429)
    assert account.total(EventOutcome.EMITTED, Output.STREAM) == statuses.count(201) == len(gate.outlet.left)
