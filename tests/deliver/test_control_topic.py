"""Tests of the records that pause deliveries."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver import control_topic
from hopwatch.deliver.control_topic import ANSWER_S, CONTROL_TOPIC, ControlReader, Pause, decode_pause, encode_pause
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.taps.errors import TapSourceError
from tests.support.raw_producer import raw_cluster


@given(st.integers(0, 2**62), st.lists(st.text(st.characters(codec="utf-8"))).map(tuple))
def test_a_pause_comes_back(since_us: int, by: tuple[str, ...]) -> None:
    """With its moment, and the incidents that hold it."""
    assert decode_pause(encode_pause(Pause(since_us, by))) == Pause(since_us, by)


ODD = [
    b"",
    b"{",
    b"[]",
    b'{"state":"running"}',
    b'{"state":"paused"}',
    b'{"state":"paused","since_us":true}',
    b'{"state":"paused","since_us":1,"by":2}',
    b"\xff",
]


def test_no_value_ends_a_pause() -> None:
    """And nothing else does."""
    assert decode_pause(None) is None


@pytest.mark.parametrize("value", ODD)
def test_anything_else_is_no_pause(value: bytes) -> None:
    """Nor the end of one."""
    with pytest.raises(ValueError, match="a pause is a state of paused with since_us, got b'"):
        decode_pause(value)


def test_a_record_that_cannot_be_read_leaves_a_pause_as_it_is() -> None:
    """A mistake begins and ends no pause, and one line tells of it."""
    told: list[str] = []
    with raw_cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.brokers, "log_level": 0})
        reader = ControlReader(cluster.brokers, KafkaAccess(), told.append)
        for name, said in ((b"a", encode_pause(Pause(7))), *((b"a", one) for one in ODD), (b"b", b"{")):
            producer.produce(CONTROL_TOPIC, said, name, partition=0)
            assert producer.flush(20) == 0
        reader.open()
        assert reader.pauses == {"a": Pause(7)}
        producer.produce(CONTROL_TOPIC, None, b"a", partition=0)
        assert producer.flush(20) == 0
        while reader.pauses:
            reader.read_changes(1.0)
        reader.close()
    places = [f"hopwatch.deliveries/0/{at}" for at in range(1, len(ODD) + 2)]
    told_of = [one.removeprefix("the record ").partition(" cannot be read: ")[0] for one in told]
    assert told_of == places
    kept = [one.rpartition(": ")[2] for one in told]
    assert kept == ["'a' stays paused"] * len(ODD) + ["'b' is not paused"]


class SlowTopic:
    """Consumer of a topic of one partition, of which each poll brings some records."""

    def __init__(self, polls: list[int]) -> None:
        """Take the number of records that each poll brings; the last one brings the end, and without any none comes."""
        self.polls = polls

    def consume(self, *_: object) -> list[MagicMock]:
        """Return the records of the next poll."""
        count = self.polls.pop(0) if self.polls else 0
        found = [_message(f"{len(self.polls)}-{number}", None) for number in range(count)]
        return [*found, _message("", KafkaError(KafkaError._PARTITION_EOF))] if count and not self.polls else found


def _message(key: str, error: object) -> MagicMock:
    message = MagicMock()
    message.key.return_value, message.value.return_value = key.encode(), encode_pause(Pause(1))
    message.error.return_value, message.partition.return_value = error, 0
    return message


def _open_reader(topic: SlowTopic, monkeypatch: pytest.MonkeyPatch) -> ControlReader:
    consumer = MagicMock(consume=topic.consume)
    monkeypatch.setattr(control_topic, "Consumer", lambda _: consumer)
    monkeypatch.setattr(control_topic, "find_partitions", lambda *_: [TopicPartition(control_topic.CONTROL_TOPIC, 0)])
    reader = ControlReader("broker:9092", KafkaAccess(), print)
    reader.open()
    return reader


def test_a_long_topic_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic is read for as long as records come: others may have written many."""
    polls = int(3 * ANSWER_S / 0.2)
    assert len(_open_reader(SlowTopic([2] * polls), monkeypatch).pauses) == 2 * polls


def test_a_topic_of_which_nothing_comes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time for an answer, also in the middle."""
    with pytest.raises(TapSourceError, match=r"hopwatch\.deliveries at .* cannot be read: nothing came for 10 s"):
        _open_reader(SlowTopic([2, 2, *[0] * 60, 2]), monkeypatch)
