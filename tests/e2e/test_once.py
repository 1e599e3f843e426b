"""``--once`` through Spark itself: random pipelines in which anything may go wrong, against the slow model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hopwatch.monitor.rejudgement import Span
from hopwatch.monitor.spark import job
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import reader
from hopwatch.probes.contract.limits import WINDOW_US
from tests.model import model, scenario
from tests.support.conclusions import dump_tables
from tests.support.examples import soak_after
from tests.support.model_comparison import comparable, prepared_store, rules_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("shards", soak_after(1, [3, 1]))
@pytest.mark.parametrize("seed", soak_after(1, [3, 19, 42, 77]))
def test_once_through_spark_says_what_the_model_says(
    seed: int, shards: int, spark: SparkSession, tmp_path: Path
) -> None:
    """Field by field, however many shards a window has; its span judged again says the same."""
    spool = tmp_path / "spool"
    spool.mkdir()
    made = scenario.generate(seed, spool)
    rules = rules_of(tmp_path, made.streams, shards=shards)
    engine = prepared_store(tmp_path, "once.db")
    job.run_once(spark, job.JobContext(SpoolSource(spool), engine, rules, tmp_path), lambda _: None)
    reports = reader.read_report(engine), model.report(made.streams, spool)
    found, expected = (comparable(one, is_sharded=shards > 1) for one in reports)
    assert found == expected
    with engine.begin() as connection:
        first_us, last_us = next(iter(reader.read_stream_ranges(connection).values()))
    before, span = dump_tables(engine), Span(first_us, last_us + WINDOW_US)
    told = job.run_span(spark, job.JobContext(SpoolSource(spool), engine, rules, tmp_path), span, lambda _: None)
    assert (told.judged > 0, told.revised, told.left) == (True, 0, 0)
    # The last column is the number of the write.
    assert [row[:-1] for row in dump_tables(engine)["windows"]] == [row[:-1] for row in before["windows"]]
