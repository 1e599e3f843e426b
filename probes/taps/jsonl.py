"""The tap of JSON lines: follows a file or reads a pipe, and stamps every line that holds an id and an event time."""

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
"""How often a source that had nothing is looked at again."""
RETRY_S: Final = 1.0
"""How often a sink that does not take what was stamped is tried again."""
FULL_PIPE_BYTES: Final = 32 * 1024
"""A pipe that is full holds at least so much, half of what it is made for: small writes leave gaps in it."""


class LineSource(Protocol):
    """Where lines come from; as :class:`probes.taps.follow.FollowedFile` is."""

    has_ended: bool

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes; none when all that is there was read."""

    def position(self, unread_bytes: int) -> Position | None:
        """Return the place so many bytes before the last one that was read; None where there is none to keep."""

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read though the last read found less than it asked for."""

    @property
    def is_over(self) -> bool:
        """Whether nothing will ever come again."""


class Pipe:
    """Standard input, or what stands for it: read until its end, and never twice."""

    def __init__(self, file: int, wait_s: float = POLL_S) -> None:
        """Take the file descriptor."""
        self._file, self._wait_s = file, wait_s
        self.has_ended = self.is_over = self._was_full = False

    def read(self, most_bytes: int) -> bytes:
        """Return what has come, waiting a little for it; the end makes what waits a line."""
        is_ready = self._is_ready(self._wait_s)
        data = os.read(self._file, most_bytes) if is_ready else b""
        self.has_ended = self.is_over = is_ready and not data
        self._was_full = len(data) >= FULL_PIPE_BYTES
        return data

    def position(self, unread_bytes: int) -> Position | None:  # noqa: ARG002 - nobody can go back in a pipe
        """Return nothing."""
        return None

    @property
    def is_behind(self) -> bool:
        """Whether something waits: in the pipe, or with a writer that waited for room in it and may not go on yet."""
        return not self.is_over and (self._was_full or self._is_ready(0))

    def _is_ready(self, wait_s: float) -> bool:
        return bool(select.select([self._file], [], [], wait_s)[0])


class JsonLinesTap:
    """Reads, stamps, makes durable, keeps the position: in this order, so that nothing is skipped."""

    def __init__(
        self,
        source: LineSource,
        reader: DocumentReader,
        stamping: TapStamper,
        around: RunContext,
        state: StateFile | None = None,
    ) -> None:
        """Put the parts together."""
        self._source, self._reader, self._stamping, self._state = source, reader, stamping, state
        self._context = around
        self._cutter = LineCutter()
        self._oversized = 0
        self._reporter = TallyReporter(stamping.tally, around)

    def run(self) -> None:
        """Go on until the source is over or the tap is to stop; then make durable what was stamped.

        Raises:
            TapSourceError: the position cannot be kept, or the sink lost what was stamped.
        """
        stop = self._context.stop
        # The place to begin at is kept before anything is read, so that the first crash skips nothing either.
        self.settle()
        while not stop.is_set() and not self._source.is_over:
            if not self.step():
                stop.wait(POLL_S)
            if self._stamping.is_due:
                while not self.settle() and not stop.wait(RETRY_S):
                    pass
        self.settle()

    def step(self) -> bool:
        """Read and stamp once; whether anything had come."""
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
            # A read that found less than it asked for found all that was there, unless the source knows of more.
            self._stamping.probe.caught_up(moment_us)
        self._reporter.report_if_due()
        return bool(data)

    def settle(self) -> bool:
        """Make durable what was stamped, and keep the position then; whether that is done."""
        position = self._source.position(self._cutter.waiting_bytes)
        if not self._stamping.settle():
            return False
        if self._state is not None and position is not None:
            self._state.save(position)
        return True


def open_followed_file(path: Path, around: RunContext, state: StateFile | None, *, from_start: bool) -> FollowedFile:
    """Return the file as a source, at the position that its state holds.

    Raises:
        TapError: the file or its state cannot be read.
    """
    position = state.load() if state is not None else None
    return FollowedFile(path, around, position=position, from_start=from_start)
