"""The demo's own pipeline with one node killed, judged at once: no Spark to start, no window to wait for."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from hopwatch.demo.comparison import compare
from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.links.run_links import build_links
from hopwatch.demo.measurements import Measurements
from hopwatch.demo.pipeline import Pipeline
from hopwatch.demo.stream import STREAM
from hopwatch.demo.truth import Truth, count_entries
from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, reader, schema
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.contract.segment import MAGIC, encode_frame
from tests.support.micro_batches import run_once

RATE_PER_S: Final = 500
TICK_S: Final = 0.02
ENOUGH: Final = 200
"""So many messages a node handles that was started again."""
PATIENCE_S: Final = 90.0


def killed(folder: Path, node: str, at_s: float, brokers: str = "") -> list[ComparisonLine]:
    """Run the pipeline, kill a node, and return what was done against what was measured, line by line.

    Time begins with the first message of the node: before that there is nothing that a kill could hide. Without brokers
    nodes are linked by sockets and probes spool; router loses 2 % besides.
    """
    faults = Faults(0, {"router": NodeFaults(drop_ratio=0.02)}, (Kill(node, at_s),))
    links = build_links(brokers)
    layout = create_layout(folder, links.observations_url)
    clock = _Clock(layout.truth_log(node))
    with links, Pipeline(layout, links, faults, RATE_PER_S, clock) as pipeline:
        _run(pipeline, layout.truth_log(node))
        while pipeline.drain() is not None:
            time.sleep(TICK_S)
        if brokers:
            _spool(KafkaPlace.parse(links.observations_url), layout.spool)
    truth = Truth(layout.truth_logs())
    return compare(faults, truth, _measured(layout), is_reliable=bool(brokers))


class _Clock:
    """Seconds since the first message of a node."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._since_s = 0.0

    def __call__(self) -> float:
        if not self._since_s and count_entries(self._log):
            self._since_s = time.monotonic()
        return time.monotonic() - self._since_s if self._since_s else 0.0


def _run(pipeline: Pipeline, log: Path) -> None:
    """Let the pipeline run until the node of a log was killed, was started again, and has handled some messages."""
    before, until_s = None, time.monotonic() + PATIENCE_S
    while before is None or count_entries(log) < before + ENOUGH:
        if pipeline.watch() == [f"{log.stem} is started again"]:
            before = count_entries(log)
        assert time.monotonic() < until_s, f"{log.stem} handles nothing"
        time.sleep(TICK_S)


def _measured(layout: Layout) -> Measurements:
    known = settings.load(layout.config, flags={}, environ={}).stream_configs()
    store = dialect.create_engine(layout.store_url)
    try:
        schema.prepare_store(store)
        run_once(store, known, sorted(layout.spool.rglob("*.seg")))
        return Measurements(reader.read_report(store, STREAM), lambda node: reader.read_lost_ids(store, STREAM, node))
    finally:
        store.dispose()


def _spool(place: KafkaPlace, spool: Path) -> None:
    """Write the records of a topic as segments, a record each, which came when the broker took them."""
    consumer = Consumer({"bootstrap.servers": place.brokers, "group.id": place.topic, "enable.auto.commit": False})
    spool.mkdir()
    try:
        topic = consumer.list_topics(place.topic, timeout=PATIENCE_S).topics[place.topic]
        ends = {n: consumer.get_watermark_offsets(TopicPartition(place.topic, n))[1] for n in topic.partitions}
        consumer.assign([TopicPartition(place.topic, partition, 0) for partition in ends])
        for _ in range(sum(ends.values())):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            _, arrival_ms = message.timestamp()
            segment = spool / f"{message.partition()}-{message.offset():010}.seg"
            segment.write_bytes(MAGIC + encode_frame(message.value() or b""))
            os.utime(segment, ns=(arrival_ms * 1_000_000, arrival_ms * 1_000_000))
    finally:
        consumer.close()
