"""Tests of the bench of scaling: its traffic, its account, its curve."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from bench.scale import CurvePoint, Traffic, TrafficPhase, build_curve, find_worst_p95, moments, read_received

PHASES = (TrafficPhase(2, 10), TrafficPhase(1, 10))


def traffic() -> Traffic:
    """Return traffic that began at the moment 1,000 s, and is not sent."""
    return Traffic(PHASES, Producer({}), "x", begun_s=1_000.0)


def test_messages_have_their_moments() -> None:
    """Evenly within each phase, one phase after the other."""
    assert list(moments(PHASES))[:3] == [0.0, 0.5, 1.0]
    assert list(moments(PHASES))[19:22] == [9.5, 10.0, 11.0]
    assert len(list(moments(PHASES))) == 30
    assert [traffic().rate(at_s) for at_s in (5, 10, 15, 20, 25)] == [2, 2, 1, 1, 0]


def test_each_line_of_a_consumer_is_a_message(tmp_path: Path) -> None:
    """A message that was received twice has two moments."""
    (tmp_path / "1").write_text("0 1000000000 2000000000\n1 1500000000 2500000000\n")
    (tmp_path / "2").write_text("1 1500000000 3500000000\n")
    assert read_received(tmp_path) == {0: [(1.0, 2.0)], 1: [(1.5, 2.5), (1.5, 3.5)]}


def test_a_curve_has_the_state_at_the_end_and_the_lag_of_what_was_received() -> None:
    """Of every ten seconds; p95 of the lag counts from when a message should have been sent."""
    received = {number: [(1_000.0, 1_000.0 + number / 10)] for number in range(1, 100)}
    looked = [(1.0, 1, 5), (9.0, 2, 50), (19.5, 3, 0)]
    first, second = build_curve(traffic(), looked, received)
    assert (first.at_s, first.per_s, first.processes, first.backlog) == (10, 2, 2, 50)
    assert first.p95_s == pytest.approx(9.4)
    assert (second.at_s, second.per_s, second.processes, second.backlog, second.p95_s) == (20, 1, 3, 0, None)


def test_a_policy_is_judged_by_the_end_of_the_heaviest_traffic() -> None:
    """Ten seconds outside its last 30 s do not count; without any lag there is no worst."""
    phases = (TrafficPhase(1, 20), TrafficPhase(9, 60), TrafficPhase(1, 20))
    lags_s = (1.0, 90.0, 80.0, 70.0, 60.0, 3.0, None, 4.0, 99.0, 98.0)
    curve = [CurvePoint(10.0 * place, 9, 1, 0, lag_s) for place, lag_s in enumerate(lags_s, 1)]
    assert find_worst_p95(phases, curve) == 4.0
    assert find_worst_p95(phases, curve[:5]) is None
