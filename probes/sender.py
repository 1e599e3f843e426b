"""The sender: takes what was stamped, off the host's threads, and sends it: batches, heartbeats, a bye at the end.

One thread, a bounded queue. Every number is given once a record was taken, so that a probe makes no hole itself; what
cannot be sent is counted by window and cause, and told with the next record that is taken.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from probes import recorder
from probes.clock import Clock
from probes.contract.batch import Batch, Drop, Kind
from probes.contract.envelope import RecordError, encode
from probes.contract.limits import MAX_CAUSE_CHARS, MAX_DROPS, WINDOW_MS
from probes.recorder import Packed, Stamp, Stamps
from probes.sinks import Sink

TICK_S: Final = 0.5
"""How often the thread looks after its sink when nothing else is due."""
SINK_REFUSED: Final = "sink refused"
UNSENDABLE: Final = "unsendable"

_log = logging.getLogger("hopwatch.probe")


@dataclass(slots=True)
class Instance:
    """Who sends: one running probe."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    labels: dict[str, str] = field(default_factory=dict)


class Sender:
    """Turns the queue into records; :meth:`step` does all that is due, and may be called by hand."""

    def __init__(self, instance: Instance, sink: Sink, clock: Clock, *, flush_every_s: float, heartbeat_every_s: float) -> None:
        """Take the parts; no thread runs before :meth:`start`."""
        self.instance, self.sink, self.clock = instance, sink, clock
        self.flush_every_ns, self.heartbeat_every_ns = int(flush_every_s * 1e9), int(heartbeat_every_s * 1e9)
        self.queue: deque[Stamp | Stamps] = deque()
        self.drops: Counter[tuple[int, str]] = Counter()
        self.dropped_total = 0
        self.seq = 0
        self.complete_through_us = instance.epoch_us
        self._flushed_ns = self._sent_ns = clock.monotonic_ns()
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="hopwatch-probe", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Ask for a flush now."""
        self._wake.set()

    def drop(self, window_start_ms: int, cause: str, count: int = 1) -> None:
        """Count observations that will never be sent."""
        with self._lock:
            self.drops[window_start_ms, cause[:MAX_CAUSE_CHARS]] += count
            self.dropped_total += count

    def step(self) -> None:
        """Do what is due: flush, or a heartbeat, and let the sink do the same."""
        now_ns = self.clock.monotonic_ns()
        if len(self.queue) >= recorder.BATCH_OBSERVATIONS or now_ns - self._flushed_ns >= self.flush_every_ns:
            self.flush()
        if now_ns - self._sent_ns >= self.heartbeat_every_ns:
            with self._lock:
                self._close_moment(Kind.HEARTBEAT, self._moment_us())
        self.sink.tick()

    def flush(self) -> None:
        """Send all that is in the queue."""
        with self._lock:
            self._flushed_ns = self.clock.monotonic_ns()
            # The moment is read before the queue is taken: what is appended later is moved behind it.
            moment_us = self._moment_us()
            taken = [self.queue.popleft() for _ in range(len(self.queue))]
            if not taken and not self.drops:
                return
            batches, refusals = recorder.record(taken, self.complete_through_us * 1_000)
            self.drops.update(refusals)
            self.dropped_total += refusals.total()
            self._send_batches(batches, moment_us)

    def close(self, patience_s: float) -> None:
        """Flush, say bye and let go of the sink; give up after ``patience_s``."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(patience_s)
        if self._lock.acquire(timeout=patience_s):
            try:
                self.flush()
                self._close_moment(Kind.BYE, self._moment_us())
                self.sink.close()
            finally:
                self._lock.release()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(min(TICK_S, self.flush_every_ns / 1e9))
            self._wake.clear()
            try:
                self.step()
            except Exception:  # noqa: BLE001 - nothing may reach the host; the loop goes on
                _log.warning("a probe could not send", exc_info=True)

    def _moment_us(self) -> int:
        return max(self.clock.wall_ns() // 1_000, self.complete_through_us)

    def _send_batches(self, batches: list[Packed], moment_us: int) -> None:
        """Send batches; the last one that is taken carries the moment, if nothing was dropped on the way."""
        for batch in batches[:-1]:
            self._send_batch(batch, self.complete_through_us, ())
        told = self._drops_to_tell()
        if not batches or len(self.drops) > len(told):
            for batch in batches[-1:]:
                self._send_batch(batch, self.complete_through_us, ())
            self._close_moment(Kind.HEARTBEAT, moment_us)
        elif self._send_batch(batches[-1], moment_us, told):
            self._told(told, moment_us)

    def _send_batch(self, packed: Packed, through_us: int, drops: tuple[Drop, ...]) -> bool:
        batch = self._batch(Kind.OBSERVATIONS, packed.window_start_ms, through_us, drops)
        taken = self._send(replace(batch, count=packed.count, reasons=packed.reasons, **packed.fields))  # type: ignore[arg-type]
        if not taken:
            self.drop(packed.window_start_ms, SINK_REFUSED, packed.count)
        return taken

    def _close_moment(self, kind: Kind, moment_us: int) -> None:
        """Send records without observations until all drops are told; the last of them carries the moment."""
        while True:
            told = self._drops_to_tell()
            is_last = len(told) == len(self.drops)
            through_us = moment_us if is_last else self.complete_through_us
            batch = self._batch(kind if is_last else Kind.HEARTBEAT, moment_us // 1_000 // WINDOW_MS * WINDOW_MS, through_us, told)
            if not self._send(batch):
                return
            self._told(told, through_us)
            if is_last:
                return

    def _drops_to_tell(self) -> tuple[Drop, ...]:
        first = sorted(self.drops.items())[:MAX_DROPS]
        return tuple(Drop(window_start_ms, count, cause) for (window_start_ms, cause), count in first)

    def _told(self, told: Iterable[Drop], through_us: int) -> None:
        for drop in told:
            del self.drops[drop.window_start_ms, drop.cause]
        self.complete_through_us = through_us

    def _batch(self, kind: Kind, window_start_ms: int, through_us: int, drops: tuple[Drop, ...]) -> Batch:
        who = self.instance
        sent_at_us = self.clock.wall_ns() // 1_000
        return Batch(
            who.probe, who.epoch_us, self.seq, kind, who.stream, who.node, window_start_ms, sent_at_us, through_us,
            drops=drops, labels=who.labels,
        )  # fmt: skip

    def _send(self, batch: Batch) -> bool:
        try:
            record = encode(batch)
        except RecordError:
            _log.warning("a probe made a record that breaks the wire", exc_info=True)
            return False
        if not self.sink.send(record):
            return False
        self.seq += 1
        self._sent_ns = self.clock.monotonic_ns()
        return True
