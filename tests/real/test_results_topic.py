"""Tests of the topic of results on a real broker: it says what the store says, over kills and outages."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Message, Producer

from hopwatch.api.results_topic.records import ResultRecord
from hopwatch.api.results_topic.topic_writer import ResultsTopicWriter
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.spark.connector import connector_settings
from hopwatch.monitor.store import dialect, schema, writer
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from servers.kafka import Kafka
from servers.process import PATIENCE_S, answers, free_ports, until
from tests.real.monitor_process import DYING, Monitor, differences, minute_of
from tests.real.program_folder import Workplace
from tests.real.traffic import STREAMS, Traffic
from tests.support import page_blocks
from tests.support.report import known_in
from tests.support.results_topic import compact, decode, find_backward_steps, read_expected
from tests.support.spool import START_MS, at_us, observation_batch, write_segment
from tests.support.topic_records import read_records
from tests.support.workspace import closing_batches

KILLS: Final = (1, 20)
"""How often the monitor is killed, as a rule and with --soak, each a start of Spark."""
OUTAGES: Final = (0, 2)
COMPACTED: Final = {"cleanup.policy": "compact"}
BEGUN: Final = "hopwatch: watching"
NAMES: Final = ("orders", "bills", "trades", "mails")
"""Streams of the kills, each with three nodes."""


def split_records(records: Iterable[Message]) -> list[tuple[bytes, bytes]]:
    """Return key and value of each record."""
    return [(one.key() or b"", one.value() or b"") for one in records]


def compare(kafka: Kafka, topic: str, work: Workplace) -> tuple[int, int, list[str]]:
    """Return the number of records and of keys of a topic, and where it and the store differ."""
    engine = dialect.create_engine(work.store_url)
    records = split_records(read_records(kafka, topic))
    try:
        told = {key: decode(engine, value) for key, value in compact(records).items()}
        wrong = differences(told, read_expected(engine)) + find_backward_steps(engine, records)
    finally:
        engine.dispose()
    return len(records), len(told), wrong


def test_a_run_over_everything_publishes_and_spark_joins_it(kafka: Kafka, tmp_path: Path) -> None:
    """``run --once`` fills the topic before it ends; the reader of the page joins a stream of a team's own with it."""
    kafka.create_topic("hopwatch.results", 3, COMPACTED)
    # Messages of tests are from the first of January.
    kafka.create_topic("orders", 1, {"retention.ms": "-1"})
    batches = [observation_batch(range(10), "entrance"), observation_batch(range(9), "billing")]
    closing = closing_batches(seq=1, nodes=("entrance", "billing"))
    write_segment(tmp_path / "spool" / "0" / "0000000000.seg", *batches, *closing, arrival_us=at_us(400))
    streams = f'[streams.orders]\npath = "entrance -> billing"\n[results]\ntopic = "{kafka.url("hopwatch.results")}"'
    work = Workplace(tmp_path, "spool:./spool", streams=streams)
    done = work.run("run", "--once")
    assert done.returncode == 0, done.stderr
    windows = sum(len(stream["windows"]) for stream in work.reported()["streams"])
    assert f"windows that are published: {windows}" in done.stderr
    assert compare(kafka, "hopwatch.results", work) == (2 * windows, 2 * windows, [])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("orders", b"a", timestamp=START_MS + 1_000)
    producer.produce("orders", b"b", timestamp=START_MS - 1_000)
    producer.flush(PATIENCE_S)
    (port,) = free_ports(1)
    gate = work.start("gate", "--port", str(port))
    try:
        until(lambda: answers(port), "the gate")
        reader, _ = page_blocks.of(page_blocks.page("docs/RESULTS.md"), "python")
        program = _BEFORE.format(brokers=kafka.bootstrap, port=port) + reader + _BEHIND
        joined = work.python(program, JARS=connector_settings()["spark.jars"], PYSPARK_PYTHON=sys.executable)
    finally:
        gate.stop(60)
    assert joined.returncode == 0, joined.stderr[-4_000:]
    rows = sorted(line for line in joined.stdout.splitlines() if line.startswith("row "))
    assert rows == ["row a LOSSY 1", "row b None None"]


def test_a_producer_ends_the_one_before(kafka: Kafka) -> None:
    """Its writes are refused from then on, and nothing of them is read; the topic is known by its id."""
    kafka.create_topic("fenced", 1, COMPACTED)
    place, access = KafkaPlace.parse(kafka.url("fenced")), KafkaAccess()
    first, second, other = (ResultsTopicWriter(place, access, store_id) for store_id in ("a", "a", "b"))
    name = first.open()
    first.write([ResultRecord(b"k", b"1")])
    assert [second.open(), other.open(), second.open()] == [name] * 3
    with pytest.raises(TransportError, match=r"fenced was not written: .*: check the brokers, and what \[transport"):
        first.write([ResultRecord(b"k", b"old")])
    second.write([ResultRecord(b"k", b"2"), ResultRecord(b"l", b"2")])
    other.write([ResultRecord(b"m", b"3")])
    assert compact(split_records(read_records(kafka, "fenced"))) == {"k": b"2", "l": b"2", "m": b"3"}
    for one in (first, second, other):
        one.close()
    kafka.delete_topic("fenced")
    kafka.create_topic("fenced", 1, COMPACTED)
    assert second.open() not in ("", name)
    second.close()


def test_a_topic_that_cannot_be_written_is_told(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """No such topic, a record that is too large for it, brokers that do not answer, records that age out."""
    missing = ResultsTopicWriter(KafkaPlace.parse(kafka.url("no-results")), KafkaAccess(), "a")
    told = r"the topic of results no-results is not on .*: make it with cleanup.policy=compact, or correct \[results\]"
    with pytest.raises(TransportError, match=told):
        missing.open()
    kafka.create_topic("small-results", 1, {"max.message.bytes": "100"})
    small = ResultsTopicWriter(KafkaPlace.parse(kafka.url("small-results")), KafkaAccess(), "a")
    small.open()
    assert "cleanup.policy=delete" in capsys.readouterr().out
    with pytest.raises(TransportError, match=r"small-results was not written: .*: raise its max\.message\.bytes"):
        small.write([ResultRecord(b"k", random.Random(1).randbytes(1_000))])
    small.open()
    small.write([ResultRecord(b"k", b"v")])
    small.close()
    assert compact(split_records(read_records(kafka, "small-results"))) == {"k": b"v"}
    with pytest.raises(TransportError, match="brokers"):
        ResultsTopicWriter(KafkaPlace("127.0.0.1:1", "away"), KafkaAccess(), "a").open()


_BEFORE: Final = """
import os
from pyspark.sql import SparkSession

brokers, registry = "{brokers}", "http://127.0.0.1:{port}"
spark = SparkSession.builder.master("local[1]").config("spark.jars", os.environ["JARS"])
spark = spark.config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false").getOrCreate()
orders = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", "orders")
orders = orders.option("startingOffsets", "earliest").load().selectExpr("string(value) id", "timestamp event_time")
"""
_BEHIND: Final = """
def show(batch, _):
    for row in batch.select("id", "result.*").collect():
        print("row", *row, flush=True)

judged.writeStream.foreachBatch(show).trigger(availableNow=True).start().awaitTermination()
"""


def test_the_topic_says_what_the_store_says_after_kills(
    kafka: Kafka, own_broker: Kafka, tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """Under load, killed at any moment or between the commits of store and Spark, and while the topic's broker is away.

    Meanwhile the monitor goes on. At the end 0 cells differ, and the sequence of no key has gone back.
    """
    chance = random.Random(5)
    kills, outages = times(*KILLS), times(*OUTAGES)
    kafka.create_topic("published", 2)
    own_broker.create_topic("results", 3, COMPACTED)
    declared = "".join(STREAMS.replace("orders", name) + "\n" for name in NAMES)
    results = f'[results]\ntopic = "{own_broker.url("results")}"\n'
    monitor = Monitor(Workplace(tmp_path, kafka.url("published"), streams=declared + results))
    traffic = [Traffic(kafka.url("published"), a_second=50, stream=name).start() for name in NAMES]
    for kill in range(kills):
        begun = monitor.work.words().count(BEGUN)
        monitor.start(program=DYING if kill % 5 == 0 else "hopwatch")
        assert monitor.process is not None
        if kill % 5 == 0:
            monitor.process.wait(120)
            continue
        if kill % 2:
            monitor.until(lambda before=begun: monitor.work.words().count(BEGUN) > before, "the stream")  # type: ignore[misc]
        time.sleep(chance.uniform(1, 12))
        monitor.kill()
    for _ in range(outages):
        monitor.start()
        time.sleep(chance.uniform(15, 25))
        own_broker.kill(0)
        before = count_writes(monitor.work)
        monitor.until(lambda least=before + 3: count_writes(monitor.work) >= least, "writes without a broker")  # type: ignore[misc]
        own_broker.restart(0)
        time.sleep(chance.uniform(1, 12))
        monitor.kill()
    for one in traffic:
        one.end()
    last = minute_of(time.time())
    monitor.start()
    monitor.until(lambda: known_in(monitor.work.store_url) == sum(one.sent for one in traffic), "the end")
    monitor.until_judged(last)
    monitor.stop()
    records, keys, wrong = compare(own_broker, "results", monitor.work)
    print(f"{kills} kills, {outages} outages: {records} records, {keys} keys, {len(wrong)} cells differ")  # noqa: T201 - for docs/RELIABILITY.md
    assert wrong == []
    assert records >= keys > 0
    if outages:
        assert "results are not published now, nothing is lost: trying on" in monitor.work.words()


def count_writes(work: Workplace) -> int:
    """Return how often windows were written."""
    engine = dialect.create_engine(work.store_url)
    try:
        with schema.open_snapshot(engine) as connection:
            return int(writer.read_value(connection, writer.SEQUENCE) or 0)
    finally:
        engine.dispose()
