"""Tests that our own gate takes the requests of a delivery, and that its answers are understood."""

from __future__ import annotations

from hopwatch.deliver import answers
from hopwatch.deliver.answers import Answer, Judgement
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.policy import DeliveryPolicy
from hopwatch.deliver.request_builder import RequestBuilder
from tests.support.gate_client import EVENTS, AtEntrance

POLICY = DeliveryPolicy(f"http://gate{EVENTS}?each=true")
GOOD = b'{"price": 1.5, "item": "x"}'


def build_message(gate: AtEntrance, value: bytes) -> DeliveryMessage:
    """Build a message of now."""
    return DeliveryMessage(SourcePosition("orders", 0, 0), gate.new_id(), gate.clock.us, None, value)


def deliver(gate: AtEntrance, *messages: DeliveryMessage) -> list[Judgement]:
    """Send messages in one request, and return their judgements."""
    request = RequestBuilder(POLICY).build_request(messages, gate.clock.us)
    said = gate.ask("POST", f"{EVENTS}?each=true", content=request.body, headers=dict(request.headers))
    answer = Answer(said.status_code, said.content, said.headers.get("retry-after", ""))
    ids = [one.message_id for one in messages]
    return [one.judgement for one in answers.judge_answer(answer, ids, POLICY.recoverable_statuses, 0).messages]


def test_the_gate_answers_for_each_message() -> None:
    """A good event enters, a bad one is rejected, one that the transport did not take is to be sent again."""
    gate = AtEntrance()
    good, bad, held_up = (build_message(gate, value) for value in (GOOD, b'{"price": "dear"}', GOOD))
    gate.outlet.fails = {bytes.fromhex(held_up.message_id.replace("-", ""))}
    assert deliver(gate, good, bad, held_up) == [Judgement.DELIVERED, Judgement.REJECTED, Judgement.RECOVERABLE]
    gate.outlet.fails = set()
    assert deliver(gate, held_up, good) == [Judgement.DELIVERED] * 2
    assert gate.values() == [{"price": 1.5, "item": "x"}] * 2


def test_the_gate_keeps_id_and_time() -> None:
    """An event that leaves the gate has the id of the message, and its event time."""
    gate = AtEntrance()
    message = build_message(gate, GOOD)._replace(event_us=gate.clock.us - 5_000_000)
    assert deliver(gate, message) == [Judgement.DELIVERED]
    (left,) = gate.outlet.left
    assert left.event_id.hex() == message.message_id.replace("-", "")
    assert left.event_us == message.event_us
