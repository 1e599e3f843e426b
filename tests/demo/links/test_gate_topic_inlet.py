"""Tests of the gate's topic as a link: id and event time come from the headers."""

from __future__ import annotations

from typing import Any

import pytest

from hopwatch.demo.entrance.events import pack_event
from hopwatch.demo.link import LinkError
from hopwatch.demo.links.gate_topic_inlet import GateTopicInlet
from tests.demo.links.memory_broker import PaperBroker, PaperConsumer, PaperMessage

Headers = list[tuple[str, bytes]]
ID = bytes(range(16))
MARKED: Headers = [
    ("hopwatch-id", b"00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ("hopwatch-time", b"1700000040000001"),
    ("hopwatch-arrived", b"1700000040000002"),
]


class MarkedMessage:
    """A message of the gate's topic."""

    def __init__(self, message: PaperMessage, headers: Headers) -> None:
        """Put headers beside a message."""
        self.error, self.offset, self.value = message.error, message.offset, message.value
        self._headers = headers

    def headers(self) -> Headers:
        """Return them."""
        return self._headers


class MarkedConsumer(PaperConsumer):
    """Gives every message the same headers."""

    headers = MARKED

    def poll(self, timeout: float) -> Any:  # noqa: ANN401 - as the client has it
        """Return one message."""
        found = super().poll(timeout)
        return found and MarkedMessage(found, self.headers)


def inlet_with(headers: Headers) -> GateTopicInlet:
    """Return an inlet from a topic of one event."""
    broker = PaperBroker()
    broker.topics["ingest"] += [b"event"]
    consumer: Any = MarkedConsumer(broker)
    consumer.headers = headers
    return GateTopicInlet(consumer, "ingest")


def test_an_event_carries_its_marks() -> None:
    """An event is received with its marks."""
    assert inlet_with(MARKED).receive(0.0) == [pack_event(ID, 1_700_000_040_000_001, b"event")]


@pytest.mark.parametrize(("headers", "text"), [([], "carries no marks"), (MARKED[:1], "has no marks that can be read")])
def test_an_event_without_marks_is_told(headers: Headers, text: str) -> None:
    """Somebody else writes to this topic."""
    with pytest.raises(LinkError, match=text):
        inlet_with(headers).receive(0.0)
