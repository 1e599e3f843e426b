"""Account of one SDK: how many spans it says have ended, and how many of these came here.

An SDK counts a span a moment after it has begun or ended, and reads its counters one after the other. So a reading may
be off by some spans that begin or end close to it. Where four readings in turn agree to the span with what came, none
is missing between the inner two: each would have to be off by the same. Where they do not agree, every span that begins
or ends close to a reading counts as one that may hide another, so that what is missing is never too little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading

CLOSE_NS: Final = 50_000_000
"""Time before and behind a reading in which spans may be in it or not."""
PATIENCE_S: Final = 20.0
"""Time that the spans of a reading have to come: an SDK sends them every 5 s, and again where that failed."""
MAX_READINGS: Final = 64
"""Readings that wait for their spans, at most."""
MAX_SPANS: Final = 1_000_000
"""Spans of one SDK that are counted between two readings, at most."""


class ToldPeriod(NamedTuple):
    """Period between two readings, in ns since 1970, and how many messages may be missing of it; None: no number."""

    since_ns: int
    until_ns: int
    missing: int | None


class _Waiting(NamedTuple):
    reading: SdkReading
    since_s: float


class SdkAccount:
    """Account of one SDK; not thread-safe."""

    def __init__(self) -> None:
        """Start without a reading: nothing is told before the second one."""
        self._last: SdkReading | None = None
        self._waiting: list[_Waiting] = []
        self._drift: int | None = None
        # Starts and ends, in columns; the first part has none.
        self._spans_ns = [np.empty((0, 2), np.int64)]
        self.told_since_ns: int | None = None
        """Moment since which all is told without a gap; None before the first reading, and behind a gap."""
        self.told_until_ns = 0
        self.heard_s = float("-inf")
        """Moment at which it was heard last, on a clock that never goes back."""

    def add_spans(self, spans_ns: NDArray[np.int64], now_s: float) -> None:
        """Add spans that came for the first time: their starts and ends, in two columns, in ns since 1970."""
        self.heard_s = now_s
        self._spans_ns.append(spans_ns)
        if sum(len(part) for part in self._spans_ns) > MAX_SPANS:
            self._begin_anew(None)

    def add_reading(self, reading: SdkReading, now_s: float) -> None:
        """Add a reading; one that is older than the last is passed over."""
        self.heard_s = now_s
        before = self._waiting[-1].reading if self._waiting else self._last
        if before is not None and reading.at_ns <= before.at_ns:
            return
        if before is None or reading.since_ns != before.since_ns or len(self._waiting) >= MAX_READINGS:
            self._begin_anew(reading)
            return
        self._waiting.append(_Waiting(reading, now_s))

    def take_told(self, now_s: float) -> Iterator[ToldPeriod]:
        """Yield the periods that are told by now, in their order: those behind which there is a further reading."""
        while len(self._waiting) > 1 and self._last is not None:
            before, reading, (behind, since_s) = self._last, self._waiting[0].reading, self._waiting[1]
            spans = np.concatenate(self._spans_ns)
            drifts = [_count_missing(spans, before, one) for one in (reading, behind)]
            still_open = reading.live - _count_open(spans, reading.at_ns, 0)
            if max(*drifts, still_open) > 0 and now_s - since_s < PATIENCE_S:
                return
            at_most = _bound_missing(spans, before, reading)
            # With a sampler nobody knows which messages had a span, and an SDK of whose spans more came than it says
            # have ended is not believed.
            has_gap = reading.unsampled > before.unsampled or at_most < 0
            is_agreed = drifts == [0, 0] and self._drift == 0
            missing = max(0 if is_agreed else at_most, reading.dropped - before.dropped)
            missing += 0 if still_open == 0 else max(0, reading.live - _count_open(spans, reading.at_ns, CLOSE_NS))
            self._advance(reading, drifts[0], spans, has_gap=has_gap)
            yield ToldPeriod(before.at_ns, reading.at_ns, None if has_gap else missing)

    def _advance(self, reading: SdkReading, drift: int, spans: NDArray[np.int64], *, has_gap: bool) -> None:
        before = self._last
        self._waiting.pop(0)
        self._last, self._drift, self.told_until_ns = reading, drift, reading.at_ns
        self._spans_ns = [spans[spans[:, 1] > reading.at_ns - CLOSE_NS]]
        if has_gap:
            self.told_since_ns = reading.at_ns
        elif self.told_since_ns is None and before is not None:
            self.told_since_ns = before.at_ns

    def _begin_anew(self, reading: SdkReading | None) -> None:
        self._last, self._drift, self.told_since_ns = reading, None, None
        self._waiting.clear()
        spans = np.concatenate(self._spans_ns)
        self._spans_ns = [spans[:0] if reading is None else spans[spans[:, 1] > reading.at_ns - CLOSE_NS]]


def _count_missing(spans: NDArray[np.int64], before: SdkReading, behind: SdkReading) -> int:
    """Return how many spans that ended between two readings did not come, if neither reading is off."""
    ends = spans[:, 1]
    return int(behind.ended - before.ended - np.count_nonzero((ends > before.at_ns) & (ends <= behind.at_ns)))


def _bound_missing(spans: NDArray[np.int64], before: SdkReading, behind: SdkReading) -> int:
    """Return how many spans that ended between two readings did not come, at most."""
    starts, ends = spans[:, 0], spans[:, 1]
    inside = np.count_nonzero((ends > before.at_ns + CLOSE_NS) & (ends <= behind.at_ns - CLOSE_NS))
    begun = sum(np.count_nonzero(np.abs(starts - one.at_ns) <= CLOSE_NS) for one in (before, behind))
    return int(behind.ended - before.ended - inside + begun)


def _count_open(spans: NDArray[np.int64], at_ns: int, close_ns: int) -> int:
    """Return how many of the spans that came were open at a moment, and neither began nor ended close to it."""
    return int(np.count_nonzero((spans[:, 0] <= at_ns - close_ns) & (spans[:, 1] > at_ns + close_ns)))
