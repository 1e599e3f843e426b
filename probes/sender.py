"""The sender: takes what was stamped, off the host's threads, and sends it: batches, heartbeats, a bye at the end.

One thread, a bounded queue. Every number is given once a record was taken, so that a probe makes no hole itself; what
cannot be sent is counted by window and cause, and told with the next record that is taken. Only where drops are of more
windows than it counts, or cannot be counted, or where a sink raised instead of saying no, a number is left out: the
account of that time has a hole then (ADR 0034, 0122).
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
from hopwatch.probes.backlog import UNRECORDABLE, Backlog
from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.envelope import decode, encode
from hopwatch.probes.contract.limits import MONITOR_STREAM, WINDOW_MS, WINDOW_US
from hopwatch.probes.drop_counts import DropCounts
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.packing import BATCH_OBSERVATIONS, PackedBatch
from hopwatch.probes.recorder import BAD_EVENT_TIME, BAD_MESSAGE_ID, POSSIBLE_WINDOW, Refusals, Stamp, StampArrays
from hopwatch.probes.sinks import Sink

ANNOUNCE_WITHIN_S: Final = 1.0
"""So long whoever starts a sender waits at most for the transport to have its hello."""
TICK_S: Final = 0.5
"""How often the thread looks after its sink when nothing else is due."""
HOLE_US: Final = 300_000_000
"""How far ahead of the clock windows may be, and so the hole that tells of drops in windows that nobody knows.

For so long its end waits, too, so that a probe which goes on like that makes few holes. Twice as long a monitor looks
out for stamps of an instance that says nothing more.
"""
NEVER_US: Final = 2**62
"""Later than any moment."""
MAX_CAUSES: Final = 1_000
"""So many causes of drops are logged; a host may make up one for each message."""
LAST_TRIES: Final = 2
"""How often the last flush is tried."""
RELEASE_S: Final = 1.0
"""How long a sink may take to let go of what it waited for in vain."""
SINK_REFUSED: Final = "sink refused"
UNSENDABLE: Final = "unsendable"
UNDELIVERED: Final = "undelivered"

_CAUSE_HINTS: Final = {
    BAD_EVENT_TIME: "an event time is an aware datetime or int µs since 1970; strict=True raises at the call",
    BAD_MESSAGE_ID: "a message id is a UUID, 16 bytes, an int or a str; strict=True raises at the call",
    SINK_REFUSED: "its sink is full or cannot be written",
    UNDELIVERED: "its sink took them, and the transport then refused them for good",
    UNRECORDABLE: "a message id or an event time raised an error of its own; strict=True raises at the call",
}
_log = logging.getLogger("hopwatch.probe")


class Sender:
    """Turns the queue into records; :meth:`step` does all that is due, and may be called by hand."""

    def __init__(  # noqa: PLR0913 - the parts of one sender
        self,
        instance: ProbeInstance,
        sink: Sink,
        clock: Clock,
        *,
        flush_every_s: float,
        heartbeat_every_s: float,
        queue: deque[Stamp | StampArrays] | None = None,
        max_age_us: int | None = None,
    ) -> None:
        """Take the parts; nothing runs, and nothing is sent, before :meth:`start`. A queue may have stamps already."""
        self.instance, self.sink, self.clock = instance, sink, clock
        self.flush_every_ns, self.heartbeat_every_ns = int(flush_every_s * 1e9), int(heartbeat_every_s * 1e9)
        self.backlog = Backlog(queue, max_age_us)
        self.queue = self.backlog.queue
        self.drops = DropCounts()
        # Up to which moment the books have to have a hole; and whether count was lost since that was worked out.
        self._hole_until_us, self._has_lost_count = 0, False
        self.dropped_total = 0
        self._examples: dict[str, str] = {}
        self._causes: set[str] = set()
        self._logged_causes: set[str] = set()
        self.seq = 0
        self.complete_through_us = instance.epoch_us
        # Up to which moment a tap has seen its source; None for a probe that stamps what happens as it happens.
        self._caught_up_us: int | None = None
        # From when on nothing may be completed for now; None if nothing is awaited.
        self._held_us: int | None = None
        self._flushed_ns = self._sent_ns = clock.monotonic_ns()
        # Held while records are sent, which may take long; the host never waits for it but in flush and close.
        self._sending = threading.RLock()
        # Held for a few instructions only, by the host too.
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        # Whether the hello has still to be said; and, once that was tried, whether the transport has it.
        self._owes_hello, self._is_announced = False, False
        self._has_tried = threading.Event()
        # How the end was asked for, and whether somebody is at it.
        self._patience_s, self._since_ns, self._last_kind, self._until_us = 0.0, 0, BatchKind.BYE, NEVER_US
        self._is_finishing = False

    @property
    def waiting(self) -> int:
        """Return how many stamps wait, those of arrays one by one."""
        return self.backlog.waiting

    def start(self, announce_within_s: float = ANNOUNCE_WITHIN_S) -> None:
        """Start the thread, and wait so long at most until the transport has the hello.

        The hello is the first record, without observations: whatever ends this instance from now on, a monitor knows
        that it was there. Where the transport does not take it in time, a line is logged, and it stays first in line.
        """
        # Of the monitor's own pulse nothing is judged, and it moves the clock when it beats.
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
        """Say hello, unless it is said, and have the transport keep it; whether it is said."""
        with self._sending:
            if (
                self._owes_hello
                and self._send(self._build_batch(BatchKind.HEARTBEAT, self.complete_through_us, ())) is None
            ):
                self._owes_hello = False
                self._is_announced = self.sink.settle(patience_s)
            return not self._owes_hello

    def follow(self) -> None:
        """Complete nothing by the clock alone: a tap may be behind its source, and says itself how far it is."""
        self._caught_up_us = self.complete_through_us = 0

    def catch_up(self, moment_us: int) -> None:
        """Let moments up to this one be completed; nothing to a sender that does not follow."""
        if self._caught_up_us is not None:
            self._caught_up_us = max(self._caught_up_us, moment_us)

    def hold(self, moment_us: int | None) -> None:
        """Complete nothing beyond a moment, as observations of then are awaited; None when they have come."""
        self._held_us = moment_us

    def leave_hole(self) -> None:
        """Leave the next number out: observations of now are missing, and nobody can count them."""
        with self._lock:
            # Behind what is completed, so that the next moment that is completed is behind a hole.
            self._hole_until_us = max(self._hole_until_us, self.complete_through_us + 1, self._wall_us())

    def lose_count(self) -> None:
        """Leave a number out, as something was dropped and not counted, nobody knows of which moment."""
        self._has_lost_count = True

    def append_many(self, stamps: StampArrays, most: int) -> bool:
        """Take arrays into the queue; False if more than ``most`` stamps would wait.

        Two arrays of one length always find room, because an arrival and its departure belong together.
        """
        if not self.backlog.append_many(stamps, most):
            return False
        if self.waiting >= BATCH_OBSERVATIONS:
            self._wake.set()
        return True

    def drop(self, refusals: Mapping[tuple[int, str], int]) -> None:
        """Count observations that will never be sent, by (window start in ms, cause)."""
        with self._lock:
            try:
                self._count_drops(refusals)
                self.dropped_total += sum(count for (_, cause), count in refusals.items() if cause != POSSIBLE_WINDOW)
                if len(self._causes) < MAX_CAUSES:
                    self._causes.update(cause for _, cause in refusals if cause != POSSIBLE_WINDOW)
                if isinstance(refusals, Refusals):
                    self._examples |= refusals.examples
            except Exception:  # noqa: BLE001 - memory may be short; what is not counted is a hole in the books
                self._has_lost_count = True

    def _count_drops(self, drops: Mapping[tuple[int, str], int]) -> None:
        """Have drops told; those that find no room count where all was told last, and the hole begins there."""
        through_us = max(self.complete_through_us, self.instance.epoch_us)
        if not self.drops.add(drops, through_us // WINDOW_US * WINDOW_MS):
            self._has_lost_count = True

    def _find_hole_end_us(self) -> int:
        """Return up to which moment the books have to have a hole, from what was completed last."""
        with self._lock:
            if self._has_lost_count:
                self._hole_until_us = max(self.complete_through_us, self.instance.epoch_us, self._wall_us()) + HOLE_US
                self._has_lost_count = False
            return self._hole_until_us

    def wake(self) -> None:
        """Ask the thread for a step now."""
        self._wake.set()

    def step(self) -> None:
        """Do what is due: flush, or a heartbeat, and let the sink do the same."""
        now_ns = self.clock.monotonic_ns()
        if now_ns - self._sent_ns >= self.heartbeat_every_ns:
            self.flush(BatchKind.HEARTBEAT)
        elif self.waiting >= BATCH_OBSERVATIONS or now_ns - self._flushed_ns >= self.flush_every_ns:
            self.flush()
        self.tick()

    def tick(self) -> None:
        """Let the sink do what time alone makes due; a sink is in the hands of one thread at a time."""
        with self._sending:
            try:
                self.sink.tick()
            finally:
                self._count_failed()

    def settle(self, patience_s: float) -> bool:
        """Flush, and wait until the transport has all of it; whether it has, with nothing dropped on the way."""
        before = self.dropped_total
        with self._sending:
            self.flush()
            is_settled = self.sink.settle(patience_s)
            self._count_failed()
        return is_settled and self.dropped_total == before and not self._owes_hello

    def flush(self, closing: BatchKind | None = None) -> None:
        """Send all that waits and all drops; a bye if asked; a heartbeat if asked and nothing else was sent.

        Whatever raises on the way, no moment is completed that was not reached, and the next flush goes on from there.
        """
        with self._sending:
            self._flushed_ns = self.clock.monotonic_ns()
            if not (self._announce(0.0) or self._is_finishing):
                return
            self._send_leftover()
            # The moment is read before the queue is taken: what is appended later is moved behind it.
            moment_us = self._find_complete_us()
            self.backlog.pack(self.complete_through_us)
            self._count_refused()
            has_told_all = self._send_packed(moment_us)
            is_asked = closing is not None or bool(self.drops)
            if closing is BatchKind.BYE or (is_asked and not has_told_all):
                # While a hole lasts, a bye would vouch for windows that are ahead of it.
                is_bye = closing is BatchKind.BYE and moment_us >= self._find_hole_end_us()
                self._send_empty(BatchKind.BYE if is_bye else BatchKind.HEARTBEAT, moment_us)
            self._log_causes()

    def offer(self, pack: Callable[[int], Iterable[PackedBatch]]) -> bool:
        """Send observations that others have stamped; False at the first batch that the sink does not take.

        ``pack`` is told the time of day, in µs, and returns them. What is not taken is no drop: it is with whoever
        offers it.
        """
        with self._sending:
            if not self._announce(0.0):
                return False
            moment_us = self._find_complete_us()
            offered = list(pack(self._wall_us()))
            for packed in offered[:-1]:
                if self._send(self._build_observations(packed, self.complete_through_us, ())) is not None:
                    return False
            told, is_all = self._next_drops()
            through_us = moment_us if is_all and self.backlog.is_settled else self.complete_through_us
            return all(
                self._send(self._build_observations(packed, through_us, told)) is None for packed in offered[-1:]
            )

    def close(self, patience_s: float, *, bye: bool = True) -> None:
        """Flush, say bye if asked and let go of the sink; give up after ``patience_s``."""
        self.end(patience_s, bye=bye)
        self.wait()

    def end(self, patience_s: float, *, bye: bool = True, until_us: int | None = None) -> None:
        """Have the thread do all that :meth:`close` does, by itself; ``patience_s`` counts from now.

        No moment later than ``until_us``, by default now, is completed: what is stamped from then on is not sent.
        """
        self._until_us = self._wall_us() if until_us is None else until_us
        self._patience_s, self._since_ns = patience_s, self.clock.monotonic_ns()
        self._last_kind = BatchKind.BYE if bye else BatchKind.HEARTBEAT
        self._ended.set()
        self._wake.set()

    def wait(self) -> None:
        """Wait for the end that was asked for, as long as it may take."""
        if self._thread is not None:
            self._thread.join(self._remaining_s())
            if self._is_finishing:
                self._thread.join(self._remaining_s(RELEASE_S))
            if self._thread.is_alive():
                self._give_up()
                return
        self._finish()

    def _finish(self) -> None:
        """Send what is left and let go of the sink, once."""
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
        """Flush; what fails at first may not fail again, and a sink is let go of all the same."""
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
        """Send what a flush that failed has left, before more is taken; what fails again is dropped."""
        packed = self.backlog.packed
        while packed:
            first = packed[0]
            try:
                self._send_first(self.complete_through_us, ())
            except Exception:  # noqa: BLE001 - it must not keep all others waiting
                _log.warning("a probe could not send a batch", exc_info=True)
                if packed and packed[0] is first:
                    self._drop_first(UNSENDABLE)

    def _count_refused(self) -> None:
        """Count what could not be packed."""
        refused = self.backlog.refused
        if self.backlog.has_lost_count:
            self._has_lost_count, self.backlog.has_lost_count = True, False
        while refused:
            self.drop(refused[0])
            refused.popleft()

    def _send_packed(self, moment_us: int) -> bool:
        """Send all batches; the last one carries drops, and the moment if these are all; whether that was taken."""
        packed = self.backlog.packed
        while len(packed) > 1:
            self._send_first(self.complete_through_us, ())
        if not packed:
            return False
        told, is_all = self._next_drops()
        return self._send_first(moment_us if is_all else self.complete_through_us, told) and is_all

    def _send_first(self, through_us: int, told: tuple[Drop, ...]) -> bool:
        """Send the first batch, or count it as dropped; until then it stays. Return whether it was taken."""
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
        return replace(
            self._build_batch(BatchKind.OBSERVATIONS, through_us, told),
            window_start_ms=packed.window_start_ms,
            count=packed.count,
            reasons=packed.reasons,
            **packed.fields,
        )

    def _send_empty(self, kind: BatchKind, moment_us: int) -> None:
        """Send records without observations until all drops are told; the last of them carries the moment."""
        is_all = False
        while not is_all:
            told, is_all = self._next_drops()
            through_us = moment_us if is_all else self.complete_through_us
            if self._send(self._build_batch(kind if is_all else BatchKind.HEARTBEAT, through_us, told)) is not None:
                return

    def _count_failed(self) -> None:
        """Count what was in records that were taken and have failed since; their numbers are a hole in the books."""
        for record in self.sink.failed():
            try:
                self._count_one_failed(decode(record))
            except Exception:  # noqa: BLE001 - one record must not keep the others from being counted
                self._has_lost_count = True

    def _count_one_failed(self, batch: Batch) -> None:
        self.drop({(batch.window_start_ms, UNDELIVERED): batch.count} if batch.count else {})
        # What such a record told is untold again; it was counted when it was dropped.
        with self._lock:
            self._count_drops({(drop.window_start_ms, drop.cause): drop.count for drop in batch.drops})

    def _log_causes(self) -> None:
        """Log each cause of drops once: whoever looks into the service's log learns that something is wrong."""
        with self._lock:
            new = self._causes - self._logged_causes
            self._logged_causes |= new
        for cause in sorted(new):
            who, got = self.instance, f"; got {self._examples[cause]}" if cause in self._examples else ""
            why = self.backlog.faults.get(cause) or _CAUSE_HINTS.get(cause, cause)
            _log.warning("a probe of %s at %s drops observations: %s%s", who.stream, who.node, why, got)

    def _next_drops(self) -> tuple[tuple[Drop, ...], bool]:
        """Return as many drops as a record may carry, and whether these are all."""
        with self._lock:
            told = self.drops.next_drops()
            return told, len(told) == len(self.drops)

    def _build_batch(self, kind: BatchKind, through_us: int, told: tuple[Drop, ...]) -> Batch:
        who, sent_at_us = self.instance, self._wall_us()
        seq = self.seq + (self.complete_through_us < min(through_us, self._find_hole_end_us()))
        return Batch(
            who.probe, who.epoch_us, seq, kind, who.stream, who.node, sent_at_us // WINDOW_US * WINDOW_MS,
            sent_at_us, through_us, drops=told, labels=who.labels,
        )  # fmt: skip

    def _send(self, batch: Batch) -> str | None:
        """Send a record; once it is taken, what it says is said. Return None, or why it was not taken."""
        sent_ns = self.clock.monotonic_ns()
        try:
            record = encode(batch)
        except Exception:  # noqa: BLE001 - what cannot be said now costs its own batch
            _log.warning("a probe made a record that breaks the wire", exc_info=True)
            return UNSENDABLE
        try:
            if not self.sink.send(record):
                return SINK_REFUSED
        except Exception:  # noqa: BLE001 - a team's own sink may raise anything
            # Whether it took the record nobody knows: the number is used up, so that no other record passes for a copy.
            self.seq = batch.seq + 1
            _log.warning("the sink of a probe failed", exc_info=True)
            return SINK_REFUSED
        self.seq, self.complete_through_us, self._sent_ns = batch.seq + 1, batch.complete_through_us, sent_ns
        try:
            with self._lock:
                self.drops.remove(batch.drops)
        except Exception:  # noqa: BLE001 - the record is sent; drops that are told twice hide no loss
            _log.warning("a probe may tell drops twice", exc_info=True)
        return None

    def _find_complete_us(self) -> int:
        """Return the moment up to which all is stamped, once what waits is taken; while a hole lasts it may wait."""
        before_us, wall_us = self.complete_through_us, min(self._wall_us(), self._until_us)
        bounds_us = [us for us in (wall_us, self._caught_up_us, self._held_us) if us is not None]
        moment_us = max(before_us, min(bounds_us))
        return before_us if moment_us < min(self._find_hole_end_us(), before_us + HOLE_US) else moment_us

    def _wall_us(self) -> int:
        return self.clock.wall_ns() // 1_000


def _log_error(told: str) -> None:
    """Log an error from the thread, which must outlive a log that fails, too."""
    with suppress(Exception):
        _log.warning(told, exc_info=True)
