"""Files of flights in every format that is imported, and what an import of them left in a spool."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.importer import FileResult, Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.testing import EPOCH_US

Row = dict[str, Any]
MAPPING = FileMapping("id", "at")


def made_rows(first: int, last: int, *, step_us: int = 1_000_000) -> list[Row]:
    """Return rows with texts for ids, one a second."""
    return [{"id": f"flight-{number}", "at": EPOCH_US + number * step_us} for number in range(first, last)]


def as_jsonl(rows: Sequence[Row]) -> bytes:
    """Return rows as JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def as_csv(rows: Sequence[Row]) -> bytes:
    """Return rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: Sequence[Row]) -> bytes:
    """Return rows as a Parquet file of several row groups."""
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), file, row_group_size=100)
    return file.getvalue()


def as_avro(rows: Sequence[Row], codec: str = "deflate") -> bytes:
    """Return rows as an Avro object container file of several blocks."""
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": "long"}]
    file = io.BytesIO()
    fastavro.writer(file, {"type": "record", "name": "Flight", "fields": fields}, rows, codec, sync_interval=2_000)
    return file.getvalue()


def as_gzip(data: bytes) -> bytes:
    """Return data compressed, the same at every time."""
    return gzip.compress(data, mtime=0)


def import_files(spool: Path, plan: ImportPlan, *places: Path) -> list[FileResult]:
    """Import files into a spool, as a replay."""
    output = SpoolOutput(spool, is_replay=True)
    output.check()
    importer = Importer(plan, output)
    return [importer.import_file(str(place), Event()) for place in places]


def look_at(spool: Path) -> dict[str, tuple[bytes, int]]:
    """Return bytes and time of change of each segment, by its place in the spool."""
    return {str(path.relative_to(spool)): (path.read_bytes(), path.stat().st_mtime_ns) for path in spool.rglob("*.seg")}
