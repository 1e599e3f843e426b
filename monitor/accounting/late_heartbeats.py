"""Heartbeats of the monitor that were under way for long, as when a broker is down or cannot be reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hopwatch.monitor.accounting.ledger import InstanceKey
from hopwatch.monitor.accounting.new_batches import sort_new_batches
from hopwatch.monitor.kernel.books import Book
from hopwatch.monitor.payloads import FactSheet
from hopwatch.probes.contract.limits import MONITOR_STREAM

MIN_LATE_US: Final = 10_000_000
"""Shorter delays are not told: a pause of a process or a busy disk makes them, too."""


class LateHeartbeat(NamedTuple):
    """Heartbeat that was under way for ``late_us`` or more, and would have arrived at a moment otherwise."""

    at_us: int
    late_us: int


def find_late_heartbeats(books: Mapping[InstanceKey, Book], sheets: Iterable[FactSheet]) -> list[LateHeartbeat]:
    """Return the heartbeats that were late, of those that came.

    What a heartbeat takes by two clocks, from when it is sent until it arrives, is compared with what the one before
    took: so clocks that differ make none late, and it was under way for no less than the difference.
    """
    pulses = (sheet for sheet in sheets if sheet.stream == MONITOR_STREAM)
    found: list[LateHeartbeat] = []
    for _, book, facts in sort_new_batches(books, pulses):
        before_us = -book.skew_us if book else None
        for fact in facts:
            took_us = fact.arrival_us - fact.sent_at_us
            if before_us is not None and took_us - before_us >= MIN_LATE_US:
                late_us = took_us - before_us
                found.append(LateHeartbeat(fact.arrival_us - late_us, late_us))
            before_us = took_us
    return found
