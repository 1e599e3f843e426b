"""Tests of spool segments: whole ones are walked record by record, and each fault says where it is and what it is."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from hopwatch.probes.contract.segment import MAGIC, Frame, encode_frame, read_frames

GOOD = encode_frame(b"good")
OVERSIZED = bytes(4 * 1024 * 1024 + 1)


def test_a_frame_is_length_crc_and_record() -> None:
    """Both numbers are uint32 LE; the check value is that of CRC-32C's own specification."""
    assert encode_frame(b"123456789") == struct.pack("<II", 9, 0xE3069283) + b"123456789"


def test_a_segment_of_the_magic_alone_holds_nothing() -> None:
    """A segment of the magic alone is whole and empty."""
    assert list(read_frames(MAGIC)) == []


def test_records_stand_behind_their_frames() -> None:
    """Positions are those in the file; an empty record is one too."""
    assert list(read_frames(MAGIC + GOOD + encode_frame(b"") + GOOD)) == [Frame(14, 18), Frame(26, 26), Frame(34, 38)]


def _crc_of(record: bytes, crc: int) -> bytes:
    return struct.pack("<II", len(record), crc) + record


FAULTS: dict[str, tuple[bytes, list[Frame]]] = {
    "an empty file": (b"", [Frame(0, 0, "foreign_file", "a segment starts with b'HWSP1\\n', got b''")]),
    "a cut magic": (MAGIC[:5], [Frame(0, 5, "foreign_file", "a segment starts with b'HWSP1\\n', got b'HWSP1'")]),
    "another file": (
        b"timestamp,value\n",
        [Frame(0, 16, "foreign_file", "a segment starts with b'HWSP1\\n', got b'timest'")],
    ),
    "another version": (
        b"HWSP2\n" + GOOD,
        [Frame(0, 18, "foreign_file", "a segment starts with b'HWSP1\\n', got b'HWSP2\\n'")],
    ),
    "a bad CRC between good records": (
        MAGIC + GOOD + _crc_of(b"evil", 0) + GOOD,
        [
            Frame(14, 18),
            Frame(26, 30, "bad_crc", f"CRC-32C 0x00000000 was written, 0x{google_crc32c.value(b'evil'):08x} was read"),
            Frame(38, 42),
        ],
    ),
    "an oversized record between good ones": (
        MAGIC + GOOD + encode_frame(OVERSIZED) + GOOD,
        [
            Frame(14, 18),
            Frame(26, 4_194_331, "oversized", "a record has at most 4194304 bytes, got 4194305"),
            Frame(4_194_339, 4_194_343),
        ],
    ),
    "an oversized length at the end": (
        MAGIC + GOOD + encode_frame(OVERSIZED)[:100],
        [Frame(14, 18), Frame(26, 118, "torn_tail", "a record of 4194305 bytes starts where 92 are left")],
    ),
    "torn in the frame": (
        MAGIC + GOOD + GOOD[:7],
        [Frame(14, 18), Frame(18, 25, "torn_tail", "7 bytes are left where a frame needs 8")],
    ),
    "torn behind the frame": (
        MAGIC + GOOD + GOOD[:8],
        [Frame(14, 18), Frame(26, 26, "torn_tail", "a record of 4 bytes starts where 0 are left")],
    ),
    "torn in the record": (
        MAGIC + GOOD + GOOD[:11],
        [Frame(14, 18), Frame(26, 29, "torn_tail", "a record of 4 bytes starts where 3 are left")],
    ),
    "a length gone wild": (
        MAGIC + b"\xff" * 8 + GOOD,
        [Frame(14, 26, "torn_tail", "a record of 4294967295 bytes starts where 12 are left")],
    ),
}


@pytest.mark.parametrize(("data", "frames"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_and_the_good_records_around_it_are_read(data: bytes, frames: list[Frame]) -> None:
    """Each fault has its place, its short name and a sentence; what is behind a torn tail is not guessed at."""
    assert list(read_frames(data)) == frames


def test_a_record_of_4_mib_is_whole() -> None:
    """The limit itself is allowed."""
    assert list(read_frames(MAGIC + encode_frame(OVERSIZED[:-1]))) == [Frame(14, 4_194_318)]
