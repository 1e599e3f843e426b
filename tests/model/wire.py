"""A spool directory, slowly: every record of every segment with its arrival time; and a writer of such directories."""

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import google_crc32c

from tests.model.record import Batch, RecordError, decode

MAGIC = b"HWSP1\n"
MOST_BYTES = 4 * 1024 * 1024
_HEADER = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Received:
    """A batch, when the transport took it (µs since 1970), and where it stood: (path below the spool, position)."""

    batch: Batch
    arrival_us: int
    place: tuple[str, int]

    @property
    def window_us(self) -> int:
        """Start of the batch's window, µs since 1970."""
        return self.batch.window_start_ms * 1000

    @property
    def folder(self) -> str:
        """The name of the folder that its segment is in."""
        return PurePosixPath(self.place[0]).parent.name


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that could not be read, why, when it came, and where it stood."""

    reason: str
    arrival_us: int
    place: tuple[str, int]

    @property
    def folder(self) -> str:
        """The name of the folder that its segment is in."""
        return PurePosixPath(self.place[0]).parent.name


@dataclass(frozen=True, slots=True)
class Spool:
    """All that a spool directory holds, by path and position."""

    received: tuple[Received, ...]
    set_aside: tuple[SetAside, ...]
    folders: tuple[tuple[str, int], ...]
    """The name of each folder, and when it was changed last, µs since 1970."""


def read_spool(directory: Path) -> Spool:
    """Read every whole segment below the directory; whatever a file holds, nothing is raised."""
    received: list[Received] = []
    set_aside: list[SetAside] = []
    for path in sorted(directory.rglob("*.seg")):
        name = path.relative_to(directory).as_posix()
        arrival_us = path.stat().st_mtime_ns // 1000
        for position, found in _records(path.read_bytes()):
            try:
                batch = decode(_whole_record(found))
                received.append(Received(batch, arrival_us, (name, position)))
            except RecordError as error:
                set_aside.append(SetAside(error.reason, arrival_us, (name, position)))
    folders = ((path.name, path.stat().st_mtime_ns // 1000) for path in sorted(directory.rglob("*")) if path.is_dir())
    return Spool(tuple(received), tuple(set_aside), tuple(folders))


def _records(data: bytes) -> Iterable[tuple[int, bytes | RecordError]]:
    """Give (position, record or what is wrong) one after the other."""
    if not data.startswith(MAGIC):
        yield 0, RecordError("foreign_file", f"a segment starts with {MAGIC!r}, this file with {data[:6]!r}")
        return
    at = len(MAGIC)
    while at < len(data):
        start = at + _HEADER.size
        if start > len(data):
            yield (
                at,
                RecordError("torn_tail", f"a record's length and checksum take 8 bytes, {len(data) - at} are there"),
            )
            return
        length, crc = _HEADER.unpack(data[at:start])
        if start + length > len(data):
            yield at, RecordError("torn_tail", f"{length} bytes were announced and {len(data) - start} are there")
            return
        record = data[start : start + length]
        if length > MOST_BYTES:
            yield at, RecordError("oversized", f"a record has at most {MOST_BYTES} bytes, this one {length}")
        elif google_crc32c.value(record) != crc:
            yield at, RecordError("bad_crc", f"the record at {at} has another CRC-32C than {crc:#010x}")
        else:
            yield at, record
        at = start + length


def _whole_record(found: bytes | RecordError) -> bytes:
    if isinstance(found, RecordError):
        raise found
    return found


def frame(record: bytes) -> bytes:
    """Give length, CRC-32C and record, as a segment holds them."""
    return _HEADER.pack(len(record), google_crc32c.value(record)) + record


def write_segment(path: Path, data: bytes, arrival_us: int, *, rest_ns: int = 0) -> None:
    """Write a file (magic and all) that arrived at that moment: its modification time, and up to 999 ns more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    at_ns = arrival_us * 1000 + rest_ns
    os.utime(path, ns=(at_ns, at_ns))
