"""Streaming job with a probe: orders of a topic, joined, shuffled, and written by a function.

Started with the master, brokers, topic, folder, the number of rows at which it ends, and the moment before which it
does not.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages have it

from hopwatch.integrations.spark import SparkProbe
from hopwatch.monitor.spark.connector import connector_settings
from hopwatch.monitor.spark.session import JAVA_OPTIONS

KNOWN_CUSTOMERS = 99
"""Orders of the hundredth customer are lost by the join."""


def build_session(master: str) -> SparkSession:
    """Start Spark with tasks that are run twice where they are slow."""
    chosen = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "50ms",
        "spark.task.maxFailures": "100",
        "spark.sql.streaming.metricsEnabled": "false",
    } | connector_settings()
    builder = SparkSession.builder.master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(place: tuple[str, str, str], folder: Path, rows_at_end: int, until_s: int = 0) -> None:
    """Run until so many orders are written, 0 for ever, and at least until this moment, in s since 1970."""
    master, brokers, topic = place
    spark = build_session(master)
    spark.sparkContext.setLogLevel("ERROR")
    probe = SparkProbe(spark, topic, "enrich", f"spool:{folder / 'spool'}", state=folder / "probe.json")
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    orders = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 300).load()
    orders = orders.select(
        F.from_json(F.col("value").cast("string"), "id string, at timestamp, customer int").alias("o")
    )
    orders = probe.stamp(orders.select("o.*"), "in", message_id="id", event_time="at")
    customers = spark.range(KNOWN_CUSTOMERS).select(
        F.col("id").cast("int").alias("customer"), F.hash("id").alias("name")
    )
    joined = orders.join(customers.hint("shuffle_hash"), "customer").repartition(3, "id")
    leaving = probe.stamp(joined, "out", message_id="id", event_time="at")

    def write(rows: DataFrame, number: int) -> None:
        # A replayed batch overwrites its own folder: the output has each order once.
        rows.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))
        rows.count()  # evaluates all once more
        time.sleep(0.2)

    query = (
        leaving.writeStream.foreachBatch(probe.foreach_batch(write))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    written = 0
    while query.isActive and (not rows_at_end or written < rows_at_end or time.time() < until_s):
        time.sleep(0.2)
        written = sum(count_rows(path) for path in folder.glob("out/batch=*") if (path / "_SUCCESS").exists())
        sys.stdout.write(f"{written}\n")
        sys.stdout.flush()
    query.processAllAvailable()
    time.sleep(11 if until_s else 0)  # an idle query says so every 10 s
    query.stop()
    probe.close()


def count_rows(folder: Path) -> int:
    """Return the rows of all files of a folder."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - the driver alone

    return sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


if __name__ == "__main__":
    run((sys.argv[1], sys.argv[2], sys.argv[3]), Path(sys.argv[4]), *map(int, sys.argv[5:]))
