"""``hopwatch`` whose Spark takes an hour to read: it says when it has begun, and waits for Java."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hopwatch.cli.main import main
from hopwatch.monitor.spark import job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _read(spark: SparkSession, *_: object) -> None:
    sys.stderr.write("reading\n")
    spark.sparkContext._jvm.java.lang.Thread.sleep(3_600_000)


if __name__ == "__main__":
    job.run_once = job.run_span = _read
    sys.exit(main())
