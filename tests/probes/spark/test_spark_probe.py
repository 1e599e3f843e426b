"""Tests of the probe of Spark jobs, on Spark: what passes a point of a plan is stamped once, whatever Spark does."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages have it

from hopwatch.integrations.spark import SparkProbe
from hopwatch.probes.contract.batch import Batch, BatchKind, Outcome
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.errors import ProbeError
from hopwatch.testing import MemorySink, id_bytes, observations
from tests.probes.spark.conftest import AT, ORDERS
from tests.support.drops import drops

AT_US: Final = int(AT.timestamp()) * 1_000_000
ALL: Final = Counter(range(ORDERS))
WITHIN_S: Final = 60.0


def count_stamps(sink: MemorySink, side: str) -> Counter[int]:
    """Return how often each order has a stamp of a side, or an outcome."""
    numbers = {id_bytes(number): number for number in range(ORDERS * 10)}
    found = observations(sink)
    if side in {"in", "out"}:
        return Counter(numbers[one.message_id] for one in found if getattr(one, f"{side}_us") is not None)
    return Counter(numbers[one.message_id] for one in found if one.outcome == Outcome[side.upper()])


def instances(sink: MemorySink) -> dict[str, list[Batch]]:
    """Return the batches of the instances with stamps."""
    found: dict[str, list[Batch]] = {}
    for batch in map(decode, sink.records):
        found.setdefault(batch.probe, []).append(batch)
    return {name: batches for name, batches in found.items() if any(batch.count for batch in batches)}


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end_s = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def test_a_batch_job_stamps_what_passes(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """A filter behind a stamp does not move below it: what it drops has arrived, and has not left."""
    arriving = probe.stamp(orders, "in", message_id="number", event_time="at")
    leaving = probe.stamp(arriving.where(F.col("number") % 4 != 0), "out", message_id="number", event_time="at")
    assert leaving.count() == ORDERS * 3 // 4
    assert count_stamps(sink, "in") == Counter()
    probe.send()
    assert count_stamps(sink, "in") == ALL
    assert count_stamps(sink, "out") == Counter(number for number in range(ORDERS) if number % 4)
    assert {one.event_us for one in observations(sink)} == {AT_US}


def test_an_instance_says_hello_and_bye(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """The batches of a job are numbered from 0, and end with a bye; their instance is another one than the account."""
    probe.stamp(orders, "in", message_id="number", event_time="at").collect()
    probe.send()
    ((name, batches),) = instances(sink).items()
    assert [batch.seq for batch in batches] == list(range(len(batches)))
    assert [batch.kind for batch in (batches[0], batches[-1])] == [BatchKind.HEARTBEAT, BatchKind.BYE]
    assert name.startswith("spark-")
    assert {decode(record).probe for record in sink.records} > {name}


def test_two_actions_stamp_once(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """The plan is evaluated three times, once of them in part, and each order counts once."""
    stamped = probe.stamp(orders, "in", message_id="number", event_time="at")
    stamped.collect()
    stamped.groupBy("number").count().collect()
    stamped.limit(3).collect()
    probe.send()
    assert count_stamps(sink, "in") == ALL


def test_messages_that_come_twice_count_twice(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """Duplicates of the data are no evaluations."""
    probe.stamp(orders.union(orders), "in", message_id="number", event_time="at").collect()
    probe.send()
    assert count_stamps(sink, "in") == ALL + ALL


def test_rows_are_stamped_behind_a_limit(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """Each row that a limit takes is stamped, and no other; an action that needs one row stamps none of its own."""
    stamped = probe.stamp(orders.limit(3), "in", message_id="number", event_time="at")
    assert not stamped.isEmpty()
    taken = [row["number"] for row in stamped.collect()]
    probe.send()
    assert count_stamps(sink, "in") == Counter(taken)
    assert len(taken) == 3


def test_an_attempt_that_fails_stamps_nothing(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """Spark adds to the driver's list what successful tasks have added."""

    def fail(batches: Any) -> Any:  # noqa: ANN401 - as Spark passes them
        yield from batches
        if TaskContext.get().partitionId():  # type: ignore[union-attr]
            raise RuntimeError("a fault of the job")

    stamped = probe.stamp(orders, "out", message_id="number", event_time="at")
    with pytest.raises(Exception, match="a fault of the job"):
        stamped.mapInArrow(fail, stamped.schema).collect()
    probe.send()
    assert count_stamps(sink, "out") <= Counter(range(ORDERS // 2))


def test_rows_that_end_here_are_stamped_where_a_condition_holds(
    probe: SparkProbe, orders: DataFrame, sink: MemorySink
) -> None:
    """Only rows for which it is true are stamped, and all pass."""
    arriving = probe.stamp(orders, "in", message_id="number", event_time="at")
    dear = F.when(F.col("number") == 7, F.lit(None)).otherwise(F.col("number") > 4)
    stamped = probe.stamp(arriving, "filtered", message_id="number", event_time="at", where=dear)
    assert stamped.count() == ORDERS
    probe.send()
    assert count_stamps(sink, "filtered") == Counter(number for number in range(5, ORDERS) if number != 7)
    assert count_stamps(sink, "in") == ALL


def test_rows_without_id_or_time_are_counted_as_dropped(probe: SparkProbe, orders: DataFrame, sink: MemorySink) -> None:
    """No message looks lost for a row that cannot be stamped."""
    number = F.when(F.col("number") == 1, F.lit(None)).otherwise(F.col("number"))
    at = F.when(F.col("number") == 2, F.lit(None)).otherwise(F.col("at"))
    probe.stamp(orders, "in", message_id=number, event_time=at).collect()
    probe.send()
    assert count_stamps(sink, "in") == ALL - Counter([1, 2])
    assert {drop.cause for drop in drops(sink.records)} == {"no_id", "no_time"}


def test_a_task_has_room_for_so_many_rows(spark: SparkSession, orders: DataFrame, sink: MemorySink) -> None:
    """The further ones are counted in their windows: Spark ends a job whose results are too large."""
    with SparkProbe(spark, "orders", "enrich", sink, max_task_bytes=1) as probe:
        assert probe.stamp(orders, "in", message_id="number", event_time="at").count() == ORDERS
    assert count_stamps(sink, "in") == Counter()
    (drop,) = {(one.window_start_ms, one.cause, one.count) for one in drops(sink.records)}
    assert drop == (AT_US // 1_000, "too many rows in a task", ORDERS)


def test_texts_of_ids_are_left_out_on_request(spark: SparkSession, orders: DataFrame) -> None:
    """Ids are compared by their hashes either way."""
    named = orders.withColumn("name", F.concat(F.lit("order-"), "number"))
    for id_text in (True, False):
        sink = MemorySink()
        with SparkProbe(spark, "orders", "enrich", sink, id_text=id_text) as probe:
            probe.stamp(named, "in", message_id="name", event_time="at").collect()
        assert {one.message_id for one in observations(sink)} == {id_bytes(f"order-{n}") for n in range(ORDERS)}
        assert any(decode(record).id_texts for record in sink.records) is id_text


def test_a_watermark_survives_a_stamp(spark: SparkSession, probe: SparkProbe) -> None:
    """Streaming jobs may stamp between a watermark and what needs it."""
    source = spark.readStream.format("rate").load().withWatermark("timestamp", "1 minute")
    stamped = probe.stamp(source, "in", message_id="value", event_time="timestamp")
    query = stamped.dropDuplicatesWithinWatermark(["value"]).writeStream.format("noop").start()
    query.stop()


def count_rows(rows: DataFrame, _: int) -> None:
    """Read all rows of a micro-batch."""
    rows.count()


def run_stream(spark: SparkSession, folder: Path, build: Callable[[DataFrame], DataFrame], function: Any) -> None:  # noqa: ANN401
    """Run a streaming query over the files of a folder until it has read them."""
    source = spark.readStream.schema("number long, at timestamp").parquet(str(folder / "orders"))
    writer = build(source).writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.foreachBatch(function).start() if function is not None else writer.format("noop").start()
    try:
        query.processAllAvailable()
        wait_for(lambda: not query.status["isTriggerActive"])
    finally:
        query.stop()


def test_a_micro_batch_is_sent_before_it_is_committed(
    spark: SparkSession, probe: SparkProbe, orders: DataFrame, sink: MemorySink, tmp_path: Path
) -> None:
    """A query that fails behind its function reads the same rows again, and its stamps have the same numbers."""
    orders.write.parquet(str(tmp_path / "orders"))

    def build(rows: DataFrame) -> DataFrame:
        return probe.stamp(rows.repartition(3), "out", message_id="number", event_time="at")

    def fail(rows: DataFrame, number: int) -> None:
        probe.foreach_batch(lambda rows, _: rows.write.format("noop").mode("overwrite").save())(rows, number)
        raise RuntimeError("killed before the commit")

    with pytest.raises(Exception, match="killed before the commit"):
        run_stream(spark, tmp_path, build, fail)
    assert count_stamps(sink, "out") == ALL
    run_stream(spark, tmp_path, build, probe.foreach_batch(count_rows))
    ((_, batches),) = instances(sink).items()
    first, second = batches[: len(batches) // 2], batches[len(batches) // 2 :]
    assert [batch.seq for batch in first] == [batch.seq for batch in second]
    assert [(batch.message_ids, batch.event_offset_us) for batch in first] == [
        (batch.message_ids, batch.event_offset_us) for batch in second
    ]


def test_a_function_that_fails_stamps_nothing(
    spark: SparkSession, probe: SparkProbe, orders: DataFrame, sink: MemorySink, tmp_path: Path
) -> None:
    """Rows that were evaluated for it have not left."""
    orders.write.parquet(str(tmp_path / "orders"))

    def fail(rows: DataFrame, _: int) -> None:
        rows.collect()
        raise RuntimeError("a fault of the function")

    with pytest.raises(Exception, match="a fault of the function"):
        run_stream(
            spark,
            tmp_path,
            lambda rows: probe.stamp(rows, "out", message_id="number", event_time="at"),
            probe.foreach_batch(fail),
        )
    assert count_stamps(sink, "out") == Counter()


def test_a_query_with_a_sink_of_spark_is_stamped_behind_its_commit(
    spark: SparkSession, probe: SparkProbe, orders: DataFrame, sink: MemorySink, tmp_path: Path
) -> None:
    """Its listener hears of the micro-batch; nothing that was stamped by another query is sent with it."""
    orders.write.parquet(str(tmp_path / "orders"))
    run_stream(spark, tmp_path, lambda rows: probe.stamp(rows, "in", message_id="number", event_time="at"), None)
    wait_for(lambda: count_stamps(sink, "in") == ALL)


def test_a_sink_that_refuses_costs_the_job_nothing(
    spark: SparkSession, orders: DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    """Its stamps are counted as dropped, in the windows of the rows, once it takes something again."""
    sink = MemorySink()
    with SparkProbe(spark, "orders", "enrich", sink, patience_s=0.1) as probe:
        sink.is_full = True
        probe.stamp(orders, "in", message_id="number", event_time="at").collect()
        probe.send()
        sink.is_full = False
        probe.send(read_through_us=AT_US)
    assert [(drop.window_start_ms, drop.count) for drop in drops(sink.records)] == [(AT_US // 1_000, ORDERS)]
    assert "the sink does not take the stamps of a micro-batch: they are dropped, and counted" in caplog.text


def test_a_second_query_is_told(
    spark: SparkSession, probe: SparkProbe, orders: DataFrame, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Nobody knows how far both of them have come."""
    orders.write.parquet(str(tmp_path / "orders"))
    for name in ("one", "two"):
        source = spark.readStream.schema("number long, at timestamp").parquet(str(tmp_path / "orders"))
        stamped = probe.stamp(source, "in", message_id="number", event_time="at")
        folder = str(tmp_path / name)
        writer = stamped.writeStream.option("checkpointLocation", folder)
        query = writer.foreachBatch(probe.foreach_batch(count_rows)).start()
        query.processAllAvailable()
        query.stop()
    assert "a second query stamps with it: use a probe for each, or all that they lose is unknown" in caplog.text


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"side": "through"}, "rows cannot be stamped: 'through' is not a valid JobStamp"),
        ({"time_unit": "days"}, "rows cannot be stamped: 'days' is not a valid TimeUnit"),
        ({"event_time": "day"}, "event times of the type date have no time zone: cast them to timestamp"),
        ({"event_time": "local"}, "event times of the type timestamp_ntz have no time zone: cast them to timestamp"),
    ],
)  # fmt: skip
def test_a_stamp_that_cannot_be_is_refused(
    probe: SparkProbe, orders: DataFrame, asked: dict[str, Any], told: str
) -> None:
    """A mistake ends the job before it begins."""
    rows = orders.withColumns({"day": F.col("at").cast("date"), "local": F.col("at").cast("timestamp_ntz")})
    with pytest.raises(ProbeError, match=told):
        probe.stamp(rows, **{"side": "in", "message_id": "number", "event_time": "at"} | asked)


@pytest.mark.usefixtures("probe")
def test_a_probe_that_cannot_be_is_refused(
    spark: SparkSession, sink: MemorySink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, sinks, and a state that another probe has."""
    monkeypatch.delenv("HOPWATCH_SINK", raising=False)
    begin = "a probe of a Spark job cannot start: "
    for asked, told in (
        (("a b", "enrich", sink), "a stream is 1 to 128 of the characters A-Za-z0-9._-, got 'a b'"),
        (("orders", "enrich", None), "there is no sink: name one, or set HOPWATCH_SINK"),
        (("orders", "enrich", "ftp://x"), "a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got 'ftp://x'"),
    ):
        with pytest.raises(ProbeError) as refused:
            SparkProbe(spark, *asked)
        assert str(refused.value) == begin + told
    with pytest.raises(ProbeError) as refused:
        SparkProbe(spark, "orders", "enrich", sink, state=tmp_path / "state.json")
    assert str(refused.value).endswith("stop it, or name another file with state=")


def test_a_probe_leaves_no_thread(spark: SparkSession, sink: MemorySink) -> None:
    """The thread that keeps the account alive ends with the probe."""
    SparkProbe(spark, "orders", "enrich", sink).close()
    wait_for(lambda: "hopwatch-spark" not in {thread.name for thread in threading.enumerate()})


def test_a_query_that_fails_again_and_again_leaves_nothing_behind(
    spark: SparkSession, probe: SparkProbe, orders: DataFrame, tmp_path: Path
) -> None:
    """Stamps of a micro-batch that was not finished go when the query starts anew."""
    orders.write.parquet(str(tmp_path / "orders"))

    def build(rows: DataFrame) -> DataFrame:
        return probe.stamp(rows, "out", message_id="number", event_time="at")

    def fail(rows: DataFrame, _: int) -> None:
        rows.collect()
        raise RuntimeError("a fault of the function")

    counts = []
    for _ in range(3):
        with pytest.raises(Exception, match="a fault of the function"):
            run_stream(spark, tmp_path, build, fail)
        probe._collect()
        counts.append(sum(map(len, probe._waiting.values())))
    assert len(set(counts)) == 1


def test_a_batch_job_goes_on_without_a_hole(
    spark: SparkSession, orders: DataFrame, sink: MemorySink, tmp_path: Path
) -> None:
    """A job that sent all its stamps, and closed, has left none; one that forgot to send them is in doubt."""
    for is_sent in (True, True, False, True):
        probe = SparkProbe(spark, "orders", "enrich", sink, state=tmp_path / "state")
        probe.stamp(orders, "in", message_id="number", event_time="at").collect()
        if is_sent:
            probe.send(read_through_us=AT_US)
        probe.close()
    told = [batch for batch in map(decode, sink.records) if not batch.count and batch.kind is not BatchKind.BYE]
    account = next(batch.probe for batch in told if batch.complete_through_us == AT_US)
    numbers = sorted({batch.seq for batch in told if batch.probe == account})
    # Two batches of each process that sent, one of the one that did not, and a number left out after it.
    assert numbers == [0, 1, 2, 3, 4, 5, 7]


def test_another_query_may_follow(
    spark: SparkSession, orders: DataFrame, sink: MemorySink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A query whose checkpoint was deleted is a new one, by which the same node goes on."""
    orders.write.parquet(str(tmp_path / "orders"))
    for name in ("one", "two"):
        with SparkProbe(spark, "orders", "enrich", sink, state=tmp_path / "state") as probe:
            source = spark.readStream.schema("number long, at timestamp").parquet(str(tmp_path / "orders"))
            stamped = probe.stamp(source, "in", message_id="number", event_time="at")
            writer = stamped.writeStream.option("checkpointLocation", str(tmp_path / name))
            query = writer.foreachBatch(probe.foreach_batch(count_rows)).start()
            query.processAllAvailable()
            query.stop()
    assert "second query" not in caplog.text
    assert count_stamps(sink, "in") == ALL + ALL


def test_threads_of_a_function_stamp_for_its_micro_batch(
    spark: SparkSession, probe: SparkProbe, orders: DataFrame, sink: MemorySink, tmp_path: Path
) -> None:
    """Rows that a function writes in several threads have left, each once."""
    orders.write.parquet(str(tmp_path / "orders"))

    def write(rows: DataFrame, number: int) -> None:
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda _: count_rows(rows, number), range(2)))

    run_stream(
        spark,
        tmp_path,
        lambda rows: probe.stamp(rows, "out", message_id="number", event_time="at"),
        probe.foreach_batch(write),
    )
    assert count_stamps(sink, "out") == ALL


def test_a_cached_frame_is_stamped_as_its_parts_are_read(
    probe: SparkProbe, orders: DataFrame, sink: MemorySink
) -> None:
    """Actions read one partition each, and none again: together they have stamped each order once."""
    stamped = probe.stamp(orders, "in", message_id="number", event_time="at").persist()
    assert not stamped.isEmpty()
    assert stamped.count() == ORDERS
    stamped.unpersist()
    probe.send()
    assert count_stamps(sink, "in") == ALL
