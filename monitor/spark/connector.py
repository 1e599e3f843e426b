"""Spark's Kafka connector: the jars that stand beside the program, or the packages that Spark itself fetches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

JARS: Final = Path(sys.prefix) / "jars" / "connector"
PACKAGES: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


def connector_settings(jars: Path = JARS) -> dict[str, str]:
    """Return the Spark settings that locate the connector."""
    found = sorted(map(str, jars.glob("*.jar")))
    return {"spark.jars": ",".join(found)} if found else {"spark.jars.packages": PACKAGES}
