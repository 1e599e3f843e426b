"""Fixtures of tests of the probe of Spark jobs: orders, and a probe whose records stay in memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages have it

from hopwatch.integrations.spark import SparkProbe
from hopwatch.testing import MemorySink

ORDERS: Final = 20
AT: Final = dt.datetime(2026, 11, 30, 9, 0, tzinfo=dt.UTC)


@pytest.fixture
def probe(spark: SparkSession, sink: MemorySink, tmp_path: Path) -> Iterator[SparkProbe]:
    """Yield a probe with a state."""
    opened = SparkProbe(spark, "orders", "enrich", sink, state=tmp_path / "state.json")
    yield opened
    opened.close()


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    """Return orders with numbers as ids, in two partitions."""
    rows = spark.range(0, ORDERS, 1, 2).withColumnRenamed("id", "number")
    return rows.withColumn("at", F.lit(AT).cast("timestamp"))
