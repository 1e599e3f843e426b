"""A spool written batch by batch, for cases that a person computes: one segment a batch, seconds after 10:00 UTC."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.model.model import report
from tests.model.record import DEFERRED, NOT_STAMPED, PASSED, Body, encode
from tests.model.wire import MAGIC, frame, write_segment

TEN_S = 1_767_261_600
"""2026-01-01 10:00 UTC."""


@dataclass(frozen=True, slots=True)
class Row:
    """One observation: a small integer as id, lags in µs or None."""

    message_id: int
    lag_in_us: int | None = 1000
    lag_out_us: int | None = 2000
    outcome: int = PASSED


def passed(*message_ids: int) -> list[Row]:
    """Give observations with both stamps."""
    return [Row(message_id) for message_id in message_ids]


def came(*message_ids: int) -> list[Row]:
    """Give observations with the stamp `in` alone."""
    return [Row(message_id, lag_out_us=None) for message_id in message_ids]


def deferred(*message_ids: int) -> list[Row]:
    """Give observations of messages that are kept for a later try; :func:`waiting` says until when."""
    return [Row(message_id, lag_out_us=None, outcome=DEFERRED) for message_id in message_ids]


def waiting(*until_s: float) -> Body:
    """Give the fields of version 2 for a batch of deferred messages: each waits until so many seconds after 10:00."""
    none: Body = {"id_kind": "BYTES", "id_texts": b"", "id_text_ends": b"", "sequence": b"", "metrics": []}
    return none | {"until_us": struct.pack(f"<{len(until_s)}q", *map(_us, until_s))}


@dataclass(slots=True)
class SpoolWriter:
    """Writes batches of the stream `orders` into a spool directory."""

    spool_dir: Path
    table: dict[str, Any]
    written: int = field(default=0)

    def say(
        self,
        node: str,
        seq: int,
        at_s: float,
        rows: Sequence[Row] = (),
        *,
        through_s: float | None = None,
        minute: int = 0,
        other: Body | None = None,
    ) -> None:
        """Have a batch arrive; without rows it is a heartbeat; it completes all up to its arrival; `other` wins."""
        through_s = at_s if through_s is None else through_s
        body = {
            "probe": "p",
            "epoch_us": (TEN_S - 60) * 1_000_000,
            "seq": seq,
            "kind": "OBSERVATIONS" if rows else "HEARTBEAT",
            "stream": "orders",
            "node": node,
            "window_start_ms": (TEN_S + 60 * minute) * 1000,
            "sent_at_us": _us(at_s),
            "complete_through_us": _us(through_s),
            "drops": [],
            "labels": {},
        }
        self.record(encode(body | _packed(rows) | (other or {})), at_s)

    def record(self, record: bytes, at_s: float) -> None:
        """Have one record arrive in a segment of its own."""
        path = self.spool_dir / "by-hand" / f"{self.written:010d}.seg"
        write_segment(path, MAGIC + frame(record), _us(at_s))
        self.written += 1

    def drop(self, count: int, minute: int = 0) -> dict[str, Any]:
        """Give the field with which a batch tells of drops."""
        return {"drops": [{"window_start_ms": (TEN_S + 60 * minute) * 1000, "count": count, "cause": "queue full"}]}

    def report(self) -> dict[str, Any]:
        """Give what the model says of all that was written."""
        return report({"orders": self.table}, self.spool_dir)

    def window(self, minute: int = 0) -> Mapping[str, Any]:
        """Give the report's window of that minute, its nodes by name."""
        start = f"2026-01-01T10:{minute:02d}:00Z"
        (found,) = [one for one in self.report()["streams"][0]["windows"] if one["window_start"] == start]
        return {**found, "nodes": {node["node"]: node for node in found["nodes"]}}


def _us(at_s: float) -> int:
    return TEN_S * 1_000_000 + round(at_s * 1_000_000)


def _packed(rows: Sequence[Row]) -> Body:
    lags_in = [NOT_STAMPED if row.lag_in_us is None else row.lag_in_us for row in rows]
    lags_out = [NOT_STAMPED if row.lag_out_us is None else row.lag_out_us for row in rows]
    return {
        "count": len(rows),
        "message_ids": b"".join(row.message_id.to_bytes(16, "big") for row in rows),
        "event_offset_us": b"",
        "lag_in_us": struct.pack(f"<{len(rows)}q", *lags_in),
        "lag_out_us": struct.pack(f"<{len(rows)}q", *lags_out),
        "outcome": bytes(row.outcome for row in rows),
        "reason": b"",
        "reasons": [],
    }
