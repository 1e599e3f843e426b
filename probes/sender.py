"""The sender: takes what was stamped, off the host's threads, and sends it: batches, heartbeats, a bye at the end.

One thread, a bounded queue. Every number is given once a record was taken, so that a probe makes no hole itself; what
cannot be sent is counted by window and cause, and told with the next record that is taken. Only where drops are of more
windows than it counts, a number is left out: the account of that time has a hole then (ADR 0034).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from probes import recorder
from probes.clock import Clock
from probes.contract.batch import Batch, Drop, Kind
from probes.contract.envelope import RecordError, decode, encode
from probes.contract.limits import WINDOW_MS, WINDOW_US
from probes.packing import BATCH_OBSERVATIONS, Packed
from probes.recorder import BAD_EVENT_TIME, BAD_MESSAGE_ID, Refusals, Stamp, Stamps
from probes.sinks import Sink
from probes.untold import Untold

CALLS_AT_ONCE: Final = 2 * BATCH_OBSERVATIONS
"""How many calls are packed at once: it takes the interpreter's lock for some 5 ms."""
TICK_S: Final = 0.5
"""How often the thread looks after its sink when nothing else is due."""
HOLE_US: Final = 300_000_000
"""How far ahead of the clock windows may be, and so the hole that tells of drops in windows that nobody knows.

For so long its end waits, too, so that a probe which goes on like that makes few holes. Twice as long a monitor looks
out for stamps of an instance that says nothing more.
"""
LET_GO_S: Final = 1.0
"""How long a sink may take to let go of what it waited for in vain."""
SINK_REFUSED: Final = "sink refused"
UNSENDABLE: Final = "unsendable"
UNDELIVERED: Final = "undelivered"

_WHY: Final = {
    BAD_EVENT_TIME: "an event time is an aware datetime or int µs since 1970; strict=True raises at the call",
    BAD_MESSAGE_ID: "a message id is a UUID, 16 bytes, an int or a str; strict=True raises at the call",
    SINK_REFUSED: "its sink is full or cannot be written",
    UNDELIVERED: "its sink took them, and the transport then refused them for good",
}
_log = logging.getLogger("hopwatch.probe")


@dataclass(frozen=True, slots=True)
class Instance:
    """Who sends: one running probe."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return what tells this instance from all others."""
        return f"{self.stream}.{self.node}.{self.probe}.{self.epoch_us}"


class Sender:
    """Turns the queue into records; :meth:`step` does all that is due, and may be called by hand."""

    def __init__(
        self, instance: Instance, sink: Sink, clock: Clock, *, flush_every_s: float, heartbeat_every_s: float
    ) -> None:
        """Take the parts; no thread runs before :meth:`start`."""
        self.instance, self.sink, self.clock = instance, sink, clock
        self.flush_every_ns, self.heartbeat_every_ns = int(flush_every_s * 1e9), int(heartbeat_every_s * 1e9)
        self.queue: deque[Stamp | Stamps] = deque()
        self.drops = Untold()
        # Up to which moment the books have to have a hole.
        self._hole_until_us = 0
        self.dropped_total = 0
        # Whether the texts of ids are sent beside their hashes.
        self.id_text = True
        self._got: dict[str, str] = {}
        self._causes: set[str] = set()
        self._told_causes: set[str] = set()
        self.seq = 0
        self.complete_through_us = instance.epoch_us
        # Up to which moment a tap has seen its source; None for a probe that stamps what happens as it happens.
        self._caught_up_us: int | None = None
        self._folded = 0
        self._flushed_ns = self._sent_ns = clock.monotonic_ns()
        # Held while records are sent, which may take long; the host never waits for it but in flush and close.
        self._sending = threading.RLock()
        # Held for a few instructions only, by the host too.
        self._counting = threading.RLock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        # How the end was asked for, and whether somebody is at it.
        self._patience_s, self._since_ns, self._last = 0.0, 0, Kind.BYE
        self._is_finishing = False

    @property
    def waiting(self) -> int:
        """Return how many stamps wait, those of arrays one by one."""
        return len(self.queue) + self._folded

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="hopwatch-probe", daemon=True)
        self._thread.start()

    def follow(self) -> None:
        """Complete nothing by the clock alone: a tap may be behind its source, and says itself how far it is."""
        self._caught_up_us = self.complete_through_us = 0

    def catch_up(self, moment_us: int) -> None:
        """Let moments up to this one be completed; nothing to a sender that does not follow."""
        if self._caught_up_us is not None:
            self._caught_up_us = max(self._caught_up_us, moment_us)

    def append_many(self, stamps: Stamps, most: int) -> bool:
        """Take arrays into the queue; False if more than ``most`` stamps would wait.

        Two arrays of one length always find room, because an arrival and its departure belong together.
        """
        count = len(stamps.event_times_us)
        with self._counting:
            if self.waiting + count > max(most, 2 * count):
                return False
            self._folded += count - 1
        self.queue.append(stamps)
        if self.waiting >= BATCH_OBSERVATIONS:
            self._wake.set()
        return True

    def drop(self, refusals: Mapping[tuple[int, str], int]) -> None:
        """Count observations that will never be sent, by (window start in ms, cause)."""
        with self._counting:
            self._count(refusals)
            self.dropped_total += sum(refusals.values())
            self._causes.update(cause for _, cause in refusals)
            if isinstance(refusals, Refusals):
                self._got |= refusals.got

    def _count(self, drops: Mapping[tuple[int, str], int]) -> None:
        """Have drops told; those that find no room count where all was told last, and the hole begins there."""
        through_us = max(self.complete_through_us, self.instance.epoch_us)
        if not self.drops.add(drops, through_us // WINDOW_US * WINDOW_MS):
            self._hole_until_us = max(through_us, self._wall_us()) + HOLE_US

    def wake(self) -> None:
        """Ask the thread for a step now."""
        self._wake.set()

    def step(self) -> None:
        """Do what is due: flush, or a heartbeat, and let the sink do the same."""
        now_ns = self.clock.monotonic_ns()
        if now_ns - self._sent_ns >= self.heartbeat_every_ns:
            self.flush(Kind.HEARTBEAT)
        elif self.waiting >= BATCH_OBSERVATIONS or now_ns - self._flushed_ns >= self.flush_every_ns:
            self.flush()
        self.tick()

    def tick(self) -> None:
        """Let the sink do what time alone makes due; a sink is in the hands of one thread at a time."""
        with self._sending:
            self.sink.tick()
            self._count_failed()

    def settle(self, patience_s: float) -> bool:
        """Flush, and wait until the transport has all of it; whether it has, with nothing dropped on the way."""
        before = self.dropped_total
        with self._sending:
            self.flush()
            is_settled = self.sink.settle(patience_s)
            self._count_failed()
        return is_settled and self.dropped_total == before

    def flush(self, closing: Kind | None = None) -> None:
        """Send all that waits and all drops; a bye if asked; a heartbeat if asked and nothing else was sent."""
        with self._sending:
            self._flushed_ns = self.clock.monotonic_ns()
            # The moment is read before the queue is taken: what is appended later is moved behind it.
            moment_us = self._moment_us()
            batches = [packed for calls in self._taken() for packed in self._recorded(calls)]
            has_told_all = self._send_batches(batches, moment_us)
            is_asked = closing is not None or bool(self.drops)
            if closing is Kind.BYE or (is_asked and not has_told_all):
                # While a hole lasts, a bye would vouch for windows that are ahead of it.
                is_bye = closing is Kind.BYE and moment_us >= self._hole_until_us
                self._send_empty(Kind.BYE if is_bye else Kind.HEARTBEAT, moment_us)
            self._tell_causes()

    def offer(self, pack: Callable[[int], Iterable[Packed]]) -> bool:
        """Send observations that others have stamped; False at the first batch that the sink does not take.

        ``pack`` is told the time of day, in µs, and returns them. What is not taken is no drop: it is with whoever
        offers it.
        """
        with self._sending:
            moment_us = self._moment_us()
            offered = list(pack(self._wall_us()))
            for packed in offered[:-1]:
                if self._send(self._observations(packed, self.complete_through_us, ())) is not None:
                    return False
            told, is_all = self._to_tell()
            through_us = moment_us if is_all else self.complete_through_us
            return all(self._send(self._observations(packed, through_us, told)) is None for packed in offered[-1:])

    def close(self, patience_s: float, *, bye: bool = True) -> None:
        """Flush, say bye if asked and let go of the sink; give up after ``patience_s``."""
        self.end(patience_s, bye=bye)
        self.wait()

    def end(self, patience_s: float, *, bye: bool = True) -> None:
        """Have the thread do all that :meth:`close` does, by itself; ``patience_s`` counts from now."""
        self._patience_s, self._since_ns = patience_s, self.clock.monotonic_ns()
        self._last = Kind.BYE if bye else Kind.HEARTBEAT
        self._ended.set()
        self._wake.set()

    def wait(self) -> None:
        """Wait for the end that was asked for, as long as it may take."""
        if self._thread is not None:
            self._thread.join(self._left_s())
            if self._is_finishing:
                self._thread.join(self._left_s(LET_GO_S))
            if self._thread.is_alive():
                self._give_up()
                return
        self._finish()

    def _finish(self) -> None:
        """Send what is left and let go of the sink, once."""
        if self._is_finishing:
            return
        self._is_finishing = True
        if not self._sending.acquire(timeout=self._left_s()):
            self._give_up()
            return
        try:
            self.flush(self._last)
            self.sink.close(self._left_s())
            self._count_failed()
        finally:
            self._sending.release()

    def _left_s(self, more_s: float = 0.0) -> float:
        return max(0.0, self._patience_s + more_s - (self.clock.monotonic_ns() - self._since_ns) / 1e9)

    def _give_up(self) -> None:
        told = "a probe gave up after %s s: its sink is busy, %d stamps are unsent"
        _log.warning(told, self._patience_s, self.waiting)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(min(TICK_S, self.flush_every_ns / 1e9))
            self._wake.clear()
            try:
                self.step()
            except Exception:  # noqa: BLE001 - nothing may reach the host; the loop goes on
                _log.warning("a probe could not send", exc_info=True)
        try:
            self._finish()
        except Exception:  # noqa: BLE001 - as above
            _log.warning("a probe could not end well", exc_info=True)

    def _taken(self) -> Iterator[list[Stamp | Stamps]]:
        """Take what waits now out of the queue, so many calls at a time: to pack them holds the host's threads up."""
        waiting = len(self.queue)
        for first in range(0, waiting, CALLS_AT_ONCE):
            calls = [self.queue.popleft() for _ in range(min(CALLS_AT_ONCE, waiting - first))]
            with self._counting:
                self._folded -= sum(len(stamps.event_times_us) - 1 for stamps in calls if isinstance(stamps, Stamps))
            yield calls

    def _recorded(self, calls: list[Stamp | Stamps]) -> list[Packed]:
        batches, refusals = recorder.record(calls, self.complete_through_us, id_text=self.id_text)
        self.drop(refusals)
        return batches

    def _send_batches(self, batches: list[Packed], moment_us: int) -> bool:
        """Send batches; the last one carries drops, and the moment if these are all. Return whether that was taken."""
        for packed in batches[:-1]:
            self._send_batch(packed, self.complete_through_us, ())
        if not batches:
            return False
        told, is_all = self._to_tell()
        is_taken = self._send_batch(batches[-1], moment_us if is_all else self.complete_through_us, told)
        return is_taken and is_all

    def _send_batch(self, packed: Packed, through_us: int, told: tuple[Drop, ...]) -> bool:
        cause = self._send(self._observations(packed, through_us, told))
        if cause is not None:
            self.drop({(packed.window_start_ms, cause): packed.count})
        return cause is None

    def _observations(self, packed: Packed, through_us: int, told: tuple[Drop, ...]) -> Batch:
        return replace(
            self._batch(Kind.OBSERVATIONS, through_us, told),
            window_start_ms=packed.window_start_ms,
            count=packed.count,
            reasons=packed.reasons,
            **packed.fields,
        )

    def _send_empty(self, kind: Kind, moment_us: int) -> None:
        """Send records without observations until all drops are told; the last of them carries the moment."""
        is_all = False
        while not is_all:
            told, is_all = self._to_tell()
            through_us = moment_us if is_all else self.complete_through_us
            if self._send(self._batch(kind if is_all else Kind.HEARTBEAT, through_us, told)) is not None:
                return

    def _count_failed(self) -> None:
        """Count what was in records that were taken and have failed since; their numbers are a hole in the books."""
        for record in self.sink.failed():
            batch = decode(record)
            self.drop({(batch.window_start_ms, UNDELIVERED): batch.count} if batch.count else {})
            # What such a record told is untold again; it was counted when it was dropped.
            with self._counting:
                self._count({(drop.window_start_ms, drop.cause): drop.count for drop in batch.drops})

    def _tell_causes(self) -> None:
        """Log each cause of drops once: whoever looks into the service's log learns that something is wrong."""
        with self._counting:
            new = self._causes - self._told_causes
            self._told_causes |= new
        for cause in sorted(new):
            who, got = self.instance, f"; got {self._got[cause]}" if cause in self._got else ""
            told = "a probe of %s at %s drops observations: %s%s"
            _log.warning(told, who.stream, who.node, _WHY.get(cause, cause), got)

    def _to_tell(self) -> tuple[tuple[Drop, ...], bool]:
        """Return as many drops as a record may carry, and whether these are all."""
        with self._counting:
            told = self.drops.first()
            return told, len(told) == len(self.drops)

    def _batch(self, kind: Kind, through_us: int, told: tuple[Drop, ...]) -> Batch:
        who, sent_at_us = self.instance, self._wall_us()
        seq = self.seq + (self.complete_through_us < min(through_us, self._hole_until_us))
        return Batch(
            who.probe, who.epoch_us, seq, kind, who.stream, who.node, sent_at_us // WINDOW_US * WINDOW_MS,
            sent_at_us, through_us, drops=told, labels=who.labels,
        )  # fmt: skip

    def _send(self, batch: Batch) -> str | None:
        """Send a record; once it is taken, what it says is said. Return None, or why it was not taken."""
        try:
            record = encode(batch)
        except RecordError:
            _log.warning("a probe made a record that breaks the wire", exc_info=True)
            return UNSENDABLE
        try:
            if not self.sink.send(record):
                return SINK_REFUSED
        except Exception:  # noqa: BLE001 - a team's own sink may raise anything; it has not taken the record then
            _log.warning("the sink of a probe failed", exc_info=True)
            return SINK_REFUSED
        self.seq = batch.seq + 1
        self._sent_ns = self.clock.monotonic_ns()
        self.complete_through_us = batch.complete_through_us
        with self._counting:
            self.drops.remove(batch.drops)
        return None

    def _moment_us(self) -> int:
        """Return the moment up to which all is stamped, once what waits is taken; while a hole lasts it may wait."""
        before_us, wall_us = self.complete_through_us, self._wall_us()
        moment_us = max(before_us, wall_us if self._caught_up_us is None else min(wall_us, self._caught_up_us))
        return before_us if moment_us < min(self._hole_until_us, before_us + HOLE_US) else moment_us

    def _wall_us(self) -> int:
        return self.clock.wall_ns() // 1_000
