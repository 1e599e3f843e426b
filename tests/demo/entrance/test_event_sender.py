"""Tests of the sender: what it sends again, what it breaks, and what it writes down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hopwatch.demo.entrance.breakage import Item
from hopwatch.demo.entrance.client import GateAnswer
from hopwatch.demo.entrance.event_sender import MAX_EVENTS, PATIENCE_S, RETRY_S, EventSender
from hopwatch.demo.entrance.events import SCHEMA, build_item
from hopwatch.demo.entrance.rejections import Rejections, read_rejections
from hopwatch.demo.faults import Dice, NodeFaults
from hopwatch.demo.link import LinkError
from hopwatch.demo.records import FlightMessage
from hopwatch.demo.truth import NodeAction, Truth, TruthLog, split_ids
from tests.demo.entrance.memory_gate import ENTERED, NOT_WRITTEN, PaperGate
from tests.demo.hand_clock import HandClock
from tests.demo.simulation import MINUTE_US, NOON_US, message_id

FLIGHT = {"carrier": "UA", "distance": 1400}


class SenderBench:
    """A sender, its gate and its clock."""

    def __init__(self, folder: Path, reject_ratio: float = 0.0) -> None:
        """Put them together."""
        self.gate, self.clock, self.rejections = PaperGate(), HandClock(), Rejections()
        self.path = folder / "gate.truth"
        self.log = TruthLog(self.path)
        self.sender = EventSender(
            client=self.gate,
            truth=self.log,
            dice=Dice(0, "gate", NodeFaults(reject_ratio=reject_ratio)),
            seed=0,
            rejections=self.rejections,
            now_s=self.clock,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.s += seconds


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[SenderBench]:
    """Yield a sender that breaks nothing."""
    made = SenderBench(tmp_path)
    with closing(made.log):
        yield made


def messages(count: int) -> list[FlightMessage]:
    """Return messages of one minute."""
    return [FlightMessage(message_id(number), number, NOON_US + number, dict(FLIGHT)) for number in range(count)]


def deeds(bench: SenderBench, deed: NodeAction) -> set[bytes]:
    """Return the messages to which something was done."""
    return split_ids(Truth({"gate": [bench.path]}).ids("gate", deed))


def test_the_schema_is_registered_once_the_gate_is_up(bench: SenderBench) -> None:
    """The gate takes seconds to start."""
    bench.gate.away = 3
    bench.sender.register()
    assert bench.gate.schemas == {"flights": SCHEMA}
    assert bench.clock.s == 3 * RETRY_S


def test_a_gate_that_never_comes_is_given_up(bench: SenderBench) -> None:
    """In a sentence that says what was tried, for how long, and what was heard."""
    bench.gate.away = 1_000
    text = rf"^the gate has taken nothing for {PATIENCE_S:g} s: Connection refused; look into its log$"
    with pytest.raises(LinkError, match=text):
        bench.sender.register()
    with pytest.raises(LinkError, match=text):
        bench.sender.send(messages(1))
    assert deeds(bench, NodeAction.CREATED) == set()


def test_many_messages_go_in_several_requests(bench: SenderBench) -> None:
    """In order, each once, and each is written down as created and handed on."""
    sent = messages(MAX_EVENTS + 1)
    bench.sender.send(sent)
    assert list(map(len, bench.gate.batches)) == [MAX_EVENTS, 1]
    assert [one for some in bench.gate.batches for one in some] == [build_item(message)["id"] for message in sent]
    assert deeds(bench, NodeAction.CREATED) == deeds(bench, NodeAction.HANDED_ON) == {message.id for message in sent}


def test_what_was_not_written_goes_again_under_the_same_id(bench: SenderBench) -> None:
    """Unwritten events are sent again under their ids until they are written, and unanswered requests as a whole."""
    first, second, third = messages(3)
    full = [NOT_WRITTEN, NOT_WRITTEN]

    def say(event: Item) -> GateAnswer:
        return full.pop() if full and event["id"] == build_item(second)["id"] else ENTERED

    bench.gate.say, bench.gate.away = say, 1
    bench.sender.send([first, second, third])
    ids = [build_item(message)["id"] for message in (first, second, third)]
    assert bench.gate.batches == [ids, [ids[1]], [ids[1]]]
    assert bench.clock.s == 3 * RETRY_S
    truth = Truth({"gate": [bench.path]})
    assert truth.count("gate", NodeAction.CREATED) == truth.count("gate", NodeAction.HANDED_ON) == 3


def test_a_gate_that_writes_nothing_is_given_up(bench: SenderBench) -> None:
    """Its transport may be full for good."""
    bench.gate.say = lambda _: NOT_WRITTEN
    with pytest.raises(LinkError, match=r"^the gate has taken nothing for 30 s: 2 events were not written; look into"):
        bench.sender.send(messages(2))


def test_what_is_broken_is_rejected_in_truth_and_told_by_the_gate(tmp_path: Path) -> None:
    """The truth is what was broken; the window of an event without a time that can be is that of its arrival."""
    made = SenderBench(tmp_path, reject_ratio=1.0)
    sent = messages(50)
    seen: list[Item] = []

    def say(event: Item) -> GateAnswer:
        seen.append(event)
        return GateAnswer(422, NOON_US + MINUTE_US, "/data/carrier", "Field required")

    made.gate.say = say
    with closing(made.log):
        made.sender.send(sent)
    assert deeds(made, NodeAction.REJECTED) == deeds(made, NodeAction.CREATED) == {message.id for message in sent}
    truth = Truth({"gate": [made.path]})
    late = {event["id"] for event, message in zip(seen, sent, strict=True) if event["time"] != message.event_time_us}
    in_second = [build_item(message)["id"] for message in sent if message.id in _of_window(truth, NOON_US + MINUTE_US)]
    assert late == set(in_second)
    assert 0 < len(late) < len(sent)
    made.rejections.write(tmp_path / "told")
    kinds = {kind.what: kind for kind in read_rejections(tmp_path / "told")}
    assert sum(kind.injected for kind in kinds.values()) == 50
    assert kinds["missing field"].rejected == kinds["missing field"].injected
    assert kinds["wrong type"].rejected == 0


def _of_window(truth: Truth, start_us: int) -> set[bytes]:
    ids = truth.created
    return split_ids(ids[truth.windows_us(ids) == start_us])
