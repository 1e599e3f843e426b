"""Cost of a probe to a Spark job: streaming queries over files, with and without stamps, in turns and in one session.

One micro-batch for each file; a query ends when it has read all of them. What differs is whether rows are stamped, both
``in`` and ``out``, into a spool.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages have it
from rich.table import Table

from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.integrations.spark import SparkProbe

ROWS: Final = 250_000
"""Rows of a file, and so of a micro-batch."""
FILES: Final = 4
ROUNDS: Final = 3
CUSTOMERS: Final = 1_000
DIGEST_BITS: Final = 256
HASHES: Final = 100
"""Digests of a row in the job that computes."""


@dataclass(frozen=True, slots=True)
class JobCost:
    """Query over all rows: s without and with stamps, medians of the rounds, and the ratio of each round, sorted."""

    job: str
    rows: int
    bare_s: float
    stamped_s: float
    ratios: tuple[float, ...]


def measure(scratch: Path, tell: Progress) -> list[JobCost]:
    """Return the cost of each job."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        _write_source(spark, scratch / "source")
        return [_compare(spark, scratch, job, tell) for job in JOBS]
    finally:
        spark.stop()


def build_table(costs: list[JobCost]) -> Table:
    """Return the table of the costs."""
    titles = ("rows", "bare, s", "stamped, s", "µs a stamp", "ratio", "least", "most")
    table = new_table("Cost of a probe to a Spark job", ("a micro-batch",), titles)
    for cost in costs:
        stamp_us = (cost.stamped_s - cost.bare_s) * 1e6 / (2 * cost.rows)
        figures = (cost.bare_s, cost.stamped_s, stamp_us, median(cost.ratios), cost.ratios[0], cost.ratios[-1])
        table.add_row(cost.job, format_number(cost.rows, 0), *(format_number(one, 2) for one in figures))
    return table


def _write_source(spark: SparkSession, folder: Path) -> None:
    rows = spark.range(0, ROWS * FILES, 1, FILES).select(
        F.expr("uuid()").alias("id"),
        (F.col("id") % CUSTOMERS).alias("customer"),
        F.current_timestamp().alias("at"),
        F.sha2(F.col("id").cast("string"), DIGEST_BITS).alias("item"),
        F.sha2((F.col("id") + 1).cast("string"), DIGEST_BITS).alias("note"),
    )
    rows.write.parquet(str(folder))


def _join(rows: DataFrame) -> DataFrame:
    customers = rows.sparkSession.range(CUSTOMERS).select(F.col("id").alias("customer"), F.hash("id").alias("name"))
    return rows.join(customers.hint("shuffle_hash"), "customer")


def _compute(rows: DataFrame) -> DataFrame:
    numbers = F.sequence(F.lit(1), F.lit(HASHES))
    digest = F.aggregate(numbers, F.col("item"), lambda text, _: F.sha2(text, DIGEST_BITS))
    return _join(rows.withColumn("digest", digest))


JOBS: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    "a join with a shuffle, written to Parquet": _join,
    f"the same, and {HASHES} SHA-256 a row": _compute,
}
_numbers = itertools.count()


def _compare(spark: SparkSession, scratch: Path, job: str, tell: Progress) -> JobCost:
    bare_s, stamped_s = [], []
    for round_number in range(ROUNDS + 1):
        tell(f"{job}: round {round_number} of {ROUNDS}")
        one_s, other_s = _run(spark, scratch, job, None), _run(spark, scratch, job, scratch / "spool")
        if round_number:  # the first one warms up
            bare_s.append(one_s)
            stamped_s.append(other_s)
    ratios = sorted(other / one for one, other in zip(bare_s, stamped_s, strict=True))
    return JobCost(job, ROWS * FILES, median(bare_s), median(stamped_s), tuple(ratios))


def _run(spark: SparkSession, scratch: Path, job: str, spool: Path | None) -> float:
    """Return the seconds that a query takes."""
    folder = scratch / f"run-{next(_numbers)}"
    source = spark.readStream.schema("id string, customer long, at timestamp, item string, note string")
    rows = source.option("maxFilesPerTrigger", 1).parquet(str(scratch / "source"))

    def write(rows: DataFrame, number: int) -> None:
        rows.write.parquet(str(folder / "out" / str(number)))

    probe = None if spool is None else SparkProbe(spark, "orders", "enrich", f"spool:{spool}", state=folder / "state")
    if probe is not None:
        rows = probe.stamp(rows, "in", message_id="id", event_time="at")
    rows = JOBS[job](rows)
    if probe is not None:
        rows = probe.stamp(rows, "out", message_id="id", event_time="at")
    begun_s = time.monotonic()
    writer = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    writer.foreachBatch(write if probe is None else probe.foreach_batch(write)).trigger(
        availableNow=True
    ).start().awaitTermination()
    took_s = time.monotonic() - begun_s
    if probe is not None:
        probe.close()
    return took_s
