"""Tests of a step: what it does to a message, what it stamps, and what it writes down, for each fate."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from hopwatch.demo.faults import Dice, NodeFaults
from hopwatch.demo.layout import Layout
from hopwatch.demo.nodes.step import Hop, NodeStep
from hopwatch.demo.records import FlightMessage
from hopwatch.demo.truth import NodeAction, TruthLog, count_actions
from tests.demo.simulation import NOON_US, PaperClock, PaperHop, PaperProbe, message_id


class StepBench:
    """A step with everything round it in view."""

    def __init__(self, folder: Path, faults: NodeFaults, hop: Hop | None = None) -> None:
        """Make a step of router's with these faults."""
        self.clock = PaperClock()
        self.probe = PaperProbe(self.clock, 0.0)
        self.handed_on: list[FlightMessage] = []
        self.path = Layout(folder).truth_log("router")
        self.path.parent.mkdir()
        self.step = NodeStep(
            probe=self.probe,
            truth=TruthLog(self.path),
            dice=Dice(0, "router", faults),
            delay_s=faults.delay_s,
            work=lambda flight: {**flight, "worked": True},
            hop=hop or PaperHop(self.handed_on.append),
            monotonic_s=self.clock.monotonic_s,
            now_us=self.clock.now_us,
        )

    @property
    def stamped(self) -> list[str]:
        """Return the kinds of the stamps, in order."""
        return [stamp.kind for stamp in self.probe.stamps]

    def deeds(self) -> dict[str, int]:
        """Return how often each deed is written down, less those that never were."""
        return {deed.name: count for deed in NodeAction if (count := count_actions(self.path, deed))}


@pytest.mark.parametrize(
    ("faults", "stamped", "deeds", "handed_on"),
    [
        (NodeFaults(), ["in", "out"], {"HANDED_ON": 1}, 1),
        (NodeFaults(drop_ratio=1), ["in"], {"DROPPED": 1}, 0),
        (NodeFaults(filter_ratio=1), ["in", "filtered"], {"FILTERED": 1}, 0),
        (NodeFaults(reject_ratio=1), ["in", "rejected"], {"REJECTED": 1}, 0),
        (NodeFaults(duplicate_ratio=1), ["in", "out", "in", "out"], {"HANDED_ON": 1, "REPEATED": 1}, 2),
    ],
)
def test_every_fate_is_stamped_and_written_down(
    tmp_path: Path, faults: NodeFaults, stamped: list[str], deeds: dict[str, int], handed_on: int
) -> None:
    """A message that passes is worked on and handed on; one that is stopped or dropped is not."""
    bench = StepBench(tmp_path, faults)
    bench.step.receive_message(FlightMessage(message_id(0), 0, NOON_US, {"carrier": "UA"}))
    assert bench.stamped == stamped
    assert bench.deeds() == deeds
    assert [message.flight for message in bench.handed_on] == [{"carrier": "UA", "worked": True}] * handed_on


def test_a_created_message_is_written_down_before_it_is_handled(tmp_path: Path) -> None:
    """Truth knows of a message before any probe does, with its event time."""
    bench = StepBench(tmp_path, NodeFaults(drop_ratio=1))
    bench.step.create(FlightMessage(message_id(0), 0, NOON_US, {}))
    assert bench.deeds() == {"CREATED": 1, "DROPPED": 1}


def test_delayed_messages_leave_in_order_when_they_are_due(tmp_path: Path) -> None:
    """A delay holds messages back without holding up those behind them; each leaves when its own time is over."""
    bench = StepBench(tmp_path, NodeFaults(delay_s=2.0))
    assert bench.step.wait_s is None
    for number in range(3):
        bench.clock.us = NOON_US + number * 500_000
        bench.step.receive_message(FlightMessage(message_id(number), number, bench.clock.us, {}))
    assert bench.stamped == ["in"] * 3
    assert bench.step.wait_s == pytest.approx(1.0)
    bench.clock.us = NOON_US + 2_500_001
    bench.step.release()
    assert [message.number for message in bench.handed_on] == [0, 1]
    assert bench.stamped == ["in", "in", "in", "out", "out"]
    assert bench.step.wait_s == pytest.approx(0.5, abs=1e-5)


def test_a_delayed_message_is_not_handed_on_in_the_truth_before_it_is(tmp_path: Path) -> None:
    """Until its time is over nothing is written of a message that is held: a kill would lose it."""
    bench = StepBench(tmp_path, NodeFaults(delay_s=2.0))
    bench.step.receive_message(FlightMessage(message_id(0), 0, NOON_US, {}))
    assert bench.deeds() == {}
    bench.clock.us += 2_000_001
    bench.step.release()
    assert bench.deeds() == {"HANDED_ON": 1}


class SlowHop:
    """Keeps messages until it is told to let the first ones go."""

    def __init__(self) -> None:
        """Start empty."""
        self.kept: deque[Callable[[], None]] = deque()

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
        """Keep a message."""
        assert message.id
        self.kept.append(then)

    def settle(self) -> None:
        """Keep them longer."""

    def close(self) -> None:
        """Do nothing."""


def test_a_message_is_stamped_out_once_it_has_left(tmp_path: Path) -> None:
    """Until then nothing is written of it, and it may come again."""
    hop = SlowHop()
    bench = StepBench(tmp_path, NodeFaults(), hop)
    bench.step.receive_message(FlightMessage(message_id(0), 0, NOON_US, {}))
    bench.step.release()
    assert (bench.stamped, bench.deeds(), bench.step.done_count) == (["in"], {}, 0)
    hop.kept.popleft()()
    assert (bench.stamped, bench.deeds(), bench.step.done_count) == (["in", "out"], {"HANDED_ON": 1}, 1)


def test_messages_are_done_up_to_the_first_that_has_not_left(tmp_path: Path) -> None:
    """Twice handled is done when both have left; whatever is done behind one that is not does not count yet."""
    hop = SlowHop()
    bench = StepBench(tmp_path, NodeFaults(duplicate_ratio=1), hop)
    for number in range(2):
        bench.step.receive_message(FlightMessage(message_id(number), number, NOON_US, {}))
    counts = [bench.step.done_count]
    for place in (3, 0, 0, 0):
        hop.kept.rotate(-place)
        hop.kept.popleft()()
        hop.kept.rotate(place)
        counts.append(bench.step.done_count)
    assert counts == [0, 0, 0, 1, 2]


def test_what_stops_here_is_done_at_once(tmp_path: Path) -> None:
    """Unless one before it is still held."""
    bench = StepBench(tmp_path, NodeFaults(drop_ratio=1))
    bench.step.receive_message(FlightMessage(message_id(0), 0, NOON_US, {}))
    assert bench.step.done_count == 1
