"""Tap for JSON lines: follows a file or reads a pipe, and stamps every line that holds an id and an event time."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import Final, Protocol

from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.documents import DocumentReader
from hopwatch.probes.taps.followed_file import FollowedFile
from hopwatch.probes.taps.lines import LineCutter
from hopwatch.probes.taps.marked_file import Position
from hopwatch.probes.taps.stamper import TapStamper
from hopwatch.probes.taps.state import StateFile
from hopwatch.probes.taps.tally import TallyReporter
from hopwatch.probes.values import SkipReason

READ_BYTES: Final = 1024 * 1024
POLL_S: Final = 0.2
"""Interval of reads from an idle source."""
RETRY_S: Final = 1.0
"""Interval of tries to settle a sink that refuses records."""
FULL_PIPE_BYTES: Final = 32 * 1024
"""Bytes in a full pipe, at least: half of its capacity, as small writes leave gaps."""


class LineSource(Protocol):
    """Source of lines, such as :class:`hopwatch.probes.taps.followed_file.FollowedFile`."""

    has_ended: bool

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes; none at the present end."""

    def position(self, unread_bytes: int) -> Position | None:
        """Return the position ``unread_bytes`` before the end of the last read; None if the source has no positions."""

    @property
    def is_behind(self) -> bool:
        """Return whether there may be more to read although the last read was short."""

    @property
    def is_over(self) -> bool:
        """Return whether the source has ended for good."""


class Pipe:
    """Pipe as a source, such as standard input: it is read once, until its end."""

    def __init__(self, file: int, wait_s: float = POLL_S) -> None:
        """Set the file descriptor."""
        self._file, self._wait_s = file, wait_s
        self.has_ended = self.is_over = self._was_full = False

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes, waiting up to ``wait_s``; at the end of the pipe the last line is complete."""
        is_ready = self._is_ready(self._wait_s)
        data = os.read(self._file, most_bytes) if is_ready else b""
        self.has_ended = self.is_over = is_ready and not data
        self._was_full = len(data) >= FULL_PIPE_BYTES
        return data

    def position(self, unread_bytes: int) -> Position | None:  # noqa: ARG002 - a pipe cannot be read again
        """Return None: a pipe has no positions."""
        return None

    @property
    def is_behind(self) -> bool:
        """Return whether more may come at once: from the pipe, or from a writer that was blocked by the full pipe."""
        return not self.is_over and (self._was_full or self._is_ready(0))

    def _is_ready(self, wait_s: float) -> bool:
        return bool(select.select([self._file], [], [], wait_s)[0])


class JsonLinesTap:
    """Tap that reads, stamps, makes durable and saves the position, in this order, so that no line is skipped."""

    def __init__(
        self,
        source: LineSource,
        reader: DocumentReader,
        stamping: TapStamper,
        around: RunContext,
        state: StateFile | None = None,
    ) -> None:
        """Combine the parts."""
        self._source, self._reader, self._stamping, self._state = source, reader, stamping, state
        self._context = around
        self._cutter = LineCutter()
        self._oversized = 0
        self._reporter = TallyReporter(stamping.tally, around)

    def run(self) -> None:
        """Run until the source ends or the tap is stopped; then make the stamps durable.

        Raises:
            TapSourceError: the position cannot be saved, or the sink has lost stamps.
        """
        stop = self._context.stop
        # Save the start before the first read, so that the first crash skips nothing either.
        self.settle()
        while not stop.is_set() and not self._source.is_over:
            if not self.step():
                stop.wait(POLL_S)
            if self._stamping.is_due:
                while not self.settle() and not stop.wait(RETRY_S):
                    pass
        self.settle()

    def step(self) -> bool:
        """Read and stamp once; return whether there was anything to read."""
        moment_us = self._context.wall_us()
        data = self._source.read(READ_BYTES)
        lines = self._cutter.feed(data)
        if self._source.has_ended:
            lines += self._cutter.end()
        self._stamping.stamp_messages(map(self._reader.read, lines))
        if self._cutter.oversized > self._oversized:
            self._stamping.count_bad(SkipReason.OVERSIZED, self._cutter.oversized - self._oversized)
            self._oversized = self._cutter.oversized
        if len(data) < READ_BYTES and not self._source.is_behind:
            # A short read has reached the present end, unless the source knows of more.
            self._stamping.probe.caught_up(moment_us)
        self._reporter.report_if_due()
        return bool(data)

    def settle(self) -> bool:
        """Make the stamps durable, then save the position; return whether both are done."""
        position = self._source.position(self._cutter.waiting_bytes)
        if not self._stamping.settle():
            return False
        if self._state is not None and position is not None:
            self._state.save(position)
        return True


def open_followed_file(path: Path, around: RunContext, state: StateFile | None, *, from_start: bool) -> FollowedFile:
    """Open the file as a source, at its saved position.

    Raises:
        TapError: the file or its state cannot be read.
    """
    position = state.load() if state is not None else None
    return FollowedFile(path, around, position=position, from_start=from_start)
