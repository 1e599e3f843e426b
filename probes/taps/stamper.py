"""Stamper of a tap: stamps messages in arrays, and reports those that cannot be stamped as drops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from hopwatch import Probe
from hopwatch.probes.contract.limits import PARTITION_LABEL
from hopwatch.probes.metrics.account import TAP_OUTCOMES, Account, Output, RefusalReason
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.documents import PassedRecord, SkippedMessage, StampableMessage
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.taps.tally import TapTally
from hopwatch.probes.taps.untimed_messages import MissedMessages, UntimedMessages
from hopwatch.probes.values import SkipReason

SETTLE_EVERY_S: Final = 1.0
"""Interval at which stamps are made durable and the position is saved; a crash repeats at most so much."""
SETTLE_S: Final = 5.0
"""Time that one try waits for the transport."""
MAX_UNSETTLED: Final = 100_000
"""Stamps after which the tap settles before the interval is over; the probe holds twice as many."""


class TapStamper:
    """Stamper with one probe at one side of its node; tracks when its stamps have to be made durable."""

    def __init__(
        self, opened: tuple[Probe, BlockingSink], side: StampSide, around: RunContext, *, are_bad_messages: bool = True
    ) -> None:
        """Take a probe and its sink; ``are_bad_messages``: count unreadable input as messages, and so as drops."""
        self.probe, self._sink = opened
        self.tally = TapTally()
        self.account = Account(TAP_OUTCOMES)
        self._stamp_many = self.probe.arrived_many if side is StampSide.IN else self.probe.departed_many
        self._context, self._are_bad_messages = around, are_bad_messages
        self._untimed = UntimedMessages()
        self._settled_s = around.monotonic_s()
        self._unsettled = 0

    def stamp_messages(self, found: Iterable[StampableMessage | SkippedMessage | PassedRecord]) -> None:
        """Stamp the readable messages now, and count the others, and what is no message."""
        seen: list[StampableMessage] = []
        for one in found:
            if isinstance(one, StampableMessage):
                seen.append(one)
                self._count_missed(self._untimed.add_good(one.event_us))
                continue
            if isinstance(one, PassedRecord):
                self.tally.passed[one.kind] += 1
                continue
            self._count_bad(one.reason, 1)
            if one.event_us is None:
                self._count_untimed(one.reason, 1)
            else:
                self._count(one.reason, 1, one.event_us)
        self._count_missed(self._untimed.flush(self._context.wall_us()))
        if seen:
            alike: dict[tuple[str, int | None], list[StampableMessage]] = {}
            for one in seen:
                alike.setdefault((one.schema, one.partition), []).append(one)
            for (schema, partition), own in alike.items():
                events_us = np.array([one.event_us for one in own], np.int64)
                labels = None if partition is None else {PARTITION_LABEL: partition}
                self._stamp_many([one.message_id for one in own], events_us, schema=schema, labels=labels)
            self.account.receive(len(seen))
            self.tally.stamped += len(seen)
            self.tally.snapshot_reads += sum(one.is_snapshot for one in seen)
            self._unsettled += len(seen)

    def count_bad(self, reason: SkipReason, count: int) -> None:
        """Count unreadable messages; for the monitor they are drops of this node, and so never losses."""
        self._count_bad(reason, count)
        self._count_untimed(reason, count)
        self._count_missed(self._untimed.flush(self._context.wall_us()))

    def _count_bad(self, reason: SkipReason, count: int) -> None:
        self.tally.bad[reason] += count
        self.account.receive(count)
        self.account.drop(count, reason)

    def _count_untimed(self, reason: SkipReason, count: int) -> None:
        self._untimed.add_bad(reason, count)
        if self._are_bad_messages:
            # Their first drop is their own; with each one more they are repeated.
            self.tally.repeated -= count

    def _count_missed(self, all_missed: Iterable[MissedMessages]) -> None:
        for missed in all_missed:
            self._count(*missed)
            self.tally.repeated += missed.number if self._are_bad_messages else 0

    def _count(self, reason: SkipReason, count: int, event_us: int) -> None:
        if self._are_bad_messages:
            for _ in range(count):
                self.probe.missed(reason, event_us)

    @property
    def is_due(self) -> bool:
        """Return whether the stamps should be made durable now."""
        return self._context.monotonic_s() - self._settled_s >= SETTLE_EVERY_S or self._unsettled >= MAX_UNSETTLED

    def settle(self) -> bool:
        """Make the stamps durable; return whether they are, so that the position may be saved.

        Raises:
            TapSourceError: some stamps are lost for good.
        """
        self._settled_s = self._context.monotonic_s()
        self._sink.is_settled = False
        # Ignore the result of flush: it is False after drops, and bad messages are drops.
        self.probe.flush(SETTLE_S)
        if self._sink.has_lost:
            self.account.refuse(self._unsettled, RefusalReason.NOT_WRITTEN)
            self._unsettled = 0
            raise TapSourceError(
                "the sink could not keep what was stamped last: see to it and start again; the last position that was "
                "kept is before that"
            )
        if self._sink.is_settled:
            self.account.emit(self._unsettled, Output.STAMPS)
            self._unsettled = 0
        return self._sink.is_settled
