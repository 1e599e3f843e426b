"""Stamps of a delivery: arrival when a message is polled, departure when the receiver has acknowledged it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hopwatch.deliver.assignment import SettledRecord
from hopwatch.deliver.kafka_records import HeldRecord
from hopwatch.deliver.settlement import Ending
from hopwatch.probes.contract.limits import MAX_REASON_CHARS, PARTITION_LABEL
from hopwatch.probes.probe import Probe

RETRIER_DELAY_S: Final = 60.0
"""Time by which the retrier may be late: it is restarted, or has a backlog."""


IN_HAND: Final = "waits in hand, in order by key"
"""Reason of a deferral to no retry topic."""


class DeliveryStamper:
    """Stamps the messages of one delivery at its node; never waits, and counts what it has to drop."""

    def __init__(self, probe: Probe, longest_try_s: float = 0.0) -> None:
        """Take the probe, which accepts event times of any age and follows, since a delivery may be behind.

        ``longest_try_s`` is the time that a message may be in hand in its next try.
        """
        self._probe = probe
        self._longest_try_us = round((longest_try_s + RETRIER_DELAY_S) * 1e6)

    def stamp_polled(self, polled: Sequence[HeldRecord]) -> None:
        """Stamp the arrival of messages, once: not when they come back from a retry topic."""
        for labels, own in _split_by_partition(polled):
            self._probe.arrived_many(*_list_ids(own), labels=labels)

    def stamp_delivered(self, delivered: Sequence[SettledRecord]) -> None:
        """Stamp the departure of messages."""
        for labels, own in _split_by_partition([one.held for one in delivered]):
            self._probe.departed_many(*_list_ids(own), labels=labels)

    def stamp_kept(self, settled: SettledRecord) -> None:
        """Stamp a message that was rejected or deferred."""
        if settled.settlement.ending is Ending.REJECTED:
            self._stamp_rejected(settled)
        else:
            self._stamp_deferred(settled)

    def stamp_waiting(self, waiting: Sequence[HeldRecord], until_us: int) -> None:
        """Stamp messages that wait in hand for a try at this time at the latest."""
        for held in waiting:
            self._probe.deferred(held.stamp_id, held.message.event_us, until_us + self._longest_try_us, IN_HAND)

    def catch_up(self, moment_us: int) -> None:
        """Report that all messages that were there at a moment, µs since 1970, have been stamped as they are due."""
        self._probe.caught_up(moment_us)

    def close(self, *, bye: bool) -> None:
        """Send the remaining stamps, and the bye, which declares that the stamps of this instance are complete."""
        self._probe.close(bye=bye)

    def _stamp_rejected(self, settled: SettledRecord) -> None:
        reason = settled.settlement.reason[:MAX_REASON_CHARS]
        held = settled.held
        labels = _label_partition(_find_partition(held))
        self._probe.rejected(held.stamp_id, held.message.event_us, reason, has_arrived=True, labels=labels)

    def _stamp_deferred(self, settled: SettledRecord) -> None:
        """Stamp until when a message waits at the longest: its next try has ended by then, or deferred it anew."""
        until_us = settled.settlement.until_us + self._longest_try_us
        reason = settled.settlement.reason[:MAX_REASON_CHARS]
        self._probe.deferred(settled.held.stamp_id, settled.held.message.event_us, until_us, reason)


def _split_by_partition(records: Iterable[HeldRecord]) -> Iterator[tuple[dict[str, int] | None, list[HeldRecord]]]:
    """Yield the records of each partition with its label.

    A stamp of departure has the label of the arrival: both are of one observation then.
    """
    alike: dict[int | None, list[HeldRecord]] = {}
    for held in records:
        alike.setdefault(_find_partition(held), []).append(held)
    for partition, own in alike.items():
        yield _label_partition(partition), own


def _find_partition(held: HeldRecord) -> int | None:
    """Return the partition that a message was polled from; None of a retry topic, as it arrived elsewhere."""
    return None if held.message.tries else held.message.position.partition


def _label_partition(partition: int | None) -> dict[str, int] | None:
    return None if partition is None else {PARTITION_LABEL: partition}


def _list_ids(records: Sequence[HeldRecord]) -> tuple[list[bytes], list[int]]:
    """Return the ids and event times of messages."""
    return [held.stamp_id for held in records], [held.message.event_us for held in records]
