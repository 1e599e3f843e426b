"""What tests of probes share: a clock set by hand, and what records say, one observation a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from probes.contract.batch import Batch, Drop
from probes.contract.envelope import decode
from probes.contract.limits import NO_REASON, NOT_STAMPED

EPOCH_US: Final = 1_700_000_040_000_000
"""Where clocks stand at first: the start of a minute."""


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self, us: int = EPOCH_US) -> None:
        """Set both times."""
        self.us = us
        self.monotonic_us = 0

    def wall_ns(self) -> int:
        """Return the time of day."""
        return self.us * 1_000

    def monotonic_ns(self) -> int:
        """Return the time that never goes back."""
        return self.monotonic_us * 1_000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.us += round(seconds * 1e6)
        self.monotonic_us += round(seconds * 1e6)


class Said(NamedTuple):
    """One observation of a record, its packed fields unpacked; moments in µs since 1970."""

    message_id: bytes
    event_us: int
    in_us: int | None
    out_us: int | None
    outcome: int = 0
    reason: str | None = None


def said(batch: Batch) -> list[Said]:
    """Return the observations of a batch."""
    events = np.frombuffer(batch.event_offset_us, "<u4").astype(np.int64) + batch.window_start_ms * 1_000
    ids = [batch.message_ids[start : start + 16] for start in range(0, 16 * batch.count, 16)]
    outcomes = list(batch.outcome) or [0] * batch.count
    reasons = list(batch.reason) or [NO_REASON] * batch.count
    return [
        Said(
            message_id,
            int(event_us),
            _moment(batch.lag_in_us, place, int(event_us)),
            _moment(batch.lag_out_us, place, int(event_us)),
            outcome,
            None if reason == NO_REASON else batch.reasons[reason],
        )
        for place, (message_id, event_us, outcome, reason) in enumerate(
            zip(ids, events, outcomes, reasons, strict=True)
        )
    ]


def told(records: Iterable[bytes]) -> list[Said]:
    """Return all observations of some records, in their order."""
    return [observation for record in records for observation in said(decode(record))]


def drops(records: Iterable[bytes]) -> list[Drop]:
    """Return all drops that some records tell, in their order."""
    return [drop for record in records for drop in decode(record).drops]


def _moment(lags: bytes, place: int, event_us: int) -> int | None:
    if not lags:
        return None
    lag = int(np.frombuffer(lags, "<i8")[place])
    return None if lag == NOT_STAMPED else event_us + lag
