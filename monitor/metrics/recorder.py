"""Recorder of the monitor's metrics: written by the job and the store poller, read by each scrape."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hopwatch import __version__
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.metrics.catalog import BUCKETS_S
from hopwatch.monitor.metrics.counters import CounterTotals, WindowCounters
from hopwatch.monitor.metrics.folding import FoldingPlan
from hopwatch.monitor.metrics.snapshot import BatchDurations, InitialState, MetricsSnapshot, StoreSnapshot
from hopwatch.monitor.results import CommittedBatch, RecentFigures, WindowResult
from hopwatch.monitor.stream_config import StreamConfig

_NO_BATCHES: Final = BatchDurations((0,) * (len(BUCKETS_S) + 1))


@dataclass(slots=True)
class MetricsRecorder:
    """Values for the page of metrics, under one lock that is only held briefly."""

    rules: Mapping[str, StreamConfig]
    plan: FoldingPlan
    clock: Clock
    beginning: InitialState = field(default_factory=InitialState)
    _newest: dict[str, WindowResult] = field(default_factory=dict, init=False)
    _overdue: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    _recent: dict[str, RecentFigures] = field(default_factory=dict, init=False)
    _counted: WindowCounters = field(init=False)
    _batches: BatchDurations = field(default=_NO_BATCHES, init=False)
    _watermark_us: int = field(init=False)
    _started_us: int = field(init=False)
    _figures: StoreSnapshot | None = field(default=None, init=False)
    _is_store_up: bool | None = field(default=None, init=False)
    _is_config_in_force: bool = field(default=True, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        """Begin with what the store holds."""
        self._started_us = self.clock.now_us()
        self._counted = WindowCounters(self.rules, self.beginning.judged)
        self._watermark_us = self.beginning.watermark_us
        self._take(self.beginning.newest)

    def committed(self, done: CommittedBatch) -> None:
        """Take in a micro-batch that is written."""
        with self._lock:
            self._watermark_us = max(self._watermark_us, done.watermark_us)
            self._take(done.results)
            self._recent |= {one.stream: one for one in done.recent}
            self._counted.count(done.results, self._watermark_us)
            counts = list(self._batches.counts)
            counts[bisect_left(BUCKETS_S, done.took_s)] += 1
            self._batches = BatchDurations(tuple(counts), self._batches.sum_s + done.took_s, self.clock.now_us())

    def read(self, figures: StoreSnapshot | None) -> None:
        """Take in what the store says, or that it could not be read: then the last figures stand."""
        with self._lock:
            self._is_store_up = figures is not None
            self._figures = figures or self._figures

    def change_rules(self, rules: Mapping[str, StreamConfig], plan: FoldingPlan) -> None:
        """Go on with other versions of the streams."""
        with self._lock:
            self.rules, self.plan, self._is_config_in_force = rules, plan, True
            self._counted.change_rules(rules)

    def refuse_config(self) -> None:
        """Take in that the last change of the configuration was refused."""
        with self._lock:
            self._is_config_in_force = False

    def known(self) -> MetricsSnapshot:
        """Return all of it as it stands at this moment."""
        with self._lock:
            return MetricsSnapshot(
                version=__version__,
                started_us=self._started_us,
                rules=self.rules,
                plan=self.plan,
                newest=dict(self._newest),
                totals={
                    stream: CounterTotals(*(part.copy() for part in of)) for stream, of in self._counted.totals.items()
                },
                batches=replace(self._batches),
                watermark_us=self._watermark_us,
                figures=self._figures,
                is_store_up=self._is_store_up,
                is_config_in_force=self._is_config_in_force,
                overdue=self._sum_overdue(),
                recent=self._select_recent(),
            )

    def _select_recent(self) -> dict[str, RecentFigures]:
        """Return the recent figures that still say how things are."""
        now_us = self.clock.now_us()
        return {name: one for name, one in self._recent.items() if name in self.rules and not one.is_old(now_us)}

    def _sum_overdue(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for (stream, _), count in self._overdue.items():
            found[stream] = found.get(stream, 0) + count
        return found

    def _take(self, results: Iterable[WindowResult]) -> None:
        for result in results:
            self._overdue.pop((result.stream, result.window_start_us), None)
            if result.overdue:
                self._overdue[result.stream, result.window_start_us] = result.overdue
            known = self._newest.get(result.stream)
            is_newest = known is None or known.window_start_us <= result.window_start_us
            if result.status.is_final and is_newest and result.stream in self.rules:
                self._newest[result.stream] = result
