"""Readable records of a segment of the transport."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from hopwatch.monitor import segment_file
from hopwatch.probes.contract import envelope, segment

MAX_BYTES: Final = 2**31
"""Size of a segment in memory at most."""


def read_segment(path: Path) -> bytes:
    """Return the bytes of a segment; none of what is no segment, or is gone, as no window needs it any more.

    What the monitor has landed of a topic may be larger than any segment of a spool.
    """
    return segment_file.read_segment_file(str(path), MAX_BYTES).data


def parse_records(data: bytes) -> Iterator[envelope.RecordView]:
    """Yield the records of a segment that keep the limits of the wire; what cannot be read hides no other."""
    for frame in segment.read_frames(data):
        if frame.fault:
            continue
        with suppress(envelope.RecordError):
            view = envelope.read_record(data, frame.start, frame.end)
            envelope.check_values(data, view)
            yield view
