"""What tests of the job share: one Spark session, started when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from monitor.spark import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield the session that the monitor itself would start."""
    started = session.start(tmp_path_factory.mktemp("spark"))
    yield started
    started.stop()
