"""Outputs of an import: segments of a spool under names that their content decides, or any other sink."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from hopwatch.probes.contract.limits import MONITOR_STREAM
from hopwatch.probes.contract.segment import (
    MAGIC,
    MAX_SEGMENT_BYTES,
    OPEN_SUFFIX,
    SCHEME,
    SEGMENT_SUFFIX,
    encode_frame,
    folder_name,
)
from hopwatch.probes.files.file_batches import TimedRecord
from hopwatch.probes.folder_sync import sync_folder
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.sinks import open_sink
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.startup import open_checked_sink

MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""Bytes of records of one file that wait for others of the same arrival."""
SETTLE_S: Final = 5.0


class RecordWriter(Protocol):
    """Writer of one instance's records."""

    def add(self, timed: TimedRecord) -> None:
        """Take a record."""

    def close(self) -> None:
        """Make all records durable and visible."""


class RecordOutput(Protocol):
    """Place for the records of many instances."""

    def check(self) -> None:
        """Check that it can be written."""

    def open_file(self, instance: ProbeInstance) -> RecordWriter:
        """Return the writer of a file's instance."""

    def write_numbered(self, instance: ProbeInstance, number: int, *records: TimedRecord) -> None:
        """Write records of an account, one as a rule, under a number; they arrive with the last of them."""

    def settle(self) -> None:
        """Make what was written durable."""


class SpoolOutput:
    """Spool whose segments have the same names, bytes and, in a replay, arrivals, whoever imports a file."""

    def __init__(self, root: Path, *, is_replay: bool) -> None:
        """Set the folder. In a replay a segment arrives when the file says that its observations were stamped."""
        self.root, self.is_replay = root, is_replay

    def check(self) -> None:
        """Make the folder; a replay needs one that no running monitor watches.

        Raises:
            TapUsageError: a monitor's pulse has come there.
            TapSourceError: it cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            pulse = folder_name(f"{MONITOR_STREAM}.")[: len(MONITOR_STREAM) + 1]
            is_watched = any(entry.name.startswith(pulse) for entry in os.scandir(self.root))
        except OSError as error:
            raise TapSourceError(f"the spool {self.root} cannot be written: {error.strerror}") from None
        if self.is_replay and is_watched:
            what = "is watched by a running monitor, for which what is in files is too late"
            raise TapUsageError(
                f"the spool {self.root} {what}: import into a spool of its own and judge it with hopwatch run --once, "
                "or let hopwatch tap files watch the folder"
            )
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise TapSourceError(f"the spool {self.root} cannot be written: grant write on it")

    def open_file(self, instance: ProbeInstance) -> RecordWriter:
        """Return the writer of a file's instance."""
        return _SegmentWriter(self, self._make_folder(instance))

    def write_numbered(self, instance: ProbeInstance, number: int, *records: TimedRecord) -> None:
        """Write records as one segment that is named after a number."""
        frames = b"".join(encode_frame(timed.record) for timed in records)
        self.publish(self._make_folder(instance), number, MAGIC + frames, records[-1].arrival_us)

    def settle(self) -> None:
        """Make what was written durable: in a replay all at once, and else each segment is."""
        if self.is_replay:
            os.sync()

    def publish(self, folder: Path, number: int, data: bytes, arrival_us: int) -> None:
        """Write a segment whole, over one of an earlier import.

        Raises:
            TapSourceError: it cannot be written.
        """
        path = folder / f"{number:010d}{SEGMENT_SUFFIX}"
        part = path.with_suffix(OPEN_SUFFIX)
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                if not self.is_replay:
                    os.fsync(file.fileno())
            if self.is_replay:
                os.utime(part, ns=(arrival_us * 1_000, arrival_us * 1_000))
            part.rename(path)
            if not self.is_replay:
                sync_folder(folder)
        except OSError as error:
            part.unlink(missing_ok=True)
            told = f"the spool {self.root} cannot be written: {error.strerror}"
            raise TapSourceError(f"{told}: see to it and start again, which changes nothing that is there") from None

    def _make_folder(self, instance: ProbeInstance) -> Path:
        folder = self.root / folder_name(instance.name)
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise TapSourceError(f"the spool {self.root} cannot be written: {error.strerror}") from None
        return folder


class _SegmentWriter:
    """Writer of the segments of one file: records that arrive alike share one."""

    def __init__(self, output: SpoolOutput, folder: Path) -> None:
        self._output, self._folder = output, folder
        self._waiting: dict[int, bytearray] = {}
        self._bytes = self._number = 0

    def add(self, timed: TimedRecord) -> None:
        frame = encode_frame(timed.record)
        waiting = self._waiting.setdefault(timed.arrival_us if self._output.is_replay else 0, bytearray(MAGIC))
        waiting += frame
        self._bytes += len(frame)
        if len(waiting) >= MAX_SEGMENT_BYTES or self._bytes >= MAX_WAITING_BYTES:
            self._publish(max(self._waiting, key=lambda arrival_us: len(self._waiting[arrival_us])))

    def close(self) -> None:
        for arrival_us in sorted(self._waiting):
            self._publish(arrival_us)

    def _publish(self, arrival_us: int) -> None:
        data = self._waiting.pop(arrival_us)
        self._bytes -= len(data) - len(MAGIC)
        self._output.publish(self._folder, self._number, bytes(data), arrival_us)
        self._number += 1


class SinkOutput:
    """Any other sink, such as a topic: its own arrival times count."""

    def __init__(self, url: str, around: RunContext) -> None:
        """Set the sink."""
        self._url, self._context = url, around

    def check(self) -> None:
        """Check that records can be written.

        Raises:
            TapUsageError: the URL cannot be.
            TapSourceError: nothing can be written there.
        """
        open_checked_sink(self._url, "check", self._context.clock).close()

    def open_file(self, instance: ProbeInstance) -> RecordWriter:
        """Return the writer of a file's instance."""
        return _SinkWriter(self._url, instance, self._context)

    def write_numbered(self, instance: ProbeInstance, number: int, *records: TimedRecord) -> None:  # noqa: ARG002 - the records have it
        """Write records."""
        writer = _SinkWriter(self._url, instance, self._context)
        for timed in records:
            writer.add(timed)
        writer.close()

    def settle(self) -> None:
        """Do nothing: a writer that is closed has settled."""


class _SinkWriter:
    def __init__(self, url: str, instance: ProbeInstance, around: RunContext) -> None:
        self._sink = BlockingSink(open_sink(url, instance.name, around.clock), around)
        self._context = around

    def add(self, timed: TimedRecord) -> None:
        if not self._sink.send(timed.record):
            raise TapSourceError("the sink has not taken all: start again, which changes nothing that it has")
        self._sink.tick()

    def close(self) -> None:
        while not self._sink.settle(SETTLE_S) and not self._sink.failed() and not self._context.stop.is_set():
            pass
        is_settled = self._sink.settle(0) and not self._sink.has_lost
        self._sink.close()
        if not is_settled:
            raise TapSourceError("the sink has not taken all: start again, which changes nothing that it has")


def open_output(url: str, around: RunContext, *, is_replay: bool) -> RecordOutput:
    """Return the output of a sink's URL.

    Raises:
        TapUsageError: the URL cannot be, or the spool is a running monitor's.
        TapSourceError: nothing can be written there.
    """
    output: RecordOutput
    if url.startswith(SCHEME) and url != SCHEME:
        output = SpoolOutput(Path(url.removeprefix(SCHEME)).absolute(), is_replay=is_replay)
    else:
        output = SinkOutput(url, around)
    output.check()
    return output
