"""Tests of the bench of files: its table, and the rows that it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.files import WRITERS, FilesLine, Format, _measure_duckdb, build_table, make_rows
from tests.bench.table_cells import cells


def test_the_table_has_a_ratio_where_there_is_a_peer() -> None:
    """Below 1 DuckDB is ahead; neither it nor PySpark has Avro."""
    lines = [
        FilesLine("csv", 10, 5, 2e6, 1e6, 1e6, 10**9, 4e6, 3e6),
        FilesLine("avro", 10, 5, 2e6, 1e6, 1e6, 10**9, None, None),
    ]
    drawn = cells(build_table(lines))
    assert (drawn["csv"][-2:], drawn["avro"][-2:]) == (["0.50", "3.000"], ["-", "-"])


def test_rows_lie_in_one_hour_with_ids_of_their_own() -> None:
    """So that DuckDB and the store can both count them."""
    table = make_rows(100)
    at = table.column("at").to_pylist()
    assert (len(set(table.column("id").to_pylist())), at == sorted(at), at[-1] - at[0] < 3_600_000_000) == (
        100,
        True,
        True,
    )


@pytest.mark.parametrize("name", Format)
def test_duckdb_counts_the_rows_of_a_file(tmp_path: Path, name: str) -> None:
    """All of them, or the bench ends; Avro it does not read."""
    path = tmp_path / f"rows.{name}"
    WRITERS[name](make_rows(100), path)
    assert (_measure_duckdb(name, tmp_path, 100) is None) == (name == "avro")
