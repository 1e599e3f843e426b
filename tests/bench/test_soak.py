"""Tests of the soak's arithmetic: straight lines have their slopes, and processes are told apart by their commands."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import soak
from bench.soak import WARM_UP_RATIO, SoakSample, kind_of, trends

RATES = st.floats(-1e6, 1e6)


@given(RATES, RATES)
def test_a_straight_line_has_its_slope(first: float, slope_per_h: float) -> None:
    """The slope of a straight line is found, whatever the samples of the warm-up are."""
    samples = [SoakSample(at_s, {"x: memory, MB": first + slope_per_h * at_s / 3_600}) for at_s in range(0, 3_601, 60)]
    odd = [
        one if one.at_s >= 3_600 * WARM_UP_RATIO else SoakSample(one.at_s, {"x: memory, MB": 1e9}) for one in samples
    ]
    (found,) = trends(odd)
    assert (found.what, found.unit) == ("x: memory", "MB")
    assert found.slope_per_h == pytest.approx(slope_per_h, rel=1e-6, abs=1e-3)
    assert found.last == samples[-1].amounts["x: memory, MB"]


def test_an_amount_that_is_not_always_there_has_no_trend() -> None:
    """A process that ended, or began behind the warm-up, is no line."""
    samples = [
        SoakSample(0.0, {"a: rows, ": 1}),
        SoakSample(5.0, {"a: rows, ": 1, "b: rows, ": 2}),
        SoakSample(9.0, {"b: rows, ": 2}),
    ]
    assert trends(samples)[0].what == "b: rows"


def test_processes_are_told_apart_by_their_commands() -> None:
    """The demo's nodes, the monitor, Spark's JVM and its Python workers; nobody else."""
    assert kind_of("python -m hopwatch.demo.nodes.norm {…}") == "nodes and their probes"
    assert kind_of("python -m hopwatch run --config x") == "monitor"
    java = "/usr/bin/java -cp /venv/pyspark/jars/* org.apache.spark.deploy.SparkSubmit --conf"
    assert kind_of(f"{java} spark.python.daemon.module=monitor.spark.daemon pyspark-shell") == "JVM"
    assert kind_of("python -m hopwatch.monitor.spark.daemon pyspark.worker") == "Python workers"
    assert kind_of("bash") is None


def test_a_store_has_its_rows(tmp_path: Path) -> None:
    """Of all its tables together; one that has none yet has 0."""
    store = tmp_path / "hopwatch.db"
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.executescript("CREATE TABLE a (x); CREATE TABLE b (x); INSERT INTO a VALUES (1), (2);")
    assert soak._of_files(tmp_path)["store: rows, "] == 2
