"""The rows of the job: their kinds, and their columns as Spark and Arrow see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa

from hopwatch.monitor.payloads import join_payloads, pack_moment
from hopwatch.monitor.row_kinds import CLAIMS_ROW, CLOCK_ROW, FACTS_ROW

DECODED_COLUMNS: Final = "kind string, stream string, window_start_ms long, shard int, clock timestamp, payload binary"
"""Columns of the decoder's rows."""

TALLIED_SCHEMA: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("window_start_ms", pa.int64()),
        ("shard", pa.int32()),
        ("watermark_us", pa.int64()),
        ("last_first_sighting_us", pa.int64()),
        ("payload", pa.binary()),
    ]
)
"""Columns of the job's output: tallies of window shards, and all rows that need no state."""

_SPARK_TYPES: Final = {pa.string(): "string", pa.int64(): "long", pa.int32(): "int", pa.binary(): "binary"}
TALLIED_COLUMNS: Final = ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in TALLIED_SCHEMA)
"""The same columns in the words of Spark."""

KEY_COLUMNS: Final = ("kind", "stream", "window_start_ms", "shard")
ROWS_PER_BATCH: Final = 256
JOINED_KINDS: Final = frozenset({CLAIMS_ROW, FACTS_ROW})
"""Kinds of rows of which there may be one a segment."""
JOINED_BYTES: Final = 1024 * 1024
_ARROW: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("stream", pa.string()),
        ("window_start_ms", pa.int64()),
        ("shard", pa.int32()),
        ("clock", pa.timestamp("us", tz="UTC")),
        ("payload", pa.binary()),
    ]
)

Batches = Iterator[pa.RecordBatch]


class JobRow(NamedTuple):
    """One row of the job. Claims go to the window shard that the three middle fields name, all else passes by.

    ``clock_us`` is null but in clock rows: Spark drops rows below its watermark, and keeps those without a value.
    """

    kind: str
    stream: str
    window_start_ms: int
    shard: int
    clock_us: int | None
    payload: bytes


def build_clock_row(clock_us: int) -> JobRow:
    """Return the row that moves the watermark; the sink reads the time in its payload, a batch before the watermark."""
    return JobRow(CLOCK_ROW, "", 0, 0, clock_us, pack_moment(clock_us))


def join_rows(rows: Iterable[JobRow]) -> Iterator[JobRow]:
    """Yield claims and facts with the payloads of a key joined, up to JOINED_BYTES in a row; other rows as they are.

    A segment has a row of facts, with as little as one batch of one message: it would take Spark longer to pass the row
    on than it takes to read the batch.
    """
    parts: dict[tuple[str, str, int, int, int | None], bytearray] = {}
    for row in rows:
        if row.kind not in JOINED_KINDS:
            yield row
            continue
        key = row[:-1]
        joined = parts.setdefault(key, bytearray())
        joined += join_payloads([row.payload])
        if len(joined) >= JOINED_BYTES:
            yield JobRow(*key, bytes(parts.pop(key)))
    for key, joined in parts.items():
        yield JobRow(*key, bytes(joined))


def to_arrow(rows: Iterable[JobRow]) -> Batches:
    """Yield rows as Arrow batches, those of a key joined."""
    left = join_rows(rows)
    while chunk := list(islice(left, ROWS_PER_BATCH)):
        columns = [list(column) for column in zip(*chunk, strict=True)]
        yield pa.record_batch(
            [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW
        )
