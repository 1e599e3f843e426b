"""Pending counts: messages that a probe has counted and not yet sent, joined by window and stamp."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from hopwatch.probes.contract.batch import Metrics, MetricsStamp
from hopwatch.probes.contract.fingerprints import Fingerprint
from hopwatch.probes.contract.lag_histograms import PackedLags, add_histograms
from hopwatch.probes.contract.limits import MAX_HISTOGRAM_BYTES

MAX_WINDOWS: Final = 10_000
"""Windows of which counts wait at most: those of a week."""
MAX_NUMBER: Final = 2**63 - 1
"""Greatest count and size of the wire."""


@dataclass(frozen=True, slots=True)
class Count:
    """Messages of one window, by its start in ms, that were counted at one stamp; without ids there is no print.

    ``lags`` is the histogram of their lags, or empty.
    """

    window_start_ms: int
    stamp: MetricsStamp
    number: int
    printed: Fingerprint | None = None
    size_bytes: int = 0
    lags: PackedLags = b""


class PendingCounts:
    """Counts of one probe instance, from any thread; those of a window and stamp are added to each other."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_window: dict[int, dict[MetricsStamp, Metrics]] = {}
        # Held for a few instructions only, by the host too; with lags for as long as two histograms take to be added.
        self._lock = threading.Lock()

    def add(self, counted: Count) -> bool:
        """Add messages to a window; False where there is no room for another window, or for so many messages.

        Without the fingerprint of a part there is none of the whole. Lags are of the parts that have some.
        """
        with self._lock:
            of_window = self._by_window.get(counted.window_start_ms)
            if of_window is None:
                if len(self._by_window) >= MAX_WINDOWS:
                    return False
                of_window = self._by_window[counted.window_start_ms] = {}
            before = of_window.get(counted.stamp, Metrics(counted.stamp, 0))
            total = before.count + counted.number
            if total > MAX_NUMBER:
                return False
            size_bytes = min(MAX_NUMBER, before.size_bytes + counted.size_bytes)
            lags = _join_lags(before.lag_histogram, counted.lags)
            of_window[counted.stamp] = Metrics(counted.stamp, total, *_join(before, counted.printed), size_bytes, lags)
            return True

    def take_window(self) -> tuple[int, tuple[Metrics, ...]] | None:
        """Take the counts of the earliest window out, with its start in ms; None where nothing waits."""
        with self._lock:
            if not self._by_window:
                return None
            start_ms = min(self._by_window)
            return start_ms, tuple(one for _, one in sorted(self._by_window.pop(start_ms).items()))


def count_messages(metrics: tuple[Metrics, ...]) -> int:
    """Return the number of messages that these are counts of, at most: each may be counted at several stamps."""
    return sum(one.count for one in metrics)


def _join(before: Metrics, printed: Fingerprint | None) -> tuple[int, int]:
    """Return XOR and sum of both parts as the wire has them, signed; 0 and 0 where one has none."""
    if printed is None or (before.count and not (before.id_xor or before.id_sum)):
        return 0, 0
    return printed.plus(Fingerprint.from_signed(before.id_xor, before.id_sum)).signed


def _join_lags(before: PackedLags, counted: PackedLags) -> PackedLags:
    """Return the lags of both parts; those of the first, where both have more than the wire can tell."""
    joined = add_histograms([before, counted])
    return joined if len(joined) <= MAX_HISTOGRAM_BYTES else before
