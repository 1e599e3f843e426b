"""Spark SQL as a PySpark user would write it, one row an observation: a bitmask per message id, or anti-joins per hop.

Both take percentiles from ``percentile_approx`` at its default accuracy. Adaptive execution is on, shuffles are sized
for the work, and the session has run the same query on one window before, so that Java has compiled it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.contestant import CORES, Json
from bench.generate import GeneratedWork
from bench.peers.bits import ALL, LAGS_SQL, STAMPS, lost_ids, seen_counts
from bench.result_check import by_key, from_columns
from bench.truth import QUANTILES, Found, Key
from bench.work import NODES, Work

MEMORY: Final = "6g"
_WINDOW: Final = ("stream", "window")
_MESSAGE: Final = (*_WINDOW, "id_0", "id_1")
_SHUFFLE_ROWS: Final = 1_000_000

Find = Callable[[DataFrame], dict[Key, Found]]


def bitmask(folder: Path, work: Json, made: str) -> Json:
    """Find all that there is to find with one bitmask a message; return ``query_s``. The result is checked."""
    return _run(folder, GeneratedWork(Work(**work), Path(made)), "Spark SQL, bit_or", by_bitmask)


def anti_joins(folder: Path, work: Json, made: str) -> Json:
    """Find all that there is to find with one anti-join a hop; return ``query_s``. The result is checked."""
    return _run(folder, GeneratedWork(Work(**work), Path(made)), "Spark SQL, anti-joins", by_anti_joins)


def by_bitmask(rows: DataFrame) -> dict[Key, Found]:
    """Return what the rows hold, by the stamps of each message."""
    messages = rows.groupBy(*_MESSAGE).agg(f.expr(f"bit_or({STAMPS})").alias("mask"))
    # One pass for both: the ids are listed of those alone that did not come through.
    ids = f.collect_list(f.when(f.col("mask") != ALL, f.struct("id_0", "id_1")))
    found = messages.groupBy(*_WINDOW, "mask").agg(f.count("*").alias("messages"), ids.alias("ids")).collect()
    counts = seen_counts((row.stream, row.window, row.mask, row.messages) for row in found)
    lost = [row for row in found if row.ids]
    of_row = np.array([(row.stream, row.window, row.mask) for row in lost], np.int64).reshape(-1, 3)
    keys = np.repeat(of_row, [len(row.ids) for row in lost], axis=0)
    of_lost = np.array([pair for row in lost for pair in row.ids], np.int64).reshape(-1, 2)
    return from_columns(counts, _lags(rows), lost_ids(keys[:, 0], keys[:, 1], keys[:, 2], of_lost))


def by_anti_joins(rows: DataFrame) -> dict[Key, Found]:
    """Return what the rows hold, by what left one node and was not seen at the next."""
    counts = rows.groupBy(*_WINDOW, "node").agg(f.count_distinct("id_0", "id_1").alias("seen")).collect()
    hops = (_lost_on_the_way_to(rows, node) for node in range(1, len(NODES)))
    lost = reduce(DataFrame.unionAll, hops).toArrow()
    keys = [lost.column(name).to_numpy() for name in (*_WINDOW, "node")]
    ids = np.stack([lost.column(name).to_numpy() for name in ("id_0", "id_1")], axis=1)
    seen = {(row.stream, row.window, row.node): row.seen for row in counts}
    return from_columns(seen, _lags(rows), by_key(keys, ids))


def _lost_on_the_way_to(rows: DataFrame, node: int) -> DataFrame:
    left = rows.where((f.col("node") == node - 1) & f.col("lag_out_us").isNotNull()).select(*_MESSAGE)
    came = rows.where(f.col("node") == node).select(*_MESSAGE)
    return left.join(came, list(_MESSAGE), "left_anti").withColumn("node", f.lit(node))


def _lags(rows: DataFrame) -> dict[Key, tuple[tuple[float, ...], ...]]:
    percentiles = (f.expr(f"percentile_approx({sql}, array{QUANTILES})") for sql in LAGS_SQL)
    found = rows.groupBy(*_WINDOW, "node").agg(*percentiles).collect()
    return {(stream, window, node): tuple(map(tuple, lags)) for stream, window, node, *lags in found}


def _run(folder: Path, made: GeneratedWork, who: str, find: Find) -> Json:
    with _session(folder, made.work) as spark:
        find(spark.read.parquet(str(made.parquet(0))))
        began_s = time.perf_counter()
        found = find(spark.read.parquet(str(made.parquet(0).parent)))
        query_s = time.perf_counter() - began_s
    made.truth().check(who, found)
    return {"query_s": query_s}


@contextmanager
def _session(folder: Path, work: Work) -> Iterator[SparkSession]:
    partitions = CORES * max(1, round(work.observations / _SHUFFLE_ROWS / CORES))
    builder: SparkSession.Builder = SparkSession.builder
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": MEMORY,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # Above so many groups Spark would sort all rows, whatever memory there is.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = builder.master(f"local[{CORES}]").config(map=settings).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
