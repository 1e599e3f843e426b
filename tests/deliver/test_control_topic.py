"""Tests of the records that pause deliveries."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.control_topic import CONTROL_TOPIC, ControlReader, Pause, decode_pause, encode_pause
from hopwatch.probes.contract.kafka import KafkaAccess
from tests.support.raw_producer import raw_cluster


@given(st.integers(0, 2**62))
def test_a_pause_comes_back(since_us: int) -> None:
    """With its moment."""
    assert decode_pause(encode_pause(Pause(since_us))) == Pause(since_us)


ODD = [b"", b"{", b"[]", b'{"state":"running"}', b'{"state":"paused"}', b'{"state":"paused","since_us":true}', b"\xff"]


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
