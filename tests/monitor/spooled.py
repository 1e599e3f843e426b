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

from hopwatch.monitor.kernel.window import Terms
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.rules import StreamRules
from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import WINDOW_MS

START_MS: Final = 1_767_225_600_000
START_US: Final = START_MS * 1_000
"""The window that tests look at, 2026-01-01T00:00:00Z, in µs."""
TERMS: Final = Terms(
    transit_us=150_000_000, settle_us=30_000_000, amend_for_us=3_600_000_000, max_age_us=86_400_000_000
)
RULES: Final = {"orders": StreamRules(Pathway.parse("a -> b"), TERMS)}

_UNCHECKED: Final = fastavro.parse_schema(envelope.SCHEMA)


def at(seconds: float) -> int:
    """Return the moment so many seconds after the window's start, µs since 1970."""
    return START_US + round(seconds * 1e6)


def minute(number: int) -> int:
    """Return the start of the window so many minutes after the first, ms since 1970."""
    return START_MS + number * WINDOW_MS


def ids(*numbers: int) -> bytes:
    """Return message ids as they are packed on the wire."""
    return b"".join(id_bytes(number) for number in numbers)


def lags(*lags_us: int) -> bytes:
    """Return lags as they are packed on the wire."""
    return np.array(lags_us, "<i8").tobytes()


def observed(numbers: Sequence[int], node: str = "a", **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
    """Return a batch in which the numbered messages passed the node, in after 1 ms and out after 2 ms."""
    given: dict[str, Any] = {
        "message_ids": ids(*numbers),
        "count": len(numbers),
        "lag_in_us": lags(*[1_000] * len(numbers)),
        "lag_out_us": lags(*[2_000] * len(numbers)),
    }
    return said(BatchKind.OBSERVATIONS, node, **(given | fields))


def said(kind: BatchKind, node: str = "a", **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
    """Return a batch of any kind: number 0 of a probe that started 10 s before the window, complete up to 65 s."""
    given: dict[str, Any] = {
        "probe": f"probe-of-{node}",
        "epoch_us": at(-10),
        "seq": 0,
        "kind": kind,
        "stream": "orders",
        "node": node,
        "window_start_ms": START_MS,
        "sent_at_us": at(65),
        "complete_through_us": at(65),
    }
    return Batch(**(given | fields))


def unchecked(batch: Batch) -> bytes:
    """Return the record of a batch that breaks the wire's limits, which no probe would send."""
    body = io.BytesIO()
    fields = {name: getattr(batch, name) for name in Batch.__dataclass_fields__}
    drops = [
        {"window_start_ms": drop.window_start_ms, "count": drop.count, "cause": drop.cause} for drop in batch.drops
    ]
    names = {"kind": batch.kind.name, "id_kind": batch.id_kind.name}
    fastavro.schemaless_writer(body, _UNCHECKED, fields | names | {"drops": drops, "metrics": []})
    return bytes([envelope.MARKER]) + envelope.FINGERPRINT + body.getvalue()


def framed(said_or_bytes: Batch | bytes) -> bytes:
    """Return a batch, or the bytes of a record, as a segment holds it."""
    return segment.encode_frame(said_or_bytes if isinstance(said_or_bytes, bytes) else envelope.encode(said_or_bytes))


def write_segment(path: Path, *records: Batch | bytes, arrival_us: int = START_US + 70_000_000) -> Path:
    """Write a segment that arrived then."""
    return write_file(path, segment.MAGIC + b"".join(framed(record) for record in records), arrival_us)


def write_file(path: Path, data: bytes, arrival_us: int = START_US + 70_000_000) -> Path:
    """Write a file that arrived then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(arrival_us * 1_000, arrival_us * 1_000))
    return path
