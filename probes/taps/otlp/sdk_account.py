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
    """Period between two readings, in ns since 1970, and how many messages may be missing of it; None: no number.

    It is the longer one of that by the clock of the SDK and that by the clock of the tap.
    """

    since_ns: int
    until_ns: int
    missing: int | None


class _Heard(NamedTuple):
    reading: SdkReading
    at_ns: int
    at_s: float


class SdkAccount:
    """Account of one SDK; not thread-safe."""

    def __init__(self) -> None:
        """Start without a reading: nothing is told before the second one."""
        self._last: _Heard | None = None
        self._waiting: list[_Heard] = []
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

    def add_reading(self, reading: SdkReading, now_ns: int, now_s: float) -> None:
        """Add a reading that came at a time of day, in ns since 1970; one older than the last is passed over."""
        self.heard_s, heard = now_s, _Heard(reading, now_ns, now_s)
        before = self._waiting[-1] if self._waiting else self._last
        if before is None or reading.since_ns != before.reading.since_ns or len(self._waiting) >= MAX_READINGS:
            self._begin_anew(heard)
        elif reading.at_ns > before.reading.at_ns:
            self._waiting.append(heard)

    def take_told(self, now_s: float) -> Iterator[ToldPeriod]:
        """Yield the periods that are told by now, in their order: those behind which there is a further reading."""
        while len(self._waiting) > 1 and self._last is not None:
            before, reading, behind = (one.reading for one in (self._last, *self._waiting[:2]))
            spans = np.concatenate(self._spans_ns)
            drifts = [_count_missing(spans, before, one) for one in (reading, behind)]
            still_open = reading.live - _count_open(spans, reading.at_ns, 0)
            if max(*drifts, still_open) > 0 and now_s - self._waiting[1].at_s < PATIENCE_S:
                return
            at_most = _bound_missing(spans, before, reading)
            # With a sampler nobody knows which messages had a span, and an SDK of whose spans more came than it says
            # have ended is not believed.
            has_gap = reading.unsampled > before.unsampled or at_most < 0
            is_agreed = drifts == [0, 0] and self._drift == 0
            missing = max(0 if is_agreed else at_most, reading.dropped - before.dropped)
            if still_open:
                # Those that were open at the reading before counted there, unless they came since.
                counted = max(0, before.live - _count_open(spans, before.at_ns, -CLOSE_NS))
                missing += max(0, reading.live - _count_open(spans, reading.at_ns, CLOSE_NS) - counted)
            self._spans_ns, self._drift = [spans[spans[:, 1] > reading.at_ns - CLOSE_NS]], drifts[0]
            yield self._advance(None if has_gap else missing)

    def _advance(self, missing: int | None) -> ToldPeriod:
        before, self._last = self._last, self._waiting.pop(0)
        assert before is not None  # noqa: S101 - as was checked
        since_ns, until_ns = before.reading.at_ns, self._last.reading.at_ns
        # A clock that is ahead tells nothing of what is to come, and one that is behind nothing of what was before.
        if missing is None:
            self.told_since_ns = max(until_ns, self._last.at_ns)
        elif self.told_since_ns is None:
            self.told_since_ns = max(since_ns, before.at_ns)
        self.told_until_ns = min(until_ns, self._last.at_ns)
        return ToldPeriod(min(since_ns, before.at_ns), max(until_ns, self._last.at_ns), missing)

    def _begin_anew(self, heard: _Heard | None) -> None:
        self._last, self._drift, self.told_since_ns = heard, None, None
        self._waiting.clear()
        spans = np.concatenate(self._spans_ns)
        self._spans_ns = [spans[:0] if heard is None else spans[spans[:, 1] > heard.reading.at_ns - CLOSE_NS]]


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
    """Return how many of the spans that came were open at a moment, from ``close_ns`` before it to as long behind it.

    Below 0: those that may have been open at it.
    """
    return int(np.count_nonzero((spans[:, 0] <= at_ns - close_ns) & (spans[:, 1] > at_ns + close_ns)))
