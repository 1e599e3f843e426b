"""Tests of the bench of Spark jobs: its table."""

from __future__ import annotations

from bench.spark_job import JobCost, build_table
from tests.bench.table_cells import cells


def test_the_table_has_ratios_and_the_cost_of_a_stamp() -> None:
    """Each row is stamped twice."""
    shown = cells(build_table([JobCost("a job", 1_000_000, 10.0, 11.0, (1.05, 1.10, 1.20))]))
    assert shown["a job"] == ["1,000,000", "10.00", "11.00", "0.50", "1.10", "1.05", "1.20"]
