"""Test of a tap that waits for a schema, with Kafka's own client and a broker in this process."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from contextlib import closing

import pytest
from confluent_kafka import Producer

from hopwatch.probes import Probe
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.taps import kafka, registry_schemas
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.kafka import KafkaTap
from hopwatch.probes.taps.messages import FieldSource, MessageField, MessageReader
from hopwatch.probes.taps.registry_schemas import RegistrySchemas
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.probes.taps.topic import SourceTopic
from hopwatch.probes.taps.unknown_schemas import UnknownSchema
from hopwatch.testing import MemorySink, observations
from servers.process import until
from tests.probes.taps.avro_values import ORDER, VALUE, body
from tests.probes.taps.value_messages import FRAMED, LATER, RENAMED, Source
from tests.support.raw_producer import PATIENCE_S, raw_cluster

COUNT = 200


def test_messages_wait_for_their_schema_and_are_stamped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In partitions whose values change from one schema to the other, forth and back, while a tap reads them."""
    monkeypatch.setattr(registry_schemas, "ASK_AGAIN_S", 0.1)
    monkeypatch.setattr(kafka, "HOLD_S", 0.3)
    ids = [str(uuid.UUID(int=at + 1)) for at in range(COUNT)]
    source, sink = Source(n7=ORDER), MemorySink()
    around = RunContext(list[str]().append)
    with raw_cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.brokers})
        for at, one in enumerate(ids):
            first, later = FRAMED[7] + body(VALUE | {"id": one}), FRAMED[8] + body(LATER | {"key": one}, RENAMED)
            producer.produce("orders", first if at // 25 % 2 == 0 else later, b"%d" % at)
        assert not producer.flush(PATIENCE_S)
        schemas = RegistrySchemas(source, around, unknown=UnknownSchema.HOLD)
        spots = MessageField(FieldSource.AVRO, "id"), MessageField(FieldSource.AVRO, "at")
        topic = SourceTopic(f"kafka://{cluster.brokers}/orders", "g", around, from_start=True, access=KafkaAccess())
        patient = BlockingSink(sink, around)
        with closing(Probe("orders", "topic", patient, follows=True, max_age_s=None)) as probe:
            stamping = TapStamper((probe, patient), StampSide.IN, around)
            tap = KafkaTap(topic, MessageReader(*spots, avro=schemas), stamping, around)
            thread = threading.Thread(target=tap.run)
            thread.start()
            try:
                until(lambda: len(observations(sink)) >= 25 and bool(tap._held), "the tap waits")
                waiting = len(observations(sink))
                source.schemas[8] = RENAMED
                until(lambda: len(observations(sink)) >= COUNT, "all is stamped")
            finally:
                around.stop.set()
                thread.join(PATIENCE_S)
    assert waiting < COUNT
    assert Counter(row.message_id for row in observations(sink)) == Counter(uuid.UUID(one).bytes for one in ids)
    assert probe.dropped == 0
