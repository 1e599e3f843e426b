"""``hopwatch`` whose Spark takes an hour to read: it says when it has begun, and waits for Java."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hopwatch.cli.main import main
from hopwatch.monitor.spark import job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _read(spark: SparkSession, *_: object) -> None:
    sys.stderr.write("reading\n")
    java: Any = spark.sparkContext._jvm
    java.java.lang.Thread.sleep(3_600_000)


if __name__ == "__main__":
    for name in ("run_once", "run_span"):
        setattr(job, name, _read)
    sys.exit(main())
