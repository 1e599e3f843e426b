"""The gate's spool as a link: segments of events, each deleted once all that it holds has been handed on.

So a killed ingest finds again what it held, and repeats what it had handed on of the same segments: each event comes
at least once.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Final

from hopwatch.demo.entrance import events
from hopwatch.demo.link import LinkError
from hopwatch.gate.codec import EnvelopeError
from hopwatch.gate.records import EnteredRecord
from hopwatch.probes.contract.segment import SEGMENT_SUFFIX, read_frames

TICK_S: Final = 0.05


class GateSpoolInlet:
    """The receiving end."""

    def __init__(self, spool: Path) -> None:
        """Take the folder that the gate writes to; it need not be there yet."""
        self._spool = spool
        self._received_count = 0
        self._open: deque[tuple[Path, int]] = deque()
        """Segments that were read, and how many events had been when each was."""
        self._read: set[Path] = set()

    def receive(self, timeout_s: float) -> list[bytes]:
        """Return the events of the oldest segment that is new; none when ``timeout_s`` passed.

        Raises:
            LinkError: the segment holds something else.
        """
        end_s = time.monotonic() + timeout_s
        while (segment := self._next()) is None:
            if time.monotonic() >= end_s:
                return []
            time.sleep(min(TICK_S, max(0.0, end_s - time.monotonic())))
        payloads = _read_events(segment)
        self._received_count += len(payloads)
        self._read.add(segment)
        self._open.append((segment, self._received_count))
        return payloads

    def done(self, count: int) -> None:
        """Delete the segments whose events are all among the first ``count`` that were received."""
        while self._open and self._open[0][1] <= count:
            segment, _ = self._open.popleft()
            segment.unlink()
            self._read.remove(segment)

    def has_ended(self) -> bool:
        """Return whether all segments were read."""
        return self._next() is None

    def close(self) -> None:
        """Do nothing: a segment that is not done with stays."""

    def _next(self) -> Path | None:
        there = self._spool.glob(f"*/*{SEGMENT_SUFFIX}")
        return min((segment for segment in there if segment not in self._read), default=None)


def _read_events(segment: Path) -> list[bytes]:
    data = segment.read_bytes()
    payloads = []
    for frame in read_frames(data):
        if frame.fault:
            raise LinkError(f"the segment {segment} of the gate cannot be read: {frame.message}")
        try:
            event = EnteredRecord.decode(data[frame.start : frame.end])
        except EnvelopeError as error:
            raise LinkError(f"the segment {segment} holds what is no event of the gate: {error}") from None
        payloads.append(events.pack_event(event.event_id, event.event_us, event.event))
    return payloads
