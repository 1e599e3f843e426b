"""Import of files by format: rows a second to the spool and to the store, beside DuckDB and Spark over the files.

A file for each core, of a server each: their imports run at once, as a fleet's files are imported.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from rich.table import Table

from bench.contestant import CORES, ContestantError
from bench.footprint import memory_bytes
from bench.speed import Progress
from bench.table_style import format_number, new_table
from bench.truth import WrongResultError

START_US: Final = 1_370_044_800_000_000
SPAN_US: Final = 3_600_000_000
SHARE: Final = 4
"""Rows of all files are this part of the observations that are asked for."""
COUNTED: Final = (
    'SELECT sum(n)::BIGINT FROM (SELECT "at" - "at" % 60000000, count(DISTINCT id) AS n FROM {source} GROUP BY 1)'
)
POLL_S: Final = 0.02
COUNTED_FEW: Final = "SELECT count(DISTINCT id) FROM (SELECT * FROM rows LIMIT 1000)"
SOURCES: Final = {
    "parquet": "read_parquet('{folder}/*')",
    "csv": "read_csv('{folder}/*')",
    "jsonl": "read_json('{folder}/*', format = 'newline_delimited')",
    "jsonl.gz": "read_json('{folder}/*', format = 'newline_delimited', compression = 'gzip')",
}


class Format(StrEnum):
    """Formats of files."""

    PARQUET = "parquet"
    AVRO = "avro"
    JSONL = "jsonl"
    JSONL_GZ = "jsonl.gz"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class FilesLine:
    """Rates of one format, per second: of the import, of it per second of CPU, of import and judgement, of the peers.

    The memory is that of the largest process that imports. The peers have no Avro by themselves.
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


def measure(observations: int, scratch: Path, tell: Progress, formats: Sequence[Format] = ()) -> list[FilesLine]:
    """Return a line a format, by default of all; all rows are in the store at the end.

    Raises:
        ContestantError: an import or the monitor failed.
        WrongResultError: the store, or a peer, has another number of rows.
    """
    rows = observations // SHARE // CORES * CORES
    lines = []
    for name in formats or tuple(Format):
        folder = scratch / f"files-{name}"
        for place in range(CORES):
            tell(f"making file {place + 1} of {CORES} of {name}, of {rows // CORES:,} rows")
            _make_file(make_rows(rows // CORES, place), name, folder / "files", f"web-{place}")
        # What was written is on the disk before anything is measured, and fits into memory, as all formats do not.
        os.sync()
        tell(f"importing {name}")
        lines.append(_measure_format(name, folder / "files", rows, folder / "work"))
        shutil.rmtree(folder)
    return lines


def _make_file(table: pa.Table, name: Format, folder: Path, server: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    WRITERS[name](table, folder / f"{server}.{name}")


def make_rows(rows: int, seed: int = 0) -> pa.Table:
    """Return rows of an hour, in order of time: UUIDs, moments, and what else a log has."""
    at = START_US + np.arange(rows, dtype=np.int64) * SPAN_US // rows
    path = pa.array(np.array(["/orders", "/items", "/carts"])[np.arange(rows) % 3])
    ids = _make_ids(rows, np.random.default_rng(seed))
    return pa.table({"id": ids, "at": pa.array(at), "status": pa.array(np.full(rows, 200)), "path": path})


def _make_ids(rows: int, dice: np.random.Generator) -> pa.Array:
    """Return UUIDs in text."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[dice.integers(0, 16, (rows, 32), np.uint8)]
    texts = np.insert(digits, (8, 12, 16, 20), ord("-"), axis=1)
    starts = np.arange(rows + 1, dtype=np.int32) * texts.shape[1]
    return pa.StringArray.from_buffers(rows, pa.py_buffer(starts), pa.py_buffer(texts))


def _write_jsonl(table: pa.Table, path: Path) -> None:
    import duckdb  # noqa: PLC0415 - a peer

    with duckdb.connect() as connection:
        connection.register("made", table)
        connection.execute(f"COPY made TO '{path}' (FORMAT json)")


def _write_gzip(table: pa.Table, path: Path) -> None:
    plain = path.with_suffix("")
    _write_jsonl(table, plain)
    with plain.open("rb") as source, gzip.open(path, "wb", 6) as packed:
        shutil.copyfileobj(source, packed, 1 << 20)
    plain.unlink()


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


class _Used(NamedTuple):
    """Use of one process: its CPU seconds, its largest memory, and the rows that it says it imported."""

    cpu_s: float
    memory_bytes: int
    rows: int


def _measure_format(name: str, files: Path, rows: int, folder: Path) -> FilesLine:
    folder.mkdir(exist_ok=True)
    spool, config = folder / "spool", folder / "hopwatch.toml"
    config.write_text(
        f'[transport]\nurl = "spool:{spool}"\n[store]\nurl = "sqlite:///{folder}/store.db"\n'
        f'[monitor]\nworkdir = "{folder}/work"\n[streams.rows]\npath = "log"\nstamps = {{ log = "in" }}\n'
    )
    flags = ("--stream", "rows", "--node", "log", "--id", "id", "--time", "at", "--server-from", "(web-[0-9]+)")
    began_s = time.perf_counter()
    used = _import_at_once(sorted(files.iterdir()), *flags, "--bye", "--json", "--sink", f"spool:{spool}")
    imported_s = time.perf_counter() - began_s
    _run("run", "--once", "--config", str(config))
    stored_s = time.perf_counter() - began_s
    (stream,) = json.loads(_run("report", "--json", "--config", str(config)))["streams"]
    known = sum(window["known"] for window in stream["windows"])
    if known != rows or sum(one.rows for one in used) != rows:
        raise WrongResultError(f"{name}: the store has {known:,} of {rows:,} rows")
    shutil.rmtree(folder)
    return FilesLine(
        name, rows, sum(file.stat().st_size for file in files.iterdir()), rows / imported_s,
        rows / sum(one.cpu_s for one in used), rows / stored_s, max(one.memory_bytes for one in used),
        _measure_duckdb(name, files, rows), _measure_spark(name, files, rows),
    )  # fmt: skip


def _import_at_once(files: Sequence[Path], *flags: str) -> list[_Used]:
    """Import each file with a process of its own, all at the same time."""
    with ExitStack() as stack:
        outputs = [(stack.enter_context(TemporaryFile("w+")), stack.enter_context(TemporaryFile("w+"))) for _ in files]
        processes = [
            subprocess.Popen([sys.executable, "-m", "hopwatch", "import", str(file), *flags], stdout=out, stderr=words)  # noqa: S603 - our own program
            for file, (out, words) in zip(files, outputs, strict=True)
        ]
        memory_of = dict.fromkeys(processes, 0)
        used: dict[subprocess.Popen[bytes], resource.struct_rusage] = {}
        while len(used) < len(processes):
            time.sleep(POLL_S)
            for process in processes:
                if process in used:
                    continue
                # What wait4 says of memory begins with this process's own.
                with suppress(OSError):
                    memory_of[process] = max(memory_bytes("VmHWM", process.pid), memory_of[process])
                found, status, of_it = os.wait4(process.pid, os.WNOHANG)
                if found:
                    process.returncode, used[process] = os.waitstatus_to_exitcode(status), of_it
        return [
            _read_result(process, used[process], memory_of[process], *output)
            for process, output in zip(processes, outputs, strict=True)
        ]


def _read_result(
    process: subprocess.Popen[bytes], used: resource.struct_rusage, memory: int, out: IO[str], words: IO[str]
) -> _Used:
    out.seek(0)
    words.seek(0)
    if process.returncode:
        raise ContestantError(f"hopwatch import ended with {process.returncode}: {words.read()[-400:]}")
    return _Used(used.ru_utime + used.ru_stime, memory, json.loads(out.read())["observations"])


def _run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "hopwatch", *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    if done.returncode:
        raise ContestantError(f"hopwatch {arguments[0]} ended with {done.returncode}: {done.stderr[-400:]}")
    return done.stdout


def _measure_duckdb(name: str, folder: Path, rows: int) -> float | None:
    """Return the rate at which DuckDB counts the distinct ids of each minute: a part of what the store then says."""
    if name not in SOURCES:
        return None
    import duckdb  # noqa: PLC0415 - a peer, when it runs

    began_s = time.perf_counter()
    with duckdb.connect(config={"threads": CORES}) as connection:
        found = connection.execute(COUNTED.format(source=SOURCES[name].format(folder=folder))).fetchone()
    seconds = time.perf_counter() - began_s
    if found != (rows,):
        raise WrongResultError(f"DuckDB has {found} of {rows:,} rows of {name}")
    return rows / seconds


def _measure_spark(name: str, folder: Path, rows: int) -> float | None:
    """Return the rate at which a PySpark job counts the same as DuckDB, in a session that has started and counted."""
    if name not in SOURCES:
        return None
    from pyspark.sql import SparkSession  # noqa: PLC0415 - a peer, when it runs

    session = SparkSession.builder.master(f"local[{CORES}]").config("spark.ui.enabled", "false")
    spark = session.config("spark.sql.shuffle.partitions", CORES).config("spark.driver.memory", "4g").getOrCreate()
    try:
        reader = spark.read.schema("id STRING, at BIGINT, status BIGINT, path STRING").option("header", "true")
        form = name.removesuffix(".gz").replace("jsonl", "json")
        reader.format(form).load(str(folder)).createOrReplaceTempView("rows")
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
        f"Files of {lines[0].rows:,} rows, with UUIDs in text, one a core; each with the start of its process",
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
