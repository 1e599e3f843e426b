"""Spool segments: a file of framed records, each with its length and its CRC-32C."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

import google_crc32c

from hopwatch.probes.contract.limits import MAX_RECORD_BYTES

SCHEME: Final = "spool:"
"""What the URL of a spool begins with; its folder follows."""
MAGIC: Final = b"HWSP1\n"
SEGMENT_SUFFIX: Final = ".seg"
OPEN_SUFFIX: Final = ".open"
MAX_SEGMENT_BYTES: Final = 8 * 1024 * 1024
MAX_FOLDER_CHARS: Final = 120
"""So much of an instance's name its folder has; what is longer is cut off, and told apart by a hash."""
FORWARDED_RECORDS: Final = "http-records"
"""The name of an instance whose folder holds records that it passes on, of other instances."""

_FRAME: Final = struct.Struct("<II")
FRAME_BYTES: Final = _FRAME.size


class Frame(NamedTuple):
    """One record's place in a segment, bytes ``start`` to ``end``; ``fault`` is empty, or why it cannot be read."""

    start: int
    end: int
    fault: str = ""
    message: str = ""


def folder_name(instance: str) -> str:
    """Return a folder's name for an instance: readable, safe in a path and a URI, and no two alike.

    It never starts with a dot or an underscore, because many readers of files take such folders for hidden ones.
    """
    safe = re.sub(r"^[._]|[^A-Za-z0-9._-]", "-", instance)[:MAX_FOLDER_CHARS]
    if safe and safe == instance:
        return safe
    return f"{safe}-{blake2b(instance.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def encode_frame(record: bytes) -> bytes:
    """Return ``record`` as a segment holds it: uint32 LE length, uint32 LE CRC-32C, the bytes."""
    return _FRAME.pack(len(record), google_crc32c.value(record)) + record


def read_frames(data: bytes) -> Iterator[Frame]:
    """Yield a frame for each record of a whole segment, broken ones with their fault; never raises.

    Faults: ``foreign_file`` (no magic: nothing of the file is read), ``bad_crc``, ``oversized`` (over 4 MiB: skipped),
    ``torn_tail`` (the file ends inside a record: reading stops at the last whole one).
    """
    if data[: len(MAGIC)] != MAGIC:
        yield Frame(0, len(data), "foreign_file", f"a segment starts with {MAGIC!r}, got {data[: len(MAGIC)]!r}")
        return
    position, size = len(MAGIC), len(data)
    while position < size:
        start = position + FRAME_BYTES
        if start > size:
            left = size - position
            yield Frame(position, size, "torn_tail", f"{left} bytes are left where a frame needs {FRAME_BYTES}")
            return
        length, crc = _FRAME.unpack_from(data, position)
        position = start + length
        if position > size:
            yield Frame(start, size, "torn_tail", f"a record of {length} bytes starts where {size - start} are left")
            return
        if length > MAX_RECORD_BYTES:
            yield Frame(start, position, "oversized", f"a record has at most {MAX_RECORD_BYTES} bytes, got {length}")
        elif (got := google_crc32c.value(data[start:position])) != crc:
            yield Frame(start, position, "bad_crc", f"CRC-32C 0x{crc:08x} was written, 0x{got:08x} was read")
        else:
            yield Frame(start, position)
