"""A gate that publishes into a spool, and the records found there."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from hopwatch.gate.outlets import OutgoingRecord
from hopwatch.gate.outlets.spool import SpoolOutlet
from hopwatch.probes.contract.segment import read_frames

PATIENCE_S: Final = 120.0


def leaving(number: int, record: bytes = b"event") -> OutgoingRecord:
    """Return a record on its way."""
    return OutgoingRecord(number.to_bytes(16, "big"), number, number + 1, record)


def written(outlet: SpoolOutlet, *numbers: int) -> frozenset[bytes]:
    """Write records, and return the ids of those that were not."""
    told: list[frozenset[bytes]] = []
    done = threading.Event()

    def hear(failed: frozenset[bytes]) -> None:
        told.append(failed)
        done.set()

    outlet.write([leaving(number) for number in numbers], hear)
    assert done.wait(PATIENCE_S)
    return told[0]


def published(root: Path) -> list[bytes]:
    """Return all records that a reader sees."""
    found = []
    for segment in sorted(root.glob("*/*.seg")):
        data = segment.read_bytes()
        found += [data[one.start : one.end] for one in read_frames(data) if not one.fault]
    return found
