"""DuckDB on two threads, from Parquet: a bitmask per message id, exact percentiles."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import numpy as np

from bench.contestant import CORES, Json
from bench.generate import GeneratedWork
from bench.peers.bits import ALL, LAGS_SQL, STAMPS, lost_ids, seen_counts
from bench.result_check import from_columns
from bench.truth import QUANTILES, Found, Key
from bench.work import Work


def run(folder: Path, work: Json, made: str) -> Json:
    """Find all that there is to find; return ``query_s``. The result is checked."""
    of_kind = GeneratedWork(Work(**work), Path(made))
    connection = duckdb.connect(
        str(folder / "peer.duckdb"), config={"threads": CORES, "temp_directory": str(folder / "spilled")}
    )
    began_s = time.perf_counter()
    found = find(connection, str(of_kind.parquet(0).with_name("*.parquet")))
    query_s = time.perf_counter() - began_s
    of_kind.truth().check("DuckDB", found)
    return {"query_s": query_s}


def find(connection: duckdb.DuckDBPyConnection, files: str) -> dict[Key, Found]:
    """Return what the files hold, one row an observation."""
    connection.from_parquet(files).create_view("observations")
    stamps = f'SELECT stream, "window", id_0, id_1, bit_or({STAMPS}) AS mask FROM observations GROUP BY ALL'  # noqa: S608
    connection.execute(f"CREATE TEMP TABLE messages AS {stamps}")
    counts = connection.execute('SELECT stream, "window", mask, count(*) FROM messages GROUP BY ALL').fetchall()
    lost = connection.execute("SELECT * FROM messages WHERE mask <> ?", [ALL]).fetchnumpy()
    lags = connection.execute(f'SELECT stream, "window", node, {_percentiles()} FROM observations GROUP BY ALL')  # noqa: S608
    of_key = {(stream, window, node): tuple(map(tuple, three)) for stream, window, node, *three in lags.fetchall()}
    ids = np.stack([lost["id_0"], lost["id_1"]], axis=1)
    return from_columns(seen_counts(counts), of_key, lost_ids(lost["stream"], lost["window"], lost["mask"], ids))


def _percentiles() -> str:
    return ", ".join(f"quantile_cont({sql}, {list(QUANTILES)})" for sql in LAGS_SQL)
