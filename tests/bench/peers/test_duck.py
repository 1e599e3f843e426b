"""Tests of DuckDB as a peer: it finds what is there, and what it does not find is noticed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from bench.generate import GeneratedWork
from bench.peers import duck
from bench.truth import WrongResultError


def test_duckdb_finds_what_is_there(little: GeneratedWork, tmp_path: Path) -> None:
    """Counts, lost ids and quantiles of every window of every node agree with the truth."""
    assert duck.run(tmp_path, little.work.as_json(), str(little.folder))["query_s"] > 0


def test_a_window_that_duckdb_does_not_read_is_noticed(little: GeneratedWork) -> None:
    """Half of the files is half of the windows, and no result."""
    found = duck.find(duckdb.connect(), str(little.parquet(0)))
    with pytest.raises(WrongResultError, match=r"^DuckDB found 8 windows of nodes, there are 16$"):
        little.truth().check("DuckDB", found)
