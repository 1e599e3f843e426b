"""Spark that runs statements on the Iceberg tables of a catalogue which pyiceberg has made.

It is a Spark 4.1 of its own, as Iceberg has published nothing for 4.2: what it has for 4.1 does not load there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, Self

from py4j.java_gateway import JavaGateway

from hopwatch.monitor.spark.session import JAVA_OPTIONS

JARS: Final = Path(sys.prefix) / "jars" / "iceberg"
_OPENED: Final = (
    "java.io", "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
"""Packages of Java that Spark reaches into."""


class SparkCatalog:
    """Session of Spark, with a catalogue of SQLite under its name."""

    def __init__(self, folder: Path, name: str) -> None:
        """Start it; the catalogue is in ``catalog.db`` in a folder, its tables are in ``warehouse``."""
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        (py4j,) = JARS.glob("py4j-*.jar")
        self._java = JavaGateway.launch_gateway(
            jarpath=str(py4j), classpath=f"{JARS}/*", javaopts=[*opened, *JAVA_OPTIONS.split()], die_on_exit=True
        )
        catalog = f"spark.sql.catalog.{name}"
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": f"{folder}/spark",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "jdbc",
            f"{catalog}.cache-enabled": "false",
            f"{catalog}.uri": f"jdbc:sqlite:{folder}/catalog.db",
            f"{catalog}.warehouse": f"file://{folder}/warehouse",
        }
        builder = self._java.jvm.org.apache.spark.sql.SparkSession.builder().master("local[1]").appName(name)
        for key, value in settings.items():
            builder = builder.config(key, value)
        self._session = builder.getOrCreate()

    def run(self, statement: str) -> None:
        """Run a statement to its end."""
        self._session.sql(statement).collectAsList()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._session.stop()
        self._java.shutdown()
