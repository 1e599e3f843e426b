"""Records that a segment of the transport still holds, as far as they can be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from probes.contract import envelope, segment


def content(path: Path) -> bytes:
    """Return the bytes of a segment; none of one that the monitor has deleted, as no window needs it any more."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def records(data: bytes) -> Iterator[envelope.RecordView]:
    """Yield the records of a segment that keep the limits of the wire; what cannot be read hides no other."""
    for frame in segment.walk(data):
        if frame.fault:
            continue
        with suppress(envelope.RecordError):
            view = envelope.read(data, frame.start, frame.end)
            envelope.check(data, view)
            yield view
