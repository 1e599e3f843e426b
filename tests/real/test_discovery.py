"""Tests of records that are read again from a real topic."""

from __future__ import annotations

import pytest

from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.lookup import segment_records, topic_records
from hopwatch.monitor.payloads import SetAside
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.sinks.kafka import KafkaSink
from servers.kafka import Kafka
from tests.support.spool import observation_batch

NOBODY = "127.0.0.1:1"


def test_records_are_read_by_their_offsets(kafka: Kafka) -> None:
    """Those that were asked for, and no other; what is of another topic, or gone, is left out."""
    kafka.create_topic("discovered")
    place = KafkaPlace.parse(kafka.url("discovered"))
    sink = KafkaSink(place, "an-instance")
    for number in range(5):
        assert sink.send(encode(observation_batch([number], seq=number)))
    assert sink.settle(30)
    sink.close()
    wanted = [
        SetAside(path, offset, 10, 0, "unknown_node", "")
        for path, offset in (("discovered/0", 1), ("discovered/0", 3), ("other/0", 2), ("discovered/x", 2))
    ]
    found = [
        view.seq
        for segment in topic_records.read_records(place, KafkaAccess(), wanted)
        for view in segment_records.parse_records(segment)
    ]
    assert found == [1, 3]
    assert list(topic_records.read_records(place, KafkaAccess(), [])) == []


def test_a_topic_that_cannot_be_read_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names it; nothing is waited for longer than the patience."""
    monkeypatch.setattr(topic_records, "PATIENCE_S", 1.0)
    place = KafkaPlace(NOBODY, "discovered")
    with pytest.raises(TransportError) as failed:
        list(topic_records.read_records(place, KafkaAccess(), [SetAside("discovered/0", 1, 10, 0, "unknown_node", "")]))
    assert str(failed.value) == (
        f"the topic {place} cannot be read: nothing came for 1 s: look at the brokers, then try again"
    )
