"""Import of files by format: rows a second to the spool and to the store, beside DuckDB and Spark over the file."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from rich.table import Table

from bench.contestant import CORES, ContestantError
from bench.speed import Progress
from bench.table_style import format_number, new_table
from bench.truth import WrongResultError

START_US: Final = 1_370_044_800_000_000
SPAN_US: Final = 3_600_000_000
SHARE: Final = 4
"""Rows of a file are this part of the observations that are asked for."""
COUNTED: Final = (
    'SELECT sum(n)::BIGINT FROM (SELECT "at" - "at" % 60000000, count(DISTINCT id) AS n FROM {source} GROUP BY 1)'
)
COUNTED_FEW: Final = "SELECT count(DISTINCT id) FROM (SELECT * FROM rows LIMIT 1000)"
SOURCES: Final = {
    "parquet": "read_parquet('{path}')",
    "csv": "read_csv('{path}')",
    "jsonl": "read_json('{path}', format = 'newline_delimited')",
    "jsonl.gz": "read_json('{path}', format = 'newline_delimited', compression = 'gzip')",
}
FORMATS: Final = ("parquet", "avro", "jsonl", "jsonl.gz", "csv")


@dataclass(frozen=True, slots=True)
class FilesLine:
    """Rates of one format, per second: of the import, of it per second of CPU, of import and judgement, of the peers.

    The peers have no Avro by themselves.
    """

    format: str
    rows: int
    file_bytes: int
    import_rate: float
    cpu_rate: float
    store_rate: float
    memory_bytes: int
    duckdb_rate: float | None
    spark_rate: float | None


def measure(observations: int, scratch: Path, tell: Progress) -> list[FilesLine]:
    """Return a line a format; all rows are in the store at the end.

    Raises:
        ContestantError: an import or the monitor failed.
        WrongResultError: the store, or a peer, has another number of rows.
    """
    rows = observations // SHARE
    folder = scratch / "files"
    folder.mkdir(parents=True, exist_ok=True)
    tell(f"making files of {rows:,} rows")
    table = make_rows(rows)
    lines = []
    for name in FORMATS:
        path = folder / f"rows.{name}"
        WRITERS[name](table, path)
        tell(f"importing {name}")
        lines.append(_measure_format(name, path, rows, folder / name))
    return lines


def make_rows(rows: int) -> pa.Table:
    """Return rows of an hour, in order of time: UUIDs, moments, and what else a log has."""
    dice = np.random.default_rng(7)
    bits = dice.bytes(16 * rows)
    ids = [str(uuid.UUID(bytes=bits[place : place + 16])) for place in range(0, 16 * rows, 16)]
    at = START_US + np.arange(rows, dtype=np.int64) * SPAN_US // rows
    path = pa.array(np.array(["/orders", "/items", "/carts"])[np.arange(rows) % 3])
    return pa.table({"id": pa.array(ids), "at": pa.array(at), "status": pa.array(np.full(rows, 200)), "path": path})


def _write_jsonl(table: pa.Table, path: Path) -> None:
    with path.open("w") as file:
        for batch in table.to_batches(65_536):
            file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


def _write_gzip(table: pa.Table, path: Path) -> None:
    plain = path.with_suffix("")
    if not plain.exists():
        _write_jsonl(table, plain)
    with plain.open("rb") as source, gzip.open(path, "wb", 6) as packed:
        shutil.copyfileobj(source, packed, 1 << 20)


def _write_avro(table: pa.Table, path: Path) -> None:
    fields = [{"name": name, "type": kind} for name, kind in
              (("id", "string"), ("at", "long"), ("status", "long"), ("path", "string"))]  # fmt: skip
    with path.open("wb") as file:
        rows = (row for batch in table.to_batches(65_536) for row in batch.to_pylist())
        fastavro.writer(
            file, {"type": "record", "name": "Row", "fields": fields}, rows, "deflate", sync_interval=1 << 20
        )


WRITERS: Final[dict[str, Callable[[pa.Table, Path], None]]] = {
    "parquet": pq.write_table,
    "csv": pacsv.write_csv,
    "jsonl": _write_jsonl,
    "jsonl.gz": _write_gzip,
    "avro": _write_avro,
}


def _measure_format(name: str, path: Path, rows: int, folder: Path) -> FilesLine:
    folder.mkdir(exist_ok=True)
    spool, config = folder / "spool", folder / "hopwatch.toml"
    config.write_text(
        f'[transport]\nurl = "spool:{spool}"\n[store]\nurl = "sqlite:///{folder}/store.db"\n'
        f'[monitor]\nworkdir = "{folder}/work"\n[streams.rows]\npath = "log"\nstamps = {{ log = "in" }}\n'
    )
    flags = ("--stream", "rows", "--node", "log", "--id", "id", "--time", "at", "--bye", "--json")
    began_s = time.perf_counter()
    told, used = _run_measured("import", str(path), *flags, "--sink", f"spool:{spool}")
    imported_s = time.perf_counter() - began_s
    _run("run", "--once", "--config", str(config))
    stored_s = time.perf_counter() - began_s
    (stream,) = json.loads(_run("report", "--json", "--config", str(config)))["streams"]
    known = sum(window["known"] for window in stream["windows"])
    if known != rows or json.loads(told)["observations"] != rows:
        raise WrongResultError(f"{name}: the store has {known:,} of {rows:,} rows")
    shutil.rmtree(folder)
    return FilesLine(
        name, rows, path.stat().st_size, rows / imported_s, rows / (used.ru_utime + used.ru_stime), rows / stored_s,
        used.ru_maxrss * 1_024, _measure_duckdb(name, path, rows), _measure_spark(name, path, rows),
    )  # fmt: skip


def _run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "hopwatch", *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    if done.returncode:
        raise ContestantError(f"hopwatch {arguments[0]} ended with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def _run_measured(*arguments: str) -> tuple[str, resource.struct_rusage]:
    """Run a command; return what it printed, and what it used: its CPU, and its largest memory."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as words:
        process = subprocess.Popen([sys.executable, "-m", "hopwatch", *arguments], stdout=out, stderr=words)  # noqa: S603 - our own program
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        words.seek(0)
        if process.returncode:
            raise ContestantError(f"hopwatch {arguments[0]} ended with {process.returncode}: {words.read()[-400:]}")
        return out.read(), used


def _measure_duckdb(name: str, path: Path, rows: int) -> float | None:
    """Return the rate at which DuckDB counts the distinct ids of each minute: a part of what the store then says."""
    if name not in SOURCES:
        return None
    import duckdb  # noqa: PLC0415 - a peer, when it runs

    began_s = time.perf_counter()
    with duckdb.connect(config={"threads": CORES}) as connection:
        found = connection.execute(COUNTED.format(source=SOURCES[name].format(path=path))).fetchone()
    seconds = time.perf_counter() - began_s
    if found != (rows,):
        raise WrongResultError(f"DuckDB has {found} of {rows:,} rows of {name}")
    return rows / seconds


def _measure_spark(name: str, path: Path, rows: int) -> float | None:
    """Return the rate at which a PySpark job counts the same as DuckDB, in a session that has started and counted."""
    if name not in SOURCES:
        return None
    from pyspark.sql import SparkSession  # noqa: PLC0415 - a peer, when it runs

    session = SparkSession.builder.master(f"local[{CORES}]").config("spark.ui.enabled", "false")
    spark = session.config("spark.sql.shuffle.partitions", CORES).config("spark.driver.memory", "4g").getOrCreate()
    try:
        reader = spark.read.schema("id STRING, at BIGINT, status BIGINT, path STRING").option("header", "true")
        form = name.removesuffix(".gz").replace("jsonl", "json")
        reader.format(form).load(str(path)).createOrReplaceTempView("rows")
        asked = COUNTED.format(source="rows").replace('"at"', "at").replace("::BIGINT", "")
        spark.sql(COUNTED_FEW).collect()
        began_s = time.perf_counter()
        found = spark.sql(asked).collect()
        seconds = time.perf_counter() - began_s
    finally:
        spark.stop()
    if [tuple(row) for row in found] != [(rows,)]:
        raise WrongResultError(f"Spark has {found} of {rows:,} rows of {name}")
    return rows / seconds


def build_table(lines: Sequence[FilesLine]) -> Table:
    """Return a row a format; a ratio is our rate over that of DuckDB, below 1 it is ahead."""
    table = new_table(
        f"Files of {lines[0].rows:,} rows, with UUIDs in text; each with the start of its process",
        ("format",),
        (
            "file MB",
            "M rows/s imported",
            "M rows per CPU second",
            "M rows/s to the store",
            "memory GB",
            "M rows/s DuckDB",
            "imported / DuckDB",
            "M rows/s PySpark",
        ),
    )
    for line in lines:
        rate = line.duckdb_rate
        table.add_row(
            line.format,
            format_number(line.file_bytes / 1e6, 0),
            format_number(line.import_rate / 1e6, 3),
            format_number(line.cpu_rate / 1e6, 3),
            format_number(line.store_rate / 1e6, 3),
            format_number(line.memory_bytes / 1e9, 2),
            format_number(None if rate is None else rate / 1e6, 3),
            format_number(None if rate is None else line.import_rate / rate, 2),
            format_number(None if line.spark_rate is None else line.spark_rate / 1e6, 3),
        )
    return table
