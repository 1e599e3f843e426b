"""Tests of the link through Kafka, with a broker on paper: what has left, what comes again, what is said of trouble."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stamina
from confluent_kafka import KafkaError

from hopwatch.demo.link import LinkError
from hopwatch.demo.links.topics import COMMIT_EVERY_S, MAX_MESSAGES
from tests.demo.hand_clock import HandClock
from tests.demo.links.memory_broker import PaperBroker


@pytest.fixture
def broker() -> PaperBroker:
    """Return a broker with three messages for norm."""
    made = PaperBroker()
    made.topics["norm"] += [b"a", b"b", b"c"]
    return made


@pytest.fixture
def impatient() -> Iterator[None]:
    """Ask twice, without waiting between."""
    with stamina.set_testing(True, attempts=2):
        yield


def test_what_is_sent_has_left_once_the_broker_has_it(broker: PaperBroker) -> None:
    """Not before, and in order."""
    outlet, left = broker.outlet("connector"), list[bytes]()
    for payload in (b"x", b"y"):
        outlet.send(payload, lambda payload=payload: left.append(payload))  # type: ignore[misc]
    assert left == []
    outlet.settle()
    assert left == broker.topics["connector"] == [b"x", b"y"]
    outlet.close()


def test_a_message_that_the_broker_refuses_has_not_left(broker: PaperBroker) -> None:
    """The node learns it while it waits, and whenever it would send again."""
    broker.refusal = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    outlet, left = broker.outlet("connector"), list[bool]()
    outlet.send(b"x", lambda: left.append(True))
    text = r"^the topic connector has not taken a message: .*too large; look after the brokers, start the demo again$"
    with pytest.raises(LinkError, match=text):
        outlet.settle()
    with pytest.raises(LinkError, match=text):
        outlet.send(b"y", lambda: left.append(True))
    assert left == []


def test_a_reader_gets_what_is_there_at_once(broker: PaperBroker) -> None:
    """As many as there are, up to a bound, and nothing when there is nothing."""
    inlet = broker.inlet("norm")
    assert inlet.receive(0.2) == [b"a", b"b", b"c"]
    assert inlet.receive(-0.1) == []
    broker.topics["norm"] += [b"d"] * (MAX_MESSAGES + 5)
    assert len(inlet.receive(0.2)) == MAX_MESSAGES


def test_what_is_done_is_committed_now_and_then(broker: PaperBroker) -> None:
    """Offsets are committed when a commit is due and there is something new, and at the close."""
    clock = HandClock()
    inlet = broker.inlet("norm", clock)
    inlet.receive(0.2)
    inlet.done(1)
    assert broker.commits == []
    clock.s += COMMIT_EVERY_S
    inlet.done(2)
    clock.s += COMMIT_EVERY_S
    inlet.done(2)
    inlet.done(3)
    assert broker.commits == [2, 3]
    broker.topics["norm"].append(b"d")
    inlet.receive(0.2)
    inlet.done(4)
    inlet.close()
    assert broker.commits == [2, 3, -4]


def test_a_reader_without_news_commits_nothing(broker: PaperBroker) -> None:
    """Hanging up is no reason."""
    broker.inlet("norm").close()
    assert broker.commits == []


def test_what_was_not_done_comes_again(broker: PaperBroker) -> None:
    """A reader that comes back begins behind the last commit, and counts from there."""
    inlet = broker.inlet("norm")
    inlet.receive(0.2)
    inlet.done(1)
    inlet.close()
    again = broker.inlet("norm")
    assert again.receive(0.2) == [b"b", b"c"]
    again.done(1)
    again.close()
    assert broker.committed == {"norm": 2}


def test_a_topic_has_ended_when_all_of_it_was_received(broker: PaperBroker) -> None:
    """Also for a reader that comes back and finds nothing left."""
    inlet = broker.inlet("norm")
    assert not inlet.has_ended()
    inlet.receive(0.2)
    assert inlet.has_ended()
    inlet.done(3)
    inlet.close()
    assert broker.inlet("norm").has_ended()


def test_a_topic_that_cannot_be_read_is_told(broker: PaperBroker) -> None:
    """With the client's reason, and what to do."""
    inlet = broker.inlet("norm")
    broker.trouble = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)
    text = r"^the topic norm cannot be read: .*[Oo]ffset.*; look after the brokers, start the demo again$"
    with pytest.raises(LinkError, match=text) as raised:
        inlet.receive(0.2)
    assert raised.value.exit_code == 3


@pytest.mark.usefixtures("impatient")
def test_a_young_broker_is_asked_again(broker: PaperBroker) -> None:
    """A broker without a coordinator yet is asked again."""
    broker.silences = [KafkaError(KafkaError.NOT_COORDINATOR)]
    assert broker.inlet("norm").receive(0.2) == [b"a", b"b", b"c"]


@pytest.mark.usefixtures("impatient")
def test_brokers_without_an_answer_are_told(broker: PaperBroker) -> None:
    """For each question that a reader has."""
    text = r"^the topic norm cannot be read: .*; look after the brokers, start the demo again$"
    silences = [KafkaError(KafkaError._TIMED_OUT)] * 2
    broker.silences = list(silences)
    with pytest.raises(LinkError, match=text):
        broker.inlet("norm")
    inlet = broker.inlet("norm")
    broker.silences = list(silences)
    with pytest.raises(LinkError, match=text):
        inlet.has_ended()
    inlet.receive(0.2)
    inlet.done(3)
    broker.silences = list(silences)
    with pytest.raises(LinkError, match=text):
        inlet.close()
