"""Test support for services that embed a probe: a sink in memory, a manual clock, and the sent observations.

::

    sink, clock = MemorySink(), ManualClock()
    with Probe(stream="orders", node="router", sink=sink, clock=clock, strict=True) as probe:
        handle(message, probe)
    assert [one.message_id for one in observations(sink)] == [id_bytes("order-17")]
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hopwatch.probes.contract.batch import Batch, Outcome
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import NO_REASON, NOT_STAMPED
from hopwatch.probes.sinks.memory import MemorySink

__all__ = ["EPOCH_US", "ManualClock", "MemorySink", "Observation", "batch_observations", "id_bytes", "observations"]

EPOCH_US: Final = 1_700_000_040_000_000
"""Initial time of a manual clock, µs since 1970 UTC: the start of a minute."""


class ManualClock:
    """Clock for a probe that moves only when a test moves it."""

    def __init__(self, us: int = EPOCH_US) -> None:
        """Set the time of day, µs since 1970 UTC; the monotonic time starts at 0."""
        self.us = us
        self.monotonic_us = 0

    def wall_ns(self) -> int:
        """Return the time of day, ns since 1970 UTC."""
        return self.us * 1_000

    def monotonic_ns(self) -> int:
        """Return the time that never goes back, ns."""
        return self.monotonic_us * 1_000

    def advance(self, seconds: float) -> None:
        """Advance both times."""
        self.us += round(seconds * 1e6)
        self.monotonic_us += round(seconds * 1e6)


class Observation(NamedTuple):
    """Stamps of one message at one node, in µs since 1970 UTC; None where it was not stamped.

    ``message_id`` has 16 bytes: :func:`id_bytes` of the service's id. ``reason`` belongs to a filtered, rejected or
    deferred message; ``until_us`` is when the wait of a deferred one ends, None of others.
    """

    message_id: bytes
    event_us: int
    in_us: int | None
    out_us: int | None
    outcome: int = Outcome.PASSED
    reason: str | None = None
    until_us: int | None = None


def observations(sink: MemorySink) -> list[Observation]:
    """Return all observations that a probe has sent, in their order; flush the probe before.

    Raises:
        RecordError: a record is not from a probe.
    """
    return [observation for record in sink.records for observation in batch_observations(decode(record))]


def batch_observations(batch: Batch) -> list[Observation]:
    """Return the observations of one batch."""
    events = np.frombuffer(batch.event_offset_us, "<u4").astype(np.int64) + batch.window_start_ms * 1_000
    ids = [batch.message_ids[start : start + 16] for start in range(0, 16 * batch.count, 16)]
    outcomes = list(batch.outcome) or [0] * batch.count
    reasons = list(batch.reason) or [NO_REASON] * batch.count
    until_us = np.frombuffer(batch.until_us, "<i8").tolist() or [0] * batch.count
    return [
        Observation(
            message_id,
            int(event_us),
            _moment(batch.lag_in_us, place, int(event_us)),
            _moment(batch.lag_out_us, place, int(event_us)),
            outcome,
            None if reason == NO_REASON else batch.reasons[reason],
            until_us[place] if outcome == Outcome.DEFERRED else None,
        )
        for place, (message_id, event_us, outcome, reason) in enumerate(
            zip(ids, events, outcomes, reasons, strict=True)
        )
    ]


def _moment(lags: bytes, place: int, event_us: int) -> int | None:
    if not lags:
        return None
    lag = int(np.frombuffer(lags, "<i8")[place])
    return None if lag == NOT_STAMPED else event_us + lag
