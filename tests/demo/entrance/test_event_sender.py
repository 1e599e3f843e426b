"""Tests of the sender: what it breaks, when it gives the gate up, and what it writes down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hopwatch.client import SendOutcome
from hopwatch.demo.entrance.event_sender import EventSender
from hopwatch.demo.entrance.events import build_item
from hopwatch.demo.entrance.rejections import Rejections, read_rejections
from hopwatch.demo.faults import Dice, NodeFaults
from hopwatch.demo.link import LinkError
from hopwatch.demo.records import FlightMessage
from hopwatch.demo.truth import NodeAction, Truth, TruthLog, split_ids
from tests.demo.entrance.paper_client import ROOM, PaperClient, enter, reject
from tests.demo.hand_clock import HandClock
from tests.demo.simulation import MINUTE_US, NOON_US, message_id

FLIGHT = {"carrier": "UA", "distance": 1400}


class SenderBench:
    """A sender, its client and its clock."""

    def __init__(self, folder: Path, reject_ratio: float = 0.0) -> None:
        """Put them together."""
        self.clock, self.rejections = HandClock(), Rejections()
        self.client = PaperClient(self.clock)
        self.path = folder / "gate.truth"
        self.log = TruthLog(self.path)
        self.sender = EventSender(
            connect=self._connect,
            truth=self.log,
            dice=Dice(0, "gate", NodeFaults(reject_ratio=reject_ratio)),
            seed=0,
            rejections=self.rejections,
            patience_s=30.0,
            now_s=self.clock,
        )

    def deeds(self, deed: NodeAction) -> set[bytes]:
        """Return the messages to which something was done."""
        return split_ids(Truth({"gate": [self.path]}).ids("gate", deed))

    def _connect(self, tell: Callable[[SendOutcome], object]) -> PaperClient:
        self.client.tell = tell
        return self.client


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[SenderBench]:
    """Yield a sender that breaks nothing."""
    made = SenderBench(tmp_path)
    with closing(made.log):
        yield made


def messages(count: int) -> list[FlightMessage]:
    """Return messages of one minute."""
    return [FlightMessage(message_id(number), number, NOON_US + number, dict(FLIGHT)) for number in range(count)]


def test_messages_are_sent_in_order_and_written_down_once_answered(bench: SenderBench) -> None:
    """Each is sent once, with its id, and is created and handed on once the gate has answered for it, not before."""
    sent = messages(3 * ROOM)
    bench.sender.send(sent[:ROOM])
    assert bench.deeds(NodeAction.CREATED) == set()
    bench.sender.send(sent[ROOM:])
    assert bench.deeds(NodeAction.CREATED) == {message.id for message in sent[: 2 * ROOM]}
    bench.sender.finish()
    assert bench.client.sent == [build_item(message)["id"] for message in sent]
    truth = Truth({"gate": [bench.path]})
    assert truth.count("gate", NodeAction.CREATED) == truth.count("gate", NodeAction.HANDED_ON) == len(sent)
    assert bench.deeds(NodeAction.CREATED) == bench.deeds(NodeAction.HANDED_ON) == {message.id for message in sent}


def test_a_message_without_an_answer_is_not_written_down(bench: SenderBench) -> None:
    """Others are, and when the answer comes so is that one."""
    sent = messages(3)
    late = build_item(sent[1])["id"]
    bench.client.say = lambda event: None if event["id"] == late else enter(event)
    bench.sender.send(sent)
    assert not bench.client.flush(0.0)
    bench.sender.send([])
    assert bench.deeds(NodeAction.HANDED_ON) == {sent[0].id, sent[2].id}
    bench.client.say = enter
    bench.sender.finish()
    assert bench.deeds(NodeAction.HANDED_ON) == {message.id for message in sent}


@pytest.mark.parametrize("count", [1, 2 * ROOM], ids=["at the end", "without room"])
def test_a_gate_that_answers_for_nothing_is_given_up(bench: SenderBench, count: int) -> None:
    """In a sentence that says for how long, and why; what it has not answered for is not written down."""
    bench.client.say = lambda _: None
    bench.client.last_failure = "no connection: Connection refused"
    text = r"^the gate has taken nothing for 30 s: no connection: Connection refused; look into its log$"
    with pytest.raises(LinkError, match=text):
        _send_all(bench, count)
    assert bench.clock.s == 30
    bench.sender.close()
    assert bench.client.is_closed
    assert bench.deeds(NodeAction.CREATED) == set()


def test_a_gate_that_hangs_is_given_up(bench: SenderBench) -> None:
    """Without an answer there is no reason."""
    bench.client.say = lambda _: None
    text = r"^the gate has taken nothing for 30 s: 2 events are without an answer; look into its log$"
    with pytest.raises(LinkError, match=text):
        _send_all(bench, 2)


def test_a_slow_gate_is_not_given_up(bench: SenderBench) -> None:
    """One answer within the patience is enough, however long all of it takes; pauses between messages do not count."""
    bench.clock.s += 100

    def say_one(event: dict[str, Any]) -> SendOutcome | None:
        is_first = event is bench.client.waiting[0]
        return enter(event) if is_first and bench.clock.s % 20 == 0 else None

    bench.client.say = say_one
    _send_all(bench, 2 * ROOM)
    assert bench.clock.s == 100 + 20 * 2 * ROOM
    bench.clock.s += 100
    bench.sender.send(messages(1))


def test_what_is_broken_is_rejected_in_truth_and_told_by_the_gate(tmp_path: Path) -> None:
    """The truth is what was broken; the window of an event without a time that can be is that of its arrival."""
    made = SenderBench(tmp_path, reject_ratio=1.0)
    sent = messages(50)
    seen: list[dict[str, Any]] = []

    def say(event: dict[str, Any]) -> SendOutcome:
        seen.append(event)
        return reject(event, "/data/carrier", "Field required", NOON_US + MINUTE_US)

    made.client.say = say
    with closing(made.log):
        _send_all(made, 50)
    assert made.deeds(NodeAction.REJECTED) == made.deeds(NodeAction.CREATED) == {message.id for message in sent}
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


def test_what_is_broken_and_let_in_is_told(tmp_path: Path) -> None:
    """A gate that errs tells no arrival: the window is that of the message, and the account shows the error."""
    made = SenderBench(tmp_path, reject_ratio=1.0)
    with closing(made.log):
        _send_all(made, 50)
    truth = Truth({"gate": [made.path]})
    assert _of_window(truth, NOON_US) == made.deeds(NodeAction.REJECTED)
    made.rejections.write(tmp_path / "told")
    assert sum(kind.rejected for kind in read_rejections(tmp_path / "told")) == 0


def _send_all(bench: SenderBench, count: int) -> None:
    bench.sender.send(messages(count))
    bench.sender.finish()


def _of_window(truth: Truth, start_us: int) -> set[bytes]:
    ids = truth.created
    return split_ids(ids[truth.windows_us(ids) == start_us])
