"""Snapshot of all values that the page of metrics is made from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hopwatch.monitor.metrics.counters import CounterTotals
from hopwatch.monitor.metrics.folding import FoldingPlan
from hopwatch.monitor.results import RecentFigures, WindowResult
from hopwatch.monitor.selftest.summary import SelftestSummary
from hopwatch.monitor.stream_config import StreamConfig


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Figures of the monitor's own work, from the store."""

    records: int = 0
    observations: int = 0
    duplicate_batches: int = 0
    too_late: int = 0
    implausible: int = 0
    aged_out: int = 0
    set_aside: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    instances: Mapping[str, int] = field(default_factory=dict)
    missing_batches: int = 0


@dataclass(frozen=True, slots=True)
class AlertFigures:
    """Figures of alerts, from the store: incidents by (rule, severity), notifications by (channel, state).

    ``oldest_waiting_us`` is when the oldest notification that waits was decided, none where none waits.
    """

    incidents: Mapping[tuple[str, str], int] = field(default_factory=dict)
    outbox: Mapping[tuple[str, str], int] = field(default_factory=dict)
    oldest_waiting_us: int | None = None


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """Figures of the store, read at ``read_at_us`` by the wall clock.

    ``results_waiting`` is the number of windows that wait to be published, None where they are not; ``selftest`` the
    outcomes of the self-test, None where there is none.
    """

    read_at_us: int
    store: StoreFigures = field(default_factory=StoreFigures)
    alerts: AlertFigures = field(default_factory=AlertFigures)
    results_waiting: int | None = None
    selftest: SelftestSummary | None = None


@dataclass(frozen=True, slots=True)
class InitialState:
    """State of the store when the monitor starts, so that metrics have no gap until the next window is judged.

    ``judged`` are the windows, by stream and start in µs, that were final already and can still be judged again.
    """

    watermark_us: int = 0
    newest: tuple[WindowResult, ...] = ()
    judged: Collection[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True)
class BatchDurations:
    """The micro-batches of this process: how many took up to each of ``BUCKETS_S`` or longer, and how long in all."""

    counts: tuple[int, ...]
    sum_s: float = 0.0
    last_us: int = 0


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """Values of the monitor at one moment; ``newest`` are the newest final windows, 0 and None mean "not known yet".

    ``overdue`` is what is overdue in all windows of a stream that are not final, ``recent`` are the recent figures of
    streams that are no older than MAX_RECENT_AGE_US.
    """

    version: str
    started_us: int
    rules: Mapping[str, StreamConfig]
    plan: FoldingPlan
    newest: Mapping[str, WindowResult]
    totals: Mapping[str, CounterTotals]
    batches: BatchDurations
    watermark_us: int
    figures: StoreSnapshot | None
    is_store_up: bool | None
    is_config_in_force: bool = True
    overdue: Mapping[str, int] = field(default_factory=dict)
    recent: Mapping[str, RecentFigures] = field(default_factory=dict)
