"""What may happen to segments after they were written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from probes.contract.segment import MAGIC, frame
from tests.e2e.ending.cases import Case, End
from tests.e2e.ending.process import RUN_S

_HEAD: Final = 8
"""Bytes before each record: its length and its sum."""
_FINGERPRINT_AT: Final = 1


def damage(spool: Path, case: Case) -> None:
    """Damage a segment of the replica that comes to the end of a case; when it came stays as it is."""
    segments = sorted(spool.glob(f"*{case.node}-1*/*.seg"))
    segment = segments[min(len(segments) - 1, int(case.moment_s / RUN_S * len(segments)))]
    told = segment.stat()
    segment.write_bytes(_DAMAGES[case.end](segment.read_bytes()))
    os.utime(segment, ns=(told.st_atime_ns, told.st_mtime_ns))


def _flipped(data: bytes) -> bytes:
    place = len(MAGIC) + _HEAD + (len(data) - len(MAGIC) - _HEAD) // 2
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def _of_another_schema(data: bytes) -> bytes:
    """Return a segment whose last record is of a schema that nobody knows, and whole."""
    place = len(MAGIC)
    while place + _HEAD + (length := int.from_bytes(data[place : place + 4], "little")) < len(data):
        place += _HEAD + length
    record = bytearray(data[place + _HEAD :])
    record[_FINGERPRINT_AT] ^= 0xFF
    return data[:place] + frame(bytes(record))


_DAMAGES: Final[dict[End, Callable[[bytes], bytes]]] = {
    End.FLIP: _flipped,
    End.EMPTY: lambda _: b"",
    End.CUT: lambda data: data[:40],
    End.SCHEMA: _of_another_schema,
}
