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


def build_container(schema: Row, packed: bytes, codec: str) -> bytes:
    """Return an Avro object container file of one block, which says that it has one record, as it is given."""

    def long(number: int) -> bytes:
        zigzag, found = number << 1, bytearray()
        while zigzag > 0x7F:
            found.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        return bytes([*found, zigzag])

    told = {"avro.schema": json.dumps(schema), "avro.codec": codec}
    texts = b"".join(long(len(text)) + text.encode() for item in told.items() for text in item)
    sync = bytes(range(16))
    return b"Obj\x01" + long(len(told)) + texts + long(0) + sync + long(1) + long(len(packed)) + packed + sync


def as_gzip(data: bytes) -> bytes:
    """Return data compressed, the same at every time."""
    return gzip.compress(data, mtime=0)


def import_files(spool: Path, plan: ImportPlan, *places: Path) -> list[FileResult]:
    """Import files into a spool, as a replay, to the end."""
    output = SpoolOutput(spool, is_replay=True)
    output.check()
    importer = Importer(plan, output)
    results = [importer.import_file(str(place), Event()) for place in places]
    importer.finish()
    return results


def look_at(spool: Path) -> dict[str, tuple[bytes, int]]:
    """Return bytes and time of change of each segment, by its place in the spool."""
    return {str(path.relative_to(spool)): (path.read_bytes(), path.stat().st_mtime_ns) for path in spool.rglob("*.seg")}
