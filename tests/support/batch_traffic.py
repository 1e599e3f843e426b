"""Segments of ten micro-batches with losses, drops, duplicates, late and broken records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hopwatch.probes.contract.batch import Batch, BatchKind
from tests.support.spool import (
    at_us,
    make_batch,
    observation_batch,
    window_ms,
    write_segment,
)


def traffic(spool: Path) -> list[list[Path]]:
    """Write ten micro-batches over five minutes: losses, drops, duplicates, late and broken ones, a pulse."""
    batches: list[list[Path]] = []
    for n in range(10):
        start_ms, now_us = window_ms(n // 2), at_us(30 * n + 35)
        told: dict[str, Any] = {
            "seq": n,
            "window_start_ms": start_ms,
            "sent_at_us": now_us,
            "complete_through_us": now_us,
        }
        numbers = range(100 * n, 100 * n + 20)
        records: list[Batch | bytes] = [
            observation_batch(numbers, **told),
            observation_batch([number for number in numbers if number % 7], "b", **told),
            make_batch(BatchKind.HEARTBEAT, "monitor", stream="_hopwatch", seq=n, sent_at_us=now_us),
        ]
        records += (
            [observation_batch([1], stream="nobody-knows-it")]
            if n == 3
            else [observation_batch(numbers, **told)]
            if n == 5
            else []
        )
        batches.append([write_segment(spool / f"{n}.seg", *records, arrival_us=now_us)])
    end_us = at_us(30 * 10 + 400)
    byes = [make_batch(BatchKind.BYE, node, seq=10, complete_through_us=end_us) for node in "ab"]
    recovered = observation_batch([7], "b", seq=11)
    batches.append([write_segment(spool / "10.seg", *byes, arrival_us=end_us)])
    batches.append([write_segment(spool / "11.seg", recovered, arrival_us=end_us + 1)])
    return [*batches, []]
