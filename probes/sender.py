"""Sender: turns queued stamps into batches, and sends them, heartbeats and a final bye, off the host's threads.

It has one thread and a bounded queue. A sequence number is used up only when the sink accepts the record, so that the
probe itself makes no hole; observations that cannot be sent are counted by window and cause, and reported with the next
accepted record. A number is skipped only where drops are of more windows than can be counted, cannot be counted at all,
or a sink raised instead of refusing: the account of that time has a hole then (ADR 0034, 0122).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hopwatch.probes import lifecycle
from hopwatch.probes.backlog import Backlog
from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.envelope import decode, encode
from hopwatch.probes.contract.limits import MAX_LABELS, MONITOR_STREAM, WINDOW_MS, WINDOW_US
from hopwatch.probes.drop_ledger import HOLE_US, SINK_REFUSED, UNDELIVERED, UNSENDABLE, DropLedger
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.packing import BATCH_OBSERVATIONS, PackedBatch
from hopwatch.probes.pending_counts import PendingCounts, count_messages
from hopwatch.probes.recorder import Stamp, StampArrays
from hopwatch.probes.sinks import Sink

ANNOUNCE_WITHIN_S: Final = 1.0
"""Default time that a start waits for the transport to accept the hello."""
FLUSH_EVERY_S: Final = 2.0
"""Default interval at which stamps are sent."""
FEW_STAMPS: Final = 32
"""Stamps that are worth a record of their own: by default fewer of them wait for FEW_EVERY_S."""
FEW_EVERY_S: Final = 5.0
"""Default interval at which few stamps are sent, and counts and drops with them."""
HEARTBEAT_EVERY_S: Final = 10.0
"""Default interval after which an instance says that it is alive, if it has sent nothing else."""
TICK_S: Final = 0.5
"""Interval of the sink's periodic work when nothing else is due."""
NEVER_US: Final = 2**62
"""Later than any moment."""
LAST_TRIES: Final = 2
"""Tries of the last flush."""
RELEASE_S: Final = 1.0
"""Time that a sink has to close after its patience has run out."""
_log = logging.getLogger("hopwatch.probe")


class Sender:
    """Sender of one probe instance; :meth:`step` does all due work, and may be called by hand."""

    def __init__(  # noqa: PLR0913 - the parts of one sender
        self,
        instance: ProbeInstance,
        sink: Sink,
        clock: Clock,
        *,
        flush_every_s: float | None = None,
        heartbeat_every_s: float = HEARTBEAT_EVERY_S,
        queue: deque[Stamp | StampArrays] | None = None,
        max_age_us: int | None = None,
    ) -> None:
        """Prepare a sender; no thread runs and no record is sent before :meth:`start`. The queue may hold stamps.

        It flushes every ``flush_every_s``; without a number after FLUSH_EVERY_S, or FEW_EVERY_S where few stamps wait.
        """
        self.instance, self.sink, self.clock = instance, sink, clock
        self.flush_every_ns = int((flush_every_s or FLUSH_EVERY_S) * 1e9)
        self.few_every_ns = int((flush_every_s or FEW_EVERY_S) * 1e9)
        self.heartbeat_every_ns = int(heartbeat_every_s * 1e9)
        self.backlog = Backlog(queue, max_age_us)
        self.queue = self.backlog.queue
        self.drops = DropLedger(instance, clock)
        self.counts = PendingCounts()
        self.seq = 0
        self.complete_through_us = instance.epoch_us
        # The moment up to which a tap has read its source; None for a probe that stamps live messages.
        self._caught_up_us: int | None = None
        # The moment beyond which nothing may be completed for now; None if no observations are awaited.
        self._held_us: int | None = None
        self._flushed_ns = self._sent_ns = clock.monotonic_ns()
        # Held while records are sent, which may take long; the host waits for it only in flush and close.
        self._sending = threading.RLock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        # Whether the hello is still unsent; and, after the first try, whether the transport has it.
        self._owes_hello, self._is_announced = False, False
        self._has_tried = threading.Event()
        # The arguments of end(), and whether a thread is finishing.
        self._patience_s, self._since_ns, self._last_kind, self._until_us = 0.0, 0, BatchKind.BYE, NEVER_US
        self._is_finishing = False

    @property
    def waiting(self) -> int:
        """Return the number of waiting stamps; those of arrays count individually."""
        return self.backlog.waiting

    @property
    def dropped_total(self) -> int:
        """Return the number of all observations that were dropped."""
        return self.drops.total

    def start(self, announce_within_s: float = ANNOUNCE_WITHIN_S) -> None:
        """Start the thread, and wait at most ``announce_within_s`` until the transport has the hello.

        The hello is the first record, without observations: however this instance ends, a monitor knows that it
        existed. If the transport does not accept it in time, a warning is logged, and it stays first in line.
        """
        # The monitor's own pulse needs no hello: it is not judged, and a record of it would move the clock.
        self._owes_hello = self.instance.stream != MONITOR_STREAM
        self._is_announced = not self._owes_hello
        try:
            lifecycle.check_interpreter()
            self._thread = lifecycle.ProbeThread(target=self._run, args=(announce_within_s,), name="hopwatch-probe")
            self._thread.start()
        except RuntimeError as error:
            self._thread = None
            _log.warning("a probe has no thread, and sends only where it is asked to: %s", error)
            self._first_announce(announce_within_s)
        if not (self._has_tried.wait(announce_within_s) and self._is_announced):
            told = "a probe of %s at %s could not announce itself within %s s: killed before it can, it was never there"
            _log.warning(told, self.instance.stream, self.instance.node, announce_within_s)

    def _first_announce(self, patience_s: float) -> None:
        try:
            self._announce(patience_s)
        except Exception:  # noqa: BLE001 - nothing may reach the host; a flush tries again
            _log_error("a probe could not announce itself")
        finally:
            self._has_tried.set()

    def _announce(self, patience_s: float) -> bool:
        """Send the hello, unless it is sent, and settle the sink; return whether it is sent."""
        with self._sending:
            if (
                self._owes_hello
                and self._send(self._build_batch(BatchKind.HEARTBEAT, self.complete_through_us, ())) is None
            ):
                self._owes_hello = False
                self._is_announced = self.sink.settle(patience_s)
            return not self._owes_hello

    def follow(self) -> None:
        """Stop completing windows by the clock: a tap may be behind its source, and reports its progress itself."""
        self._caught_up_us = self.complete_through_us = 0

    def catch_up(self, moment_us: int) -> None:
        """Allow completion up to this moment; no effect on a sender that does not follow."""
        if self._caught_up_us is not None:
            self._caught_up_us = max(self._caught_up_us, moment_us)

    def hold(self, moment_us: int | None) -> None:
        """Stop completion at a moment from which observations are awaited; None resumes it."""
        self._held_us = moment_us

    def leave_hole(self) -> None:
        """Skip the next sequence number: observations of now are missing and cannot be counted."""
        self.drops.leave_hole(self.complete_through_us)

    def lose_count(self) -> None:
        """Ask for a hole: observations of unknown windows were dropped and not counted."""
        self.drops.lose_count()

    def append_many(self, stamps: StampArrays, most: int) -> bool:
        """Queue arrays; False if more than ``most`` stamps would wait, or their ids would take too many bytes.

        Two arrays of one length always find room, because an arrival and its departure belong together.
        """
        if not self.backlog.append_many(stamps, most):
            return False
        if self.waiting >= BATCH_OBSERVATIONS:
            self._wake.set()
        return True

    def drop(self, refusals: Mapping[tuple[int, str], int]) -> None:
        """Count observations that will never be sent: numbers by (window start in ms, cause)."""
        self.drops.drop(refusals, self.complete_through_us)

    def wake(self) -> None:
        """Wake the thread for a step now."""
        self._wake.set()

    def step(self) -> None:
        """Do all due work: flush, send a heartbeat, and run the sink's periodic work."""
        now_ns = self.clock.monotonic_ns()
        if now_ns - self._sent_ns >= self.heartbeat_every_ns:
            self.flush(BatchKind.HEARTBEAT)
        elif self.waiting >= BATCH_OBSERVATIONS or now_ns - self._flushed_ns >= self._find_interval_ns():
            self.flush()
        self.tick()

    def _find_interval_ns(self) -> int:
        """Return for how long what waits now may wait."""
        return self.few_every_ns if self.waiting < FEW_STAMPS else self.flush_every_ns

    def tick(self) -> None:
        """Run the sink's periodic work; only one thread at a time uses a sink."""
        with self._sending:
            try:
                self.sink.tick()
            finally:
                self._count_failed()

    def settle(self, patience_s: float) -> bool:
        """Flush, and wait until the transport has all stamps; return whether it has, with none dropped meanwhile."""
        before = self.dropped_total
        with self._sending:
            self.flush()
            is_settled = self.sink.settle(patience_s)
            self._count_failed()
        return is_settled and self.dropped_total == before and not self._owes_hello

    def flush(self, closing: BatchKind | None = None) -> None:
        """Send all waiting stamps and drops; with ``closing`` a bye, or a heartbeat if no other record said as much.

        After an error no moment is completed that was not reached, and the next flush continues from there.
        """
        with self._sending:
            self._flushed_ns = self.clock.monotonic_ns()
            if not (self._announce(0.0) or self._is_finishing):
                return
            self._send_leftover()
            # Read the moment before the queue is packed: later stamps are moved behind it.
            moment_us = self._find_complete_us()
            self.backlog.pack(self.complete_through_us)
            self._count_refused()
            has_counted = self._send_counts()
            has_told_all = self._send_packed(moment_us)
            is_asked = closing is not None or has_counted or bool(self.drops)
            if closing is BatchKind.BYE or (is_asked and not has_told_all):
                # While a hole lasts, a bye would complete windows ahead of it.
                is_bye = closing is BatchKind.BYE and moment_us >= self.drops.find_hole_end_us(self.complete_through_us)
                self._send_empty(BatchKind.BYE if is_bye else BatchKind.HEARTBEAT, moment_us)
            self.drops.log_causes(self.backlog.faults)

    def offer(self, pack: Callable[[int], Iterable[PackedBatch]]) -> bool:
        """Send observations that others have stamped; False at the first batch that the sink refuses.

        ``pack`` gets the time of day, in µs, and returns the batches. Refused ones are no drops: the caller still has
        them.
        """
        with self._sending:
            if not self._announce(0.0):
                return False
            moment_us = self._find_complete_us()
            offered = list(pack(self._wall_us()))
            for packed in offered[:-1]:
                if self._send(self._build_observations(packed, self.complete_through_us, ())) is not None:
                    return False
            told, is_all = self.drops.next_drops()
            through_us = moment_us if is_all and self.backlog.is_settled else self.complete_through_us
            return all(
                self._send(self._build_observations(packed, through_us, told)) is None for packed in offered[-1:]
            )

    def close(self, patience_s: float, *, bye: bool = True) -> None:
        """Flush, send a bye if asked, and close the sink; give up after ``patience_s``."""
        self.end(patience_s, bye=bye)
        self.wait()

    def end(self, patience_s: float, *, bye: bool = True, until_us: int | None = None) -> None:
        """Let the thread close by itself, as :meth:`close` does; ``patience_s`` counts from now.

        No moment later than ``until_us``, by default now, is completed: later stamps are not sent.
        """
        self._until_us = self._wall_us() if until_us is None else until_us
        self._patience_s, self._since_ns = patience_s, self.clock.monotonic_ns()
        self._last_kind = BatchKind.BYE if bye else BatchKind.HEARTBEAT
        self._ended.set()
        self._wake.set()

    def wait(self) -> None:
        """Wait for the end that :meth:`end` asked for, within its patience."""
        if self._thread is not None:
            self._thread.join(self._remaining_s())
            if self._is_finishing:
                self._thread.join(self._remaining_s(RELEASE_S))
            if self._thread.is_alive():
                self._give_up()
                return
        self._finish()

    def _finish(self) -> None:
        """Send the remaining stamps and close the sink, once."""
        if self._is_finishing:
            return
        self._is_finishing = True
        if not self._sending.acquire(timeout=self._remaining_s()):
            self._give_up()
            return
        try:
            self._flush_last()
            self.sink.close(self._remaining_s())
            self._count_failed()
        finally:
            self._sending.release()

    def _flush_last(self) -> None:
        """Flush, with a second try; the sink is closed even if both fail."""
        for _ in range(LAST_TRIES):
            try:
                self.flush(self._last_kind)
            except Exception:  # noqa: BLE001 - as in the thread
                _log.warning("a probe could not send", exc_info=True)
            else:
                return

    def _remaining_s(self, more_s: float = 0.0) -> float:
        return max(0.0, self._patience_s + more_s - (self.clock.monotonic_ns() - self._since_ns) / 1e9)

    def _give_up(self) -> None:
        told = "a probe gave up after %s s: its sink is busy, %d stamps are unsent"
        _log.warning(told, self._patience_s, self.waiting)

    def _run(self, announce_within_s: float) -> None:
        with suppress(Exception):  # it says itself what went wrong, and a flush tries again
            self._first_announce(announce_within_s)
        while not self._ended.is_set():
            try:
                self._wait()
                self.step()
            except Exception:  # noqa: BLE001 - nothing may reach the host; the loop goes on
                _log_error("a probe could not send")
        try:
            self._finish()
        except Exception:  # noqa: BLE001 - as above
            _log_error("a probe could not end well")

    def _wait(self) -> None:
        """Wait until something may be due."""
        try:
            self._wake.wait(min(TICK_S, self.flush_every_ns / 1e9))
        except Exception:  # noqa: BLE001 - it needs memory; without a pause the loop would take a whole processor
            time.sleep(TICK_S)
        self._wake.clear()

    def _send_leftover(self) -> None:
        """Send the batches that a failed flush has left, before new ones; drop those that fail again."""
        packed = self.backlog.packed
        while packed:
            first = packed[0]
            try:
                self._send_first(self.complete_through_us, ())
            except Exception:  # noqa: BLE001 - one batch must not block all others
                _log.warning("a probe could not send a batch", exc_info=True)
                if packed and packed[0] is first:
                    self._drop_first(UNSENDABLE)

    def _count_refused(self) -> None:
        """Count stamps that could not be packed."""
        refused = self.backlog.refused
        if self.backlog.has_lost_count:
            self.drops.lose_count()
            self.backlog.has_lost_count = False
        while refused:
            self.drop(refused[0])
            refused.popleft()

    def _send_counts(self) -> bool:
        """Send what was counted, a record a window, and count what is refused as dropped; return whether any was."""
        has_counted = False
        while (taken := self.counts.take_window()) is not None:
            has_counted = True
            start_ms, metrics = taken
            batch = replace(
                self._build_batch(BatchKind.METRICS, self.complete_through_us, ()),
                window_start_ms=start_ms,
                metrics=metrics,
            )
            try:
                cause = self._send(batch)
            except Exception:
                self.drops.lose_count()
                raise
            if cause is not None:
                self.drop({(start_ms, cause): count_messages(metrics)})
        return has_counted

    def _send_packed(self, moment_us: int) -> bool:
        """Send all batches; the last carries drops, and the moment if it reports all drops; True if it was accepted."""
        packed = self.backlog.packed
        while len(packed) > 1:
            self._send_first(self.complete_through_us, ())
        if not packed:
            return False
        told, is_all = self.drops.next_drops()
        return self._send_first(moment_us if is_all else self.complete_through_us, told) and is_all

    def _send_first(self, through_us: int, told: tuple[Drop, ...]) -> bool:
        """Send the first batch, or count it as dropped, and remove it; return whether it was accepted."""
        cause = self._send(self._build_observations(self.backlog.packed[0], through_us, told))
        if cause is None:
            self.backlog.packed.popleft()
        else:
            self._drop_first(cause)
        return cause is None

    def _drop_first(self, cause: str) -> None:
        first = self.backlog.packed[0]
        self.drop({(first.window_start_ms, cause): first.count})
        self.backlog.packed.popleft()

    def _build_observations(self, packed: PackedBatch, through_us: int, told: tuple[Drop, ...]) -> Batch:
        labels = self.instance.labels
        for name, value in packed.labels:
            if name in labels or len(labels) < MAX_LABELS:
                labels = labels | {name: value}
        return replace(
            self._build_batch(BatchKind.OBSERVATIONS, through_us, told),
            labels=labels,
            window_start_ms=packed.window_start_ms,
            count=packed.count,
            reasons=packed.reasons,
            **packed.fields,
        )

    def _send_empty(self, kind: BatchKind, moment_us: int) -> None:
        """Send records without observations until all drops are reported; the last one carries the moment."""
        is_all = False
        while not is_all:
            told, is_all = self.drops.next_drops()
            through_us = moment_us if is_all else self.complete_through_us
            if self._send(self._build_batch(kind if is_all else BatchKind.HEARTBEAT, through_us, told)) is not None:
                return

    def _count_failed(self) -> None:
        """Count the observations of accepted records that failed later; their sequence numbers make a hole."""
        for record in self.sink.failed():
            try:
                self._count_one_failed(decode(record))
            except Exception:  # noqa: BLE001 - one record must not keep the others from being counted
                self.drops.lose_count()

    def _count_one_failed(self, batch: Batch) -> None:
        count = batch.count + count_messages(batch.metrics)
        self.drop({(batch.window_start_ms, UNDELIVERED): count} if count else {})
        self.drops.report_again(batch.drops, self.complete_through_us)

    def _build_batch(self, kind: BatchKind, through_us: int, told: tuple[Drop, ...]) -> Batch:
        who, sent_at_us = self.instance, self._wall_us()
        seq = self.seq + (
            self.complete_through_us < min(through_us, self.drops.find_hole_end_us(self.complete_through_us))
        )
        return Batch(
            who.probe, who.epoch_us, seq, kind, who.stream, who.node, sent_at_us // WINDOW_US * WINDOW_MS,
            sent_at_us, through_us, drops=told, labels=who.labels,
        )  # fmt: skip

    def _send(self, batch: Batch) -> str | None:
        """Send a record, and advance the state once the sink accepts it; return None, or the cause of a refusal."""
        sent_ns = self.clock.monotonic_ns()
        try:
            record = encode(batch)
        except Exception:  # noqa: BLE001 - a batch that cannot be encoded costs only itself
            _log.warning("a probe made a record that breaks the wire", exc_info=True)
            return UNSENDABLE
        try:
            if not self.sink.send(record):
                return SINK_REFUSED
        except Exception:  # noqa: BLE001 - a team's own sink may raise anything
            # The sink may have taken the record: use its number up, so that no other record counts as its copy.
            self.seq = batch.seq + 1
            _log.warning("the sink of a probe failed", exc_info=True)
            return SINK_REFUSED
        self.seq, self.complete_through_us, self._sent_ns = batch.seq + 1, batch.complete_through_us, sent_ns
        try:
            self.drops.remove(batch.drops)
        except Exception:  # noqa: BLE001 - the record is sent; drops that are reported twice hide no loss
            _log.warning("a probe may tell drops twice", exc_info=True)
        return None

    def _find_complete_us(self) -> int:
        """Return the moment up to which the queue holds all stamps; while a hole lasts it may stand still."""
        before_us, wall_us = self.complete_through_us, min(self._wall_us(), self._until_us)
        bounds_us = [us for us in (wall_us, self._caught_up_us, self._held_us) if us is not None]
        moment_us = max(before_us, min(bounds_us))
        return (
            before_us
            if moment_us < min(self.drops.find_hole_end_us(self.complete_through_us), before_us + HOLE_US)
            else moment_us
        )

    def _wall_us(self) -> int:
        return self.clock.wall_ns() // 1_000


def _log_error(told: str) -> None:
    """Log an error from the thread, which must survive a failing log handler, too."""
    with suppress(Exception):
        _log.warning(told, exc_info=True)
