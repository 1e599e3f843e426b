"""Stamps of the gate: arrival and departure for each accepted event, a rejection with its reason for the others."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Final

import numpy as np

from hopwatch.gate.event_checks import CheckedEvent
from hopwatch.probes import id_columns, recorder
from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.limits import MAX_REASON_CHARS
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.probe import CLOSE_S, MAX_STAMPS, QUEUE_FULL
from hopwatch.probes.recorder import Stamp, StampArrays, StampKind
from hopwatch.probes.sender import Sender
from hopwatch.probes.sinks import Sink
from hopwatch.probes.stamp_arguments import label_schema

MIN_ARRAY_EVENTS: Final = 16
"""Minimum number of events stamped as an array: joining many small arrays costs more than single stamps."""


class GateStamper:
    """Stamps the events of one stream at the gate's node; never waits, and counts what it has to drop."""

    def __init__(self, stream: str, node: str, sink: Sink, clock: Clock, *, id_text: bool = True) -> None:
        """Take the parts; nothing runs before :meth:`start`. Without ``id_text`` the texts of ids are not sent."""
        who = ProbeInstance(stream, node, f"{socket.gethostname()}-{os.getpid()}", clock.wall_ns() // 1_000)
        self.sender = Sender(who, sink, clock)
        self.sender.backlog.id_text = id_text

    def start(self) -> None:
        """Start to send stamps in the background."""
        self.sender.start()

    def stamp_entered(
        self, ids: Sequence[bytes], events_us: Sequence[int], arrived_us: int, now_us: int, schema: str = ""
    ) -> None:
        """Stamp events that arrived together, of one schema, and that the transport has acknowledged now."""
        moments = ((StampKind.ARRIVED, arrived_us * 1_000), (StampKind.DEPARTED, now_us * 1_000))
        self._stamp_many(ids, events_us, moments, schema)

    def stamp_released(self, ids: Sequence[bytes], events_us: Sequence[int], now_us: int, schema: str = "") -> None:
        """Stamp the departure of events that were deferred here before."""
        self._stamp_many(ids, events_us, ((StampKind.DEPARTED, now_us * 1_000),), schema)

    def stamp_deferred(self, event: CheckedEvent, arrived_us: int, until_us: int, reason: str) -> None:
        """Stamp an event that arrived and waits here until a moment at the longest, µs since 1970."""
        at_ns = arrived_us * 1_000
        who = event.event_id, event.event_us, at_ns
        self._append(Stamp(StampKind.ARRIVED, *who, labels=label_schema(event.schema)))
        self._append(Stamp(StampKind.DEFERRED, *who, _clean_reason(reason), until_us, label_schema(event.schema)))

    def stamp_rejected_inside(self, event: CheckedEvent, now_us: int) -> None:
        """Stamp a rejected event that was deferred here before, in the window of its event time as then."""
        reason = _clean_reason(event.reason)
        who = event.event_id, event.event_us, now_us * 1_000
        self._append(Stamp(StampKind.REJECTED_INSIDE, *who, reason, labels=label_schema(event.schema)))

    def _stamp_many(
        self, ids: Sequence[bytes], events_us: Sequence[int], moments: Sequence[tuple[StampKind, int]], schema: str
    ) -> None:
        labels = label_schema(schema)
        if len(ids) < MIN_ARRAY_EVENTS:
            for event_id, event_us in zip(ids, events_us, strict=True):
                for side, at_ns in moments:
                    self._append(Stamp(side, event_id, event_us, at_ns, labels=labels))
            return
        found = id_columns.encode_ids(ids)
        times = np.array(events_us, np.int64)
        for side, at_ns in moments:
            stamps = StampArrays(side, found.ids, times, at_ns, found.kinds, found.texts, labels)
            if not self.sender.append_many(stamps, MAX_STAMPS):
                self.sender.drop(recorder.refuse_array(times, at_ns, QUEUE_FULL))

    def stamp_rejected(self, event: CheckedEvent, arrived_us: int) -> None:
        """Stamp a rejected event; one that is too old counts in the window of its arrival, as its own is closed."""
        booked_us = arrived_us if event.is_stale else event.event_us
        reason = _clean_reason(event.reason)
        who = event.event_id, booked_us, arrived_us * 1_000
        self._append(Stamp(StampKind.REJECTED, *who, reason, labels=label_schema(event.schema)))

    def _append(self, stamp: Stamp) -> None:
        if self.sender.waiting < MAX_STAMPS:
            self.sender.queue.append(stamp)
        else:
            self.sender.drop(recorder.refuse_stamp(stamp.event_time, stamp.at_ns, QUEUE_FULL))

    def close(self, *, bye: bool = True) -> None:
        """Send the remaining stamps and the bye, which declares that the stamps of this instance are complete."""
        self.sender.close(CLOSE_S, bye=bye)


def _clean_reason(reason: str) -> str:
    return reason[:MAX_REASON_CHARS].encode("utf-8", "replace").decode("utf-8")
