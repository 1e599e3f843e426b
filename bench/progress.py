"""A stream while it works: when all of its windows are final, how long each trigger took, what rates these come to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from hopwatch.monitor.results import WindowResult

LOOK_S: Final = 0.05


class Trigger(NamedTuple):
    """One micro-batch: when it ended (s since 1970), how long it took, and how many segments it read."""

    batch: int
    end_s: float
    took_s: float
    segments: int


class Rates(NamedTuple):
    """Observations a second: over the whole query, and from the end of the first trigger on (none if it read all)."""

    whole: float
    steady: float | None


class FinalWindows:
    """Counts the windows that are final, with nothing in flight, as the job reports them."""

    def __init__(self, windows: int, before_us: int) -> None:
        """Wait for so many windows that start before a moment."""
        self._windows = windows
        self._before_us = before_us
        self._final: set[tuple[str, int]] = set()
        self._all = threading.Event()
        self._all_s = 0.0

    def note(self, results: Sequence[WindowResult]) -> None:
        """Take what the job says; called in its own thread."""
        for result in results:
            if result.status.is_final and not result.in_flight and result.window_start_us < self._before_us:
                self._final.add((result.stream, result.window_start_us))
        if len(self._final) == self._windows and not self._all.is_set():
            self._all_s = time.time()
            self._all.set()

    def wait(self, query: StreamingQuery) -> list[Trigger]:
        """Wait until all windows are final in the store, and return the triggers up to the one that made them so."""
        while not self._all.wait(LOOK_S):
            raise_failure(query)
        return wait_until(query, lambda found: bool(found) and found[-1].end_s >= self._all_s)


def wait_until(query: StreamingQuery, is_enough: Callable[[list[Trigger]], bool]) -> list[Trigger]:
    """Wait until the triggers so far are enough, and return them.

    Raises:
        RuntimeError: the stream has died.
    """
    while not is_enough(found := triggers(query.recentProgress)):
        raise_failure(query)
        time.sleep(LOOK_S)
    return found


def raise_failure(query: StreamingQuery) -> None:
    """Raise what a stream died of."""
    failure = query.exception()
    if failure is not None or not query.isActive:
        raise RuntimeError(f"the stream has died: {failure}")


def triggers(progress: Sequence[Any]) -> list[Trigger]:
    """Return the triggers that ran a batch."""
    return [_trigger(told) for told in progress if "addBatch" in told["durationMs"]]


def idle_s(progress: Sequence[Any]) -> list[float]:
    """Return how long each trigger took that found nothing to do."""
    return [told["durationMs"]["triggerExecution"] / 1e3 for told in progress if "addBatch" not in told["durationMs"]]


def rates(found: Sequence[Trigger], segments: Sequence[int], began_s: float) -> Rates:
    """Return the rates of a query that began at ``began_s``; ``segments`` are observations, in order of arrival.

    A trigger reads the oldest segments that no trigger has read; what comes after the last one is counted to the end.
    """
    read = list(accumulate(trigger.segments for trigger in found))
    if read[-1] != len(segments):
        raise RuntimeError(f"the stream read {read[-1]:,} of {len(segments):,} segments")
    observations, first = sum(segments), sum(segments[: read[0]])
    whole = observations / (found[-1].end_s - began_s)
    if first == observations:
        return Rates(whole, None)
    return Rates(whole, (observations - first) / (found[-1].end_s - found[0].end_s))


def _trigger(told: Any) -> Trigger:  # noqa: ANN401 - Spark's own object
    took_s = told["durationMs"]["triggerExecution"] / 1e3
    began_s = datetime.fromisoformat(told["timestamp"]).timestamp()
    return Trigger(told["batchId"], began_s + took_s, took_s, int(told["numInputRows"]))
