"""Spool segments: files of framed records, each with its length and its CRC-32C."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

import google_crc32c

from hopwatch.probes.contract.limits import MAX_RECORD_BYTES

SCHEME: Final = "spool:"
"""Scheme of a spool URL; its folder follows."""
MAGIC: Final = b"HWSP1\n"
SEGMENT_SUFFIX: Final = ".seg"
OPEN_SUFFIX: Final = ".open"
MAX_SEGMENT_BYTES: Final = 8 * 1024 * 1024
MAX_FOLDER_CHARS: Final = 120
"""Characters of an instance's name in its folder's name; a longer name is cut, and a hash keeps it unique."""
FORWARDED_RECORDS: Final = "http-records"
"""Name of an instance that forwards the records of other instances."""

_FRAME: Final = struct.Struct("<II")
FRAME_BYTES: Final = _FRAME.size


class Frame(NamedTuple):
    """Position of one record in a segment, bytes ``start`` to ``end``; ``fault`` is empty for a readable one."""

    start: int
    end: int
    fault: str = ""
    message: str = ""


def folder_name(instance: str) -> str:
    """Return the folder name of an instance: readable, safe in a path and a URI, and unique.

    It never starts with a dot or an underscore, because many file readers treat such folders as hidden.
    """
    safe = re.sub(r"^[._]|[^A-Za-z0-9._-]", "-", instance)[:MAX_FOLDER_CHARS]
    if safe and safe == instance:
        return safe
    return f"{safe}-{blake2b(instance.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def encode_frame(record: bytes) -> bytes:
    """Return ``record`` as a frame of a segment: uint32 LE length, uint32 LE CRC-32C, the bytes."""
    return _FRAME.pack(len(record), google_crc32c.value(record)) + record


def read_frames(data: bytes) -> Iterator[Frame]:
    """Yield a frame for each record of a segment, broken ones with their fault; never raise.

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
