"""Backlog of a sender: queued calls, calls that are being packed, and packed batches.

An error loses nothing: calls stay held until they are packed or refused, batches and refusals stay until the sender is
done with them, and the next try continues from there.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import Final

from hopwatch.probes import recorder
from hopwatch.probes.packing import BATCH_OBSERVATIONS, PackedBatch
from hopwatch.probes.recorder import Refusals, Stamp, StampArrays

MAX_CALLS_PER_PACK: Final = 2 * BATCH_OBSERVATIONS
"""Calls that are packed at once: this holds the interpreter's lock for about 5 ms."""
UNRECORDABLE: Final = "unrecordable"
MAX_LIGHT_CHARS: Final = 64
"""Ids of at most so many characters cost no more than the stamp itself, and are not weighed."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes that all longer ids in the backlog may take together."""
_BYTES_PER_CHAR: Final = 4
_EVENT_TIME_CAUSES: Final = {recorder.IMPLAUSIBLE, recorder.BAD_EVENT_TIME}


class Backlog:
    """Stamps of one probe instance that are not sent yet; the host's threads append, one thread at a time packs."""

    def __init__(self, queue: deque[Stamp | StampArrays] | None = None, max_age_us: int | None = None) -> None:
        """Start empty, or with the stamps of a queue; refuse event times older than ``max_age_us``, if it is given."""
        self.max_age_us = max_age_us
        self.max_bytes = MAX_BYTES
        # Copied in one step: other threads of the child of a fork may append meanwhile.
        self._waiting_bytes = sum(map(weigh_call, tuple(queue or ())))
        self.id_text = True
        """Send the texts of ids beside their hashes."""
        self.faults: dict[str, str | None] = {}
        """Description of the first refused event time, by cause, for the log."""
        self.queue: deque[Stamp | StampArrays] = deque() if queue is None else queue
        self.packed: deque[PackedBatch] = deque()
        self.refused: deque[Refusals] = deque()
        self.has_lost_count = False
        """True if stamps of unknown windows were dropped since the sender last cleared this."""
        self._held: list[Stamp | StampArrays] = []
        self._extra_stamps = 0
        # Held for a few instructions only, by the host too.
        self._lock = threading.RLock()

    @property
    def waiting(self) -> int:
        """Return how many stamps wait, those of arrays one by one."""
        return len(self.queue) + self._extra_stamps

    @property
    def is_settled(self) -> bool:
        """Return whether all calls that were taken from the queue are packed and sent, or counted."""
        return not (self._held or self.packed or self.refused)

    def append_many(self, stamps: StampArrays, most: int) -> bool:
        """Queue arrays; False if more than ``most`` stamps would wait, or their ids would take too many bytes.

        Two arrays of one length always find room, because an arrival and its departure belong together.
        """
        count, weighs = len(stamps.event_times_us), weigh_call(stamps)
        with self._lock:
            is_too_many = self.waiting + count > max(most, 2 * count)
            if is_too_many or self._waiting_bytes + weighs > max(self.max_bytes, 2 * weighs):
                return False
            self._extra_stamps += count - 1
            self._waiting_bytes += weighs
        self.queue.append(stamps)
        return True

    def append_heavy(self, stamp: Stamp) -> bool:
        """Queue a stamp that may have a long id; False if the waiting ids would take too many bytes."""
        weighs = weigh_call(stamp)
        with self._lock:
            if self._waiting_bytes + weighs > self.max_bytes:
                return False
            self._waiting_bytes += weighs
        self.queue.append(stamp)
        return True

    def pack(self, not_before_us: int) -> None:
        """Pack the held calls and those that wait now, a bounded number at a time: packing blocks host threads."""
        waiting = len(self.queue)
        while self._held or waiting:
            # Calls that an earlier try has left come first, by themselves.
            taken = 0 if self._held else min(MAX_CALLS_PER_PACK, waiting)
            self._hold_calls(taken)
            waiting -= taken
            batches, refusals = self._build_batches(self._held, not_before_us)
            self._find_fault(refusals)
            self.packed.extend(batches)
            self._held = []
            if refusals:
                self.refused.append(refusals)

    def _hold_calls(self, count: int) -> None:
        held, queue = self._held, self.queue
        for _ in range(count):
            call = queue[0]
            held.append(call)
            queue.popleft()
            weighs = weigh_call(call)
            if weighs or isinstance(call, StampArrays):
                with self._lock:
                    self._waiting_bytes = max(0, self._waiting_bytes - weighs)
                    self._extra_stamps -= len(call.event_times_us) - 1 if isinstance(call, StampArrays) else 0

    def _find_fault(self, refusals: Refusals) -> None:
        """Keep a description of the first invalid event time of each cause."""
        for cause in {cause for _, cause in refusals} & _EVENT_TIME_CAUSES - self.faults.keys():
            self.faults[cause] = None
            with suppress(Exception):  # a host's own classes may raise anything, and these are words only
                self.faults[cause] = recorder.find_first_fault(self._held, self.max_age_us, cause)

    def _build_batches(
        self, calls: list[Stamp | StampArrays], not_before_us: int
    ) -> tuple[list[PackedBatch], Refusals]:
        """Return batches and refusals of calls; on an error try each half, so that only the faulty call is lost."""
        try:
            return recorder.build_batches(calls, not_before_us, self.max_age_us, id_text=self.id_text)
        except Exception:  # noqa: BLE001 - a host's own classes may raise anything, and memory may be short
            if len(calls) == 1:
                return [], self._refuse_call(calls[0])
        half = len(calls) // 2
        batches, refusals = self._build_batches(calls[:half], not_before_us)
        more, refused = self._build_batches(calls[half:], not_before_us)
        refusals.update(refused)
        refusals.examples |= refused.examples
        return batches + more, refusals

    def _refuse_call(self, call: Stamp | StampArrays) -> Refusals:
        """Count the stamps of an unrecordable call in their windows; ask for a hole if these are unknown."""
        try:
            if isinstance(call, StampArrays):
                return recorder.refuse_array(call.event_times_us, call.at_ns, UNRECORDABLE, self.max_age_us)
            return recorder.refuse_stamp(call.event_time, call.at_ns, UNRECORDABLE, self.max_age_us)
        except Exception:  # noqa: BLE001 - as above
            self.has_lost_count = True
            count = len(call.event_times_us) if isinstance(call, StampArrays) else 1
            return recorder.refuse_count(count, call.at_ns, UNRECORDABLE)


def weigh_call(call: Stamp | StampArrays) -> int:
    """Return the bytes that the ids of a call take, at most; 0 for ids of usual length."""
    if isinstance(call, StampArrays):
        return sum(map(len, filter(None, call.id_texts or ())))
    message_id: object = call.message_id
    # Exactly these: a class of a host's own may raise when it is asked for its length.
    if type(message_id) is not str and type(message_id) is not bytes:
        return 0
    return _BYTES_PER_CHAR * len(message_id) if len(message_id) > MAX_LIGHT_CHARS else 0
