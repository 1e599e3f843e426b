"""Spool outlet: a record is written once it is synced to disk; one sync serves many requests."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hopwatch.gate.outlets import MAX_WAITING_BYTES, OutgoingRecord, OutletError, WriteCallback
from hopwatch.gate.outlets.recovery import lock_folder, publish_segment, recover_segments, release_folder
from hopwatch.gate.records import EnteredRecord
from hopwatch.probes.clock import Clock
from hopwatch.probes.sinks.spool import SpoolSink

MIN_FREE_BYTES: Final = 2 * 1024 * 1024
"""Minimum free space, in bytes, for the spool to be ready."""
_TICK_S: Final = 0.25
_RETRY_NS: Final = 5_000_000_000
_LOCK_TRIES: Final = 100
_LOCK_S: Final = 0.02
_log = logging.getLogger("hopwatch.gate")


class _WriteGroup:
    """Records that are written together, with their callback."""

    def __init__(self, leaving: Sequence[OutgoingRecord], done: WriteCallback) -> None:
        self.leaving, self.done = leaving, done
        self.size = sum(len(one.record) for one in leaving)


class SpoolOutlet:
    """Outlet to one spool; its own thread syncs all records that arrived since the last sync.

    With an empty ``stream`` records are written unchanged; else each is wrapped in a record with the id and the times.
    """

    def __init__(self, root: Path, stream: str, clock: Clock, *, most_waiting_bytes: int = MAX_WAITING_BYTES) -> None:
        """Take the folder; nothing is created before :meth:`check`, or the first record."""
        self.root, self._stream, self._max_waiting_bytes = root, stream, most_waiting_bytes
        self._sink = SpoolSink(root, f"gate-{os.getpid()}-{clock.wall_ns() // 1_000}", clock, is_private=True)
        self._groups: queue.SimpleQueue[_WriteGroup | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._waiting_lock = threading.Lock()
        self._lock: int | None = None
        self._clock, self._tried_ns = clock, 0
        self._thread = threading.Thread(target=self._run, name="hopwatch-gate-spool", daemon=True)
        self._thread.start()

    def write(self, leaving: Sequence[OutgoingRecord], done: WriteCallback) -> None:
        """Accept records; ``done`` is called once they are synced or failed.

        Raises:
            OutletError: too much is waiting.
        """
        group = _WriteGroup(leaving, done)
        with self._waiting_lock:
            if self._waiting_bytes + group.size > self._max_waiting_bytes:
                raise OutletError(f"{self._waiting_bytes:,} bytes wait for the spool {self.root} already")
            self._waiting_bytes += group.size
        self._groups.put(group)

    def check(self) -> None:
        """Create the folder, check its free space, and publish the segments left by gates that were killed.

        Raises:
            OutletError: it cannot be written.
        """
        try:
            self._sink.check()
            self._sink.check_room(MIN_FREE_BYTES)
            if self._lock is None:
                self._lock = self._lock_own_folder()
            recover_segments(self.root)
        except OSError as error:
            raise OutletError(f"the spool {self.root} cannot be written: {error.strerror}") from None

    def _lock_own_folder(self) -> int:
        """Lock the own folder; retry while another gate that starts holds the lock for a moment."""
        for _ in range(_LOCK_TRIES):
            try:
                return lock_folder(self._sink.folder)
            except BlockingIOError:
                time.sleep(_LOCK_S)
        return lock_folder(self._sink.folder)

    def close(self) -> None:
        """Sync and publish the remaining records, and stop the thread."""
        self._groups.put(None)
        self._thread.join()
        if self._lock is not None:
            release_folder(self._sink.folder, self._lock)

    def _run(self) -> None:
        is_ending = False
        while not is_ending:
            groups: list[_WriteGroup] = []
            try:
                first = self._groups.get(timeout=_TICK_S)
            except queue.Empty:
                self._tick()
                continue
            is_ending = first is None
            if first is not None:
                groups.append(first)
            while not is_ending and not self._groups.empty():
                more = self._groups.get()
                is_ending = more is None
                if more is not None:
                    groups.append(more)
            self._write(groups)
            self._tick()
        self._sink.close()
        self._publish_unpublished()

    def _tick(self) -> None:
        self._sink.tick()
        if self._sink.unpublished and self._clock.monotonic_ns() - self._tried_ns > _RETRY_NS:
            self._tried_ns = self._clock.monotonic_ns()
            self._publish_unpublished()

    def _publish_unpublished(self) -> None:
        """Retry segments that could not be published: their records are acknowledged, but not visible to readers."""
        for segment in list(self._sink.unpublished):
            try:
                publish_segment(segment)
            except OSError as error:
                _log.warning("the segment %s cannot be published: %s", segment, error.strerror)
                return
            self._sink.unpublished.remove(segment)

    def _write(self, groups: Sequence[_WriteGroup]) -> None:
        taken = [all(self._sink.send(self._encode(one)) for one in group.leaving) for group in groups]
        is_synced = self._sink.sync()
        for group, is_taken in zip(groups, taken, strict=True):
            with self._waiting_lock:
                self._waiting_bytes -= group.size
            is_written = is_taken and is_synced
            group.done(frozenset() if is_written else frozenset(one.event_id for one in group.leaving))

    def _encode(self, one: OutgoingRecord) -> bytes:
        if not self._stream:
            return one.record
        return EnteredRecord(self._stream, one.event_id, one.event_us, one.arrived_us, one.record).encode()
