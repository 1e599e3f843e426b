"""Damage to segments after they were written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hopwatch.probes.contract.segment import MAGIC, encode_frame
from tests.e2e.ending.cases import Case, End

_HEAD: Final = 8
"""Bytes before each record: its length and its sum."""
_FINGERPRINT_AT: Final = 1


def damage(spool: Path, case: Case) -> None:
    """Damage the last segment of the replica that comes to the end of a case, or all of them; when they came stays."""
    segments = sorted(spool.glob(f"*{case.node}-1*/*.seg"))
    for segment in segments if case.end is End.SCHEMA else segments[-1:]:
        told = segment.stat()
        segment.write_bytes(_DAMAGES[case.end](segment.read_bytes()))
        os.utime(segment, ns=(told.st_atime_ns, told.st_mtime_ns))


def _flipped(data: bytes) -> bytes:
    place = len(MAGIC) + _HEAD + int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little") // 2
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def _of_another_schema(data: bytes) -> bytes:
    """Return a segment whose records are whole, and of a schema that nobody knows."""
    damaged, place = MAGIC, len(MAGIC)
    while place < len(data):
        end = place + _HEAD + int.from_bytes(data[place : place + 4], "little")
        record = bytearray(data[place + _HEAD : end])
        record[_FINGERPRINT_AT] ^= 0xFF
        damaged, place = damaged + encode_frame(bytes(record)), end
    return damaged


_DAMAGES: Final[dict[End, Callable[[bytes], bytes]]] = {
    End.FLIP: _flipped,
    End.EMPTY: lambda _: b"",
    End.CUT: lambda data: data[:40],
    End.SCHEMA: _of_another_schema,
}
