"""Segments made to measure: batches with what a test leaves open filled in, framed into files with an arrival time.

All of it plays on the first of January 2026; ``at(70)`` is the moment 70 s after its first window has begun.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import fastavro
import numpy as np

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import WINDOW_MS

START_MS: Final = 1_767_225_600_000
START_US: Final = START_MS * 1_000
"""The window that tests look at, 2026-01-01T00:00:00Z, in µs."""
WINDOW_POLICY: Final = WindowPolicy(
    transit_us=150_000_000, settle_us=30_000_000, amend_for_us=3_600_000_000, max_age_us=86_400_000_000
)
STREAM_CONFIGS: Final = {"orders": StreamConfig(Pathway.parse("a -> b"), WINDOW_POLICY)}

_UNCHECKED: Final = fastavro.parse_schema(envelope.SCHEMA)


def at_us(seconds: float) -> int:
    """Return the moment so many seconds after the window's start, µs since 1970."""
    return START_US + round(seconds * 1e6)


def window_ms(number: int) -> int:
    """Return the start of the window so many minutes after the first, ms since 1970."""
    return START_MS + number * WINDOW_MS


def pack_ids(*numbers: int) -> bytes:
    """Return message ids as they are packed on the wire."""
    return b"".join(id_bytes(number) for number in numbers)


def pack_lags(*lags_us: int) -> bytes:
    """Return lags as they are packed on the wire."""
    return np.array(lags_us, "<i8").tobytes()


def observation_batch(numbers: Sequence[int], node: str = "a", **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
    """Return a batch in which the numbered messages passed the node, in after 1 ms and out after 2 ms."""
    given: dict[str, Any] = {
        "message_ids": pack_ids(*numbers),
        "count": len(numbers),
        "lag_in_us": pack_lags(*[1_000] * len(numbers)),
        "lag_out_us": pack_lags(*[2_000] * len(numbers)),
    }
    return make_batch(BatchKind.OBSERVATIONS, node, **(given | fields))


def make_batch(kind: BatchKind, node: str = "a", **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
    """Return a batch of any kind: number 0 of a probe that started 10 s before the window, complete up to 65 s."""
    given: dict[str, Any] = {
        "probe": f"probe-of-{node}",
        "epoch_us": at_us(-10),
        "seq": 0,
        "kind": kind,
        "stream": "orders",
        "node": node,
        "window_start_ms": START_MS,
        "sent_at_us": at_us(65),
        "complete_through_us": at_us(65),
    }
    return Batch(**(given | fields))


def encode_unchecked(batch: Batch) -> bytes:
    """Return the record of a batch that breaks the wire's limits, which no probe would send."""
    body = io.BytesIO()
    fields = {name: getattr(batch, name) for name in Batch.__dataclass_fields__}
    drops = [
        {"window_start_ms": drop.window_start_ms, "count": drop.count, "cause": drop.cause} for drop in batch.drops
    ]
    names = {"kind": batch.kind.name, "id_kind": batch.id_kind.name}
    fastavro.schemaless_writer(body, _UNCHECKED, fields | names | {"drops": drops, "metrics": []})
    return bytes([envelope.MARKER]) + envelope.FINGERPRINT + body.getvalue()


def frame_record(said_or_bytes: Batch | bytes) -> bytes:
    """Return a batch, or the bytes of a record, as a segment holds it."""
    return segment.encode_frame(said_or_bytes if isinstance(said_or_bytes, bytes) else envelope.encode(said_or_bytes))


def write_segment(path: Path, *records: Batch | bytes, arrival_us: int = START_US + 70_000_000) -> Path:
    """Write a segment that arrived then."""
    return write_file(path, segment.MAGIC + b"".join(frame_record(record) for record in records), arrival_us)


def write_file(path: Path, data: bytes, arrival_us: int = START_US + 70_000_000) -> Path:
    """Write a file that arrived then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(arrival_us * 1_000, arrival_us * 1_000))
    return path
