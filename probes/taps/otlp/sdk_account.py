"""Account of one SDK: how many spans it says have ended, and how many of these came here.

The SDK counts a span a moment after it has ended, and reads its counters one after the other. So spans that begin or
end close to a reading may be in it or not, and count as missing: what an account says is missing is never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

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
        self._spans_ns: list[tuple[int, int]] = []
        self.told_since_ns: int | None = None
        """Moment since which all is told without a gap; None before the first reading, and behind a gap."""
        self.told_until_ns = 0
        self.heard_s = float("-inf")
        """Moment at which it was heard last, on a clock that never goes back."""

    def add_spans(self, spans: Iterable[tuple[int, int]], now_s: float) -> None:
        """Add the starts and ends of spans that came for the first time, in ns since 1970."""
        self.heard_s = now_s
        self._spans_ns.extend(spans)
        if len(self._spans_ns) > MAX_SPANS:
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
        """Yield the periods that are told by now, in their order."""
        while self._waiting and self._last is not None:
            reading, since_s = self._waiting[0]
            before = self._last
            at_least, at_most = self._count_missing(before, reading)
            if at_least > 0 and now_s - since_s < PATIENCE_S:
                return
            self._waiting.pop(0)
            self._last = reading
            self._spans_ns = [span for span in self._spans_ns if span[1] > reading.at_ns - CLOSE_NS]
            self.told_until_ns = reading.at_ns
            # With a sampler nobody knows which messages had a span, and one of whose spans more came than it says have
            # ended is not believed.
            has_gap = reading.unsampled > before.unsampled or at_most < 0
            if has_gap:
                self.told_since_ns = reading.at_ns
            elif self.told_since_ns is None:
                self.told_since_ns = before.at_ns
            missing = None if has_gap else max(at_most, reading.dropped - before.dropped) + reading.live
            yield ToldPeriod(before.at_ns, reading.at_ns, missing)

    def _count_missing(self, before: SdkReading, behind: SdkReading) -> tuple[int, int]:
        """Return how many spans between two readings are missing, at least and at most."""
        spans = np.array(self._spans_ns, np.int64).reshape(-1, 2)
        starts, ends = spans[:, 0], spans[:, 1]
        ended = behind.ended - before.ended
        inside = np.count_nonzero((ends > before.at_ns + CLOSE_NS) & (ends <= behind.at_ns - CLOSE_NS))
        around = np.count_nonzero((ends > before.at_ns - CLOSE_NS) & (ends <= behind.at_ns + CLOSE_NS))
        begun = sum(np.count_nonzero(np.abs(starts - one.at_ns) <= CLOSE_NS) for one in (before, behind))
        return int(ended - around - begun), int(ended - inside + begun)

    def _begin_anew(self, reading: SdkReading | None) -> None:
        self._last, self.told_since_ns = reading, None
        self._waiting.clear()
        at_ns = 0 if reading is None else reading.at_ns
        self._spans_ns = [span for span in self._spans_ns if reading is not None and span[1] > at_ns - CLOSE_NS]
